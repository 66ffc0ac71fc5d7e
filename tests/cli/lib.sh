# Sourced by the scripts of this folder: TAP, and one way to try a command.
# shellcheck shell=bash disable=SC2034,SC2319
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
root=$PWD
duet=${DUET:-$root/build/duet}
work=$root/build/test-work/cli-$(basename "$0" .t)
rm -rf "$work"
mkdir -p "$work"
count=0

# ok NAME: the verdict is the status of the command before it.
ok() {
	local status=$?
	count=$((count + 1))
	if [ $status = 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		sed 's/^/# out: /' "$work/out" 2>/dev/null | head -8
		sed 's/^/# err: /' "$work/err" 2>/dev/null | head -8
	fi
}

# try COMMAND...: leaves $status, $work/out and $work/err.
try() {
	timeout -k 5 120 "$@" >"$work/out" 2>"$work/err" </dev/null
	status=$?
}

# t NAME STATUS [CONDITION]... -- COMMAND...: the command ends with STATUS, and each condition
# holds: out~RE, err~RE: a line matches the extended regular expression; out!RE, err!RE: none does;
# out=TEXT: standard output is exactly TEXT; err1: one line on standard error.
t() {
	local name=$1 wanted=$2 why='' condition
	local -a conditions=()
	shift 2
	while [ "$1" != -- ]; do
		conditions+=("$1")
		shift
	done
	shift
	try "$@"
	[ "$status" = "$wanted" ] || why="status $status, not $wanted"
	for condition in "${conditions[@]}"; do
		case $condition in
		out~*) grep -Eq -- "${condition#out~}" "$work/out" || why+="; $condition" ;;
		err~*) grep -Eq -- "${condition#err~}" "$work/err" || why+="; $condition" ;;
		out!*) ! grep -Eq -- "${condition#out!}" "$work/out" || why+="; $condition" ;;
		err!*) ! grep -Eq -- "${condition#err!}" "$work/err" || why+="; $condition" ;;
		out=*) [ "$(cat "$work/out")" = "${condition#out=}" ] || why+="; $condition" ;;
		err1) [ "$(wc -l <"$work/err")" = 1 ] || why+="; $condition" ;;
		*) why+="; no such condition: $condition" ;;
		esac
	done
	if [ -n "$why" ]; then
		echo "# $why"
		echo "# $*"
	fi
	[ -z "$why" ]
	ok "$name"
}

done_testing() {
	echo "1..$count"
}
