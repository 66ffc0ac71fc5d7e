#!/bin/bash
# TAP: the target scripts and the live examples in the guests: both compilers' objects load on every
# kernel, and run their course there, on x86-64 with kernel probes, on arm64 with a PMU.
#   tests/guest/cases/scripts.t [ARCH KERNEL]...
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1

guests=(x86_64 6.1 x86_64 6.12 arm64 6.1 arm64 6.12)
(($#)) && guests=("$@")
work=$PWD/build/test-work/guest-scripts
rm -rf "$work"
count=0

# In the guest, where every program that starts costs up to half a second: what each command printed,
# between lines for judge().
inside() { # FOLDER COUNTER
	local folder=$1 duet=$1/duet workload=$1/workload counter=$2 clang script
	check() { # NAME STATUS PATTERN... -- COMMAND...: all of stdout and stderr
		local name=$1 wanted=$2 output status pattern
		local -a patterns=()
		shift 2
		while [ "$1" != -- ]; do
			patterns+=("$1")
			shift
		done
		shift
		output=$("$@" 2>&1 </dev/null)
		status=$?
		printf '@@@ %s\n%s %s\n' "$name" "$wanted" "$status"
		for pattern in "${patterns[@]}"; do
			printf '@re %s\n' "$pattern"
		done
		printf '%s\n' "$output"
	}
	for clang in clang-19 clang-14; do
		for script in adaptive cgtop ipc spike; do
			check "$clang $script loads" 0 'sound: nothing was attached' -- \
				"$duet" run "$folder/$clang/$script.o" --dry-run
		done
		check "$clang dbmiss: calls by query" 0 'qid +calls' '^ *40 +10 ' '^ *41 +20 ' '^ *42 +30 ' -- \
			"$duet" run "$folder/$clang/dbmiss.o" --set "BIN=$folder/base" \
			--set FUNC=get_row -e misses=page-faults -- "$folder/base"
	done
	check "ipc: processes and switches" 0 '^ *pid +comm +cycles +insns' ' b .* [1-9][0-9]* ' \
		'^[0-9]+ processes$' -- \
		"$duet" run "$folder/clang-19/ipc.o" -- "$workload" a=2M b=4M c=6M
	check "cgtop: a table a second" 0 '^by_cgroup at ' switches -- \
		"$duet" run "$folder/clang-19/cgtop.o" -d 3
	check "spike: a bad second, but not in duet run" 0 'not in duet run' '^[1-9] bad seconds' -- \
		"$duet" run "$folder/clang-19/spike.o" -d 3500ms --set NR=read --set LIMIT_US=0 -- \
		dd if=/dev/zero of=/dev/null bs=1M
	check "adaptive: steering is not in duet run" 0 'not in duet run' '^event_period\([0-9]+\): -95$' -- \
		"$duet" run "$folder/clang-19/adaptive.o" -d 1 -a -- sleep 60
	check "sys_write_cycles: three writes, growing" 0 '^bpf count: CPU-[0-9]+ [0-9]+$' -- \
		"$duet" run "$folder/clang-19/sys_write_cycles.o" -e "counter=$counter" -- \
		sh -c "echo 1; '$workload' a=2M; echo 2; '$workload' a=2M; echo 3"
	check "threshold: obeyed" 0 '^[1-9][0-9]* rounds, [1-9][0-9]* obeyed' -- \
		"$duet" run "$folder/clang-19/threshold.o" -d 2 -- dd if=/dev/zero of=/dev/null bs=1
	check "events: produced = handled + lost, all above zero" 0 '^produced' -- \
		"$duet" run "$folder/clang-19/events.o" --set DELAY_US=500 -- \
		dd if=/dev/zero of=/dev/null bs=1 count=5000
	echo '@@@ end'
}

# One command, as judge() has read it.
judge_one() { # NAME WANTED STATUS OUTPUT PATTERN...
	local name=$1 wanted=$2 status=$3 output=$4 pattern bad=''
	shift 4
	[ "$status" = "$wanted" ] || bad="status $status"
	for pattern; do
		grep -Eq -- "$pattern" <<<"$output" || bad+=" /$pattern/"
	done
	case $name in
	sys_write_cycles*) # between two writes the workload ran
		awk '/^bpf count/ { n++; if ($4 <= last) exit 1; last = $4 }
			END { exit n != 3 }' <<<"$output" ||
			bad+=' not three writes, growing'
		;;
	events*)
		awk '/^produced/ { good = $2 == $5 + $8 && $5 > 0 && $8 > 0 }
			END { exit !good }' <<<"$output" || bad+=' the sum'
		;;
	esac
	if [ "$bad" ]; then
		printf 'not ok %s\n' "$name"
		printf '%s\n' "$bad" "$output" | head -20 | sed 's/^/# /'
	else
		echo "ok $name"
	fi
}

# Lines `ok NAME` or `not ok NAME` with what was printed.
judge() {
	local line name='' wanted status output
	local -a patterns=()
	while IFS= read -r line; do
		case $line in
		'@@@ '*)
			[ "$name" ] &&
				judge_one "$name" "$wanted" "$status" "$output" "${patterns[@]}"
			name=${line#@@@ } output='' patterns=()
			read -r wanted status
			;;
		'@re '*) patterns+=("${line#@re }") ;;
		*) output+=$line$'\n' ;;
		esac
	done
}

build() { # ARCH KERNEL: objects into a folder of $work, and the test binary
	local folder=$work/$1-$2 btf clang script cc=cc
	btf=$(tests/guest/btf "$1" "$2") || return 1
	[ "$1" = arm64 ] && cc=aarch64-linux-gnu-gcc
	for clang in clang-19 clang-14; do
		mkdir -p "$folder/$clang"
		for script in tests/scripts/{adaptive,cgtop,dbmiss,ipc,spike}.c \
			examples/{sys_write_cycles,threshold,events}.c; do
			DUET_CLANG=$clang build/duet build "$script" --arch "$1" --btf "$btf" \
				-o "$folder/$clang/$(basename "$script" .c).o" >&2 || return 1
		done
	done
	$cc -O2 -Itests/unit/kern -o "$folder/base" tests/guest/programs/queries.c &&
		cp "$3/duet" "$3/workload" "$folder" # a build meanwhile must not pull them away
}

run_guest() { # ARCH KERNEL
	local output status=0 built=build counter=cpu-clock
	[ "$1" = arm64 ] && built=build-arm64 counter=cycles
	if ! build "$1" "$2" $built; then
		count=$((count + 1))
		echo "not ok $count - $1 $2: the objects do not build"
		return
	fi
	output=$(tests/guest/run --arch "$1" --kernel "$2" --timeout 400 -- bash -c "$(declare -f inside)
		inside \"\$@\"" bash "$work/$1-$2" $counter) || status=$?
	output=$(judge <<<"$output")
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			count=$((count + 1))
			sed -E "s/^((not )?ok) /\1 $count - $1 $2: /" <<<"$line"
			;;
		*) printf '%s\n' "$line" ;;
		esac
	done <<<"$output"
	count=$((count + 1))
	if [ $status = 0 ] && [ "$(grep -cE '^(not )?ok ' <<<"$output")" = 17 ]; then
		echo "ok $count - $1 $2: the guest ran them all"
	else
		echo "not ok $count - $1 $2: the guest ended with status $status"
	fi
}

for ((i = 0; i < ${#guests[@]}; i += 2)); do
	run_guest "${guests[i]}" "${guests[i + 1]}"
done
echo "1..$count"
