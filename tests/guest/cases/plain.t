#!/bin/bash
# TAP: ordinary libbpf programs under `duet run`, on every kernel of both architectures: attached,
# typed maps, text of bpf_printk and of an iterator, maps and variables printed at the end.
set -uo pipefail
cd "$(dirname "$0")/../../.."
count=0

for arch in x86_64 arm64; do
	build=${DUET_TEST_BUILD:-$PWD/build}
	[ $arch = arm64 ] && build=$PWD/build-arm64
	for kernel in 6.1 6.12; do
		output=$(tests/guest/run --arch $arch --kernel $kernel --timeout 600 -- \
			"$PWD/tests/guest/inner/plain" "$build" $kernel 2>&1)
		for name in kprobe_counter tracepoint_hist uprobe usdt bpf_iter timer printk; do
			count=$((count + 1))
			if printf '%s\n' "$output" | grep -qx "good $name"; then
				echo "ok $count - $arch $kernel $name"
			else
				echo "not ok $count - $arch $kernel $name"
				printf '%s\n' "$output" | grep -A80 "^bad $name:" | sed 's/^/# /' |
					head -60
				[[ $output = *good* ]] || printf '%s\n' "$output" | sed 's/^/# /' | tail -20
			fi
		done
	done
done
echo "1..$count"
