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
check "own cases, every engine" build/tests/vm/vm_cases tests/vm/cases/edge.tsv tests/vm/cases/hand.tsv
check "own cases agree with the kernel" build/tests/vm/vm_write_cases --check tests/vm/cases/edge.tsv
echo "1..$count"
