#!/bin/bash
# TAP: libFuzzer's targets under the address and undefined-behaviour sanitizers, from the corpora in
# corpus/: together for twice DUET_FUZZ_SECONDS (60). `fuzz.t keep` does the same and then takes the
# inputs that reach new code into the corpora.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

seconds=${DUET_FUZZ_SECONDS:-60}
out=build/fuzz
export ASAN_OPTIONS=allow_user_segv_handler=1:abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
common="clang-14 -std=gnu17 -D_GNU_SOURCE -g -O1 -fno-strict-aliasing"
compile="$common -fsanitize=fuzzer-no-link,address,undefined -Isrc -Iinclude -Itests/fuzz -Itests/vm
	-Itests/unit/pmu"
link="$common -fsanitize=fuzzer,address,undefined"

targets="object vm event"
for target in $targets; do mkdir -p "$out/new/$target"; done
mkdir -p $out/objects
ls src/{base,isa,obj,vm,vm/jit,pmu}/*.c tests/fuzz/{object,vm,event}_{fuzz,check}.c \
	tests/fuzz/vm_program.c tests/unit/pmu/fake.c |
	COMPILE=$compile OUT=$out/objects xargs -P 2 -I{} bash -c \
		'file={} && $COMPILE -c "$file" -o "$OUT/${file//\//_}.o"' >$out/build.log 2>&1

shared=("$out"/objects/src_*.o)
built() { # TARGET LIBRARY...
	local target=$1
	shift
	$link "${shared[@]}" $out/objects/tests_fuzz_"$target"_*.o "$@" -o $out/"$target"_fuzz \
		>>$out/build.log 2>&1
}

count=0
fuzz() { # TARGET MAX_LEN PERCENT: of DUET_FUZZ_SECONDS
	local target=$1 max_len=$2 log=$out/$1.log time=$(((seconds * $3 + 99) / 100))
	count=$((count + 1))
	if ! $out/"$target"_fuzz -max_len="$max_len" -max_total_time="$time" -timeout=20 \
		-print_final_stats=1 -artifact_prefix=$out/"$target"- $out/new/"$target" \
		tests/fuzz/corpus/"$target" >"$log" 2>&1; then
		echo "not ok $count - $target"
		grep -vE '^#[0-9]' "$log" | tail -40 | sed 's/^/# /'
		return
	fi
	echo "# $(grep -c . <(ls tests/fuzz/corpus/"$target")) inputs in the corpus," \
		"$(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs"
	echo "ok $count - $target: $time seconds"
}

if built object -lbpf -lelf -lz -lffi -lpthread && built vm -lelf -lffi -lpthread &&
	built event $out/objects/tests_unit_pmu_fake.c.o -lbpf -lelf -lz -lffi -lpthread -ldl; then
	fuzz object 65536 80
	fuzz vm 1024 80
	fuzz event 300 40
	echo "1..$count"
else
	echo "1..1"
	echo "not ok 1 - the targets are built"
	tail -30 $out/build.log | sed 's/^/# /'
	exit 1
fi
if [ "${1:-}" = keep ]; then
	for target in $targets; do
		$out/"$target"_fuzz -merge=1 tests/fuzz/corpus/"$target" $out/new/"$target" \
			>>$out/"$target".log 2>&1
	done
fi
