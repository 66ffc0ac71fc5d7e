#!/bin/bash
# Kernel probes, maps, rings, duet's own programs and six ordinary libbpf programs, on every guest
# kernel: the unit tests of src/kern and those of tests/programs, in TAP.
#   tests/guest/cases/kern.t [ARCH KERNEL]...
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1

guests=(x86_64 6.1 x86_64 6.12 arm64 6.1 arm64 6.12)
(($#)) && guests=("$@")

tests=(kern/kern_guest kern/kern_test kern/own_test kern/map_test kern/tracefs_test)

# cmocka's TAP, each case named after its guest; a guest or test that says nothing has failed.
run_guest() { # ARCH KERNEL
	local build='build' output status=0
	[[ $1 == arm64 ]] && build='build-arm64'
	# shellcheck disable=SC2016 # expanded in the guest
	output=$(DUET_TEST_OBJECTS=$PWD/$build/tests/unit/kern tests/guest/run \
		--arch "$1" --kernel "$2" --timeout 400 -- sh -c '
		build=$1
		shift
		export CMOCKA_MESSAGE_OUTPUT=TAP
		for test in "$@"; do
			"$build/tests/unit/$test" </dev/null || echo "# $test: status $?"
		done
		"$build/tests/programs/programs_test" </dev/null || echo "# programs: status $?"
		' sh "$PWD/$build" "${tests[@]}") || status=$?
	sed -E "s/^((not )?ok [0-9]+ - )/\1$1 $2: /" <<<"$output"
	if ((status)) || ! grep -q '^ok ' <<<"$output"; then
		printf '1..1\nnot ok 1 - %s %s: the guest ended with status %s\n' "$1" "$2" "$status"
		return 1
	fi
	! grep -q '^not ok \|^# .*: status ' <<<"$output"
}

failed=0
while ((${#guests[@]} >= 2)); do
	run_guest "${guests[0]}" "${guests[1]}" || failed=1
	guests=("${guests[@]:2}")
done
exit "$failed"
