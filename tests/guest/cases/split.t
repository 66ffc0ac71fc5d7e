#!/bin/bash
# The kernel images that the split makes, loaded and run by other kernels: 6.1 is the strictest
# about BTF. The host compiles, the guests take its objects.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1

test=build/tests/unit/obj/split_kernel_test
objects=$(mktemp -d)
trap 'rm -rf -- "$objects"' EXIT
export DUET_TEST_OBJECTS=$objects

echo 1..3
report() { # NUMBER STATUS NAME
	[ "$2" = 0 ] || printf 'not '
	echo "ok $1 - $3"
}
CMOCKA_MESSAGE_OUTPUT=STDOUT $test >"$objects/log" 2>&1
report 1 $? "host"
number=2
for kernel in 6.1 6.12; do
	tests/guest/run --kernel $kernel --timeout 400 --share "$objects" -- "$test" >"$objects/log" 2>&1
	status=$?
	[ $status = 0 ] || sed 's/^/# /' "$objects/log"
	report $number $status "Linux $kernel"
	number=$((number + 1))
done
