#!/bin/bash
# TAP: the target scripts and the examples compile without a warning: both clangs, both
# architectures, with the kernel types of this machine and of the oldest guest kernel.
set -uo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d "${TMPDIR:-/tmp}/duet-scripts.XXXXXX")
trap 'rm -rf "$work"' EXIT
duet=${DUET:-build/duet}
count=0

check() { # NAME COMMAND...
	local name=$1 output status
	shift
	count=$((count + 1))
	output=$("$@" 2>&1 >/dev/null)
	status=$?
	if [ $status = 0 ] && [ -z "$output" ] && [ -s "$work/out.o" ]; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		printf 'status %s\n%s\n' $status "$output" | head -20 | sed 's/^/# /'
	fi
	rm -f "$work/out.o"
}

arm64=$(tests/guest/btf arm64 6.1)
amd64=$(tests/guest/btf x86_64 6.1)
for clang in clang-14 clang-19; do
	for script in tests/scripts/*.c examples/*.c; do
		grep -q '<duet.h>' "$script" || continue
		export DUET_CLANG=$clang
		check "$script: $clang" "$duet" build "$script" -o "$work/out.o"
		check "$script: $clang, x86_64 6.1" \
			"$duet" build "$script" -o "$work/out.o" --arch x86_64 --btf "$amd64"
		check "$script: $clang, arm64 6.1" \
			"$duet" build "$script" -o "$work/out.o" --arch arm64 --btf "$arm64"
	done
done
echo "1..$count"
