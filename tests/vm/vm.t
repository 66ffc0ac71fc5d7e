#!/bin/bash
# TAP: the virtual machine on its cases: the public conformance suite through the plug-in (where the
# suite lies beside the checkout), our own cases, and whether the kernel still agrees with those.
set -uo pipefail
cd "$(dirname "$0")/../.."

count=0
check() { # NAME COMMAND...: the command prints TAP itself; one line here stands for all of it
	local name=$1 output passed failed
	shift
	count=$((count + 1))
	output=$("$@" 2>&1)
	local rc=$?
	passed=$(grep -c '^ok ' <<<"$output")
	failed=$(grep -c '^not ok ' <<<"$output")
	if [ $rc = 0 ] && [ "$failed" = 0 ]; then
		echo "ok $count - $name ($passed cases)"
	else
		echo "not ok $count - $name"
		grep -v '^ok ' <<<"$output" | head -10 | sed 's/^/# /'
	fi
}

suite=../shared/conformance/cases.tsv
for engine in --interp --jit --checked "--checked --interp"; do
	if [ -f $suite ]; then
		# shellcheck disable=SC2086
		check "public conformance suite, $engine" \
			bash tests/vm/conformance_test.sh build/tests/bpf_conformance_plugin $suite $engine
	else
		count=$((count + 1))
		echo "ok $count - public conformance suite, $engine # SKIP $suite is not there"
	fi
done
cases=(tests/vm/cases/edge.tsv tests/vm/cases/hand.tsv)
check "own cases, every engine" build/tests/vm/vm_cases "${cases[@]}"
check "own cases agree with the kernel" build/tests/vm/vm_write_cases --check tests/vm/cases/edge.tsv

# The same on arm64, in this machine's emulation. What the plug-in says there of a case is what
# vm_cases says: one process for all of them is a matter of time.
arm64=(qemu-aarch64-static -L "$(scripts/sysroot-arm64)")
if [ -f $suite ]; then
	cases+=("$suite")
	check "arm64: the plug-in compiles" bash tests/vm/conformance_test.sh \
		tests/vm/arm64_plugin <(head -20 $suite) --jit
fi
check "arm64: all cases, every engine" "${arm64[@]}" build-arm64/tests/vm/vm_cases "${cases[@]}"
check "arm64: random programs, every engine" \
	env DUET_ORACLE_ALONE=1 "${arm64[@]}" build-arm64/tests/vm/vm_oracle_test
for name in own_calls own_long guard_data guard_frame; do
	check "arm64: $name" env CMOCKA_MESSAGE_OUTPUT=TAP \
		"${arm64[@]}" build-arm64/tests/vm/vm_${name}_test
done
echo "1..$count"
