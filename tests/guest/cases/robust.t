#!/bin/bash
# TAP: whatever ends a run, kernels 6.1 and 6.12 are left as they were.
set -uo pipefail
cd "$(dirname "$0")/../../.."
build=${DUET_TEST_BUILD:-$PWD/build}
work=$PWD/build/test-work/robust
rm -rf "$work"
mkdir -p "$work"
count=0

for name in probes refused absent; do
	"$build/duet" build tests/guest/inner/$name.c -o "$work/$name.o" >&2 || exit 1
done
for kernel in 6.1 6.12; do
	rm -f "$work/tap"
	DUET_TEST_BUILD=$build tests/guest/run --kernel $kernel --timeout 600 -- \
		"$PWD/tests/guest/inner/robust" "$work" >"$work/tap" 2>"$work/err"
	status=$?
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*)
			count=$((count + 1))
			echo "${line%%ok *}ok $count - $kernel ${line#*- }"
			;;
		"#"*) echo "$line" ;;
		esac
	done <"$work/tap"
	count=$((count + 1))
	if grep -q '^1\.\.' "$work/tap"; then
		echo "ok $count - $kernel ran to its end"
	else
		echo "not ok $count - $kernel ran to its end: status $status"
		tail -20 "$work/err" | sed 's/^/# /'
	fi
done
echo "1..$count"
