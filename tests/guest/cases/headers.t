#!/bin/bash
# TAP: every inline function of duet.h loads and runs on the supported kernels, from both clangs.
set -uo pipefail
cd "$(dirname "$0")/../../.."

work=$(mktemp -d "${TMPDIR:-/tmp}/duet-headers.XXXXXX")
trap 'rm -rf "$work"' EXIT
count=0

for clang in clang-14 clang-19; do
	DUET_CLANG=$clang build/duet build tests/headers/inline.c -o "$work/$clang.o" >&2
done
for kernel in 6.1 6.12; do
	for clang in clang-14 clang-19; do
		count=$((count + 1))
		if output=$(tests/guest/run --kernel $kernel --share "$work" -- \
			"$PWD/build/tests/headers/headers_test" "$work/$clang.o" 2>&1); then
			echo "ok $count - $kernel $clang"
		else
			echo "not ok $count - $kernel $clang"
			printf '%s\n' "$output" | tail -30 | sed 's/^/# /'
		fi
	done
done
echo "1..$count"
