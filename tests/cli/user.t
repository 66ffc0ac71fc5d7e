#!/bin/bash
# TAP: what the user half can do: calls, pointers, text, doubles, files, maps of every kind; from
# both clangs and from gcc-bpf.
. "$(dirname "$0")/lib.sh"

features() { # NAME: of the run in $work/out
	while IFS='|' read -r name line; do
		grep -qxF -- "$line" "$work/out"
		ok "$1: $name"
	done <<'END'
pointer tables in .rodata and .data, function pointers|table: twice 14 square 49; old two; 8 16
qsort, bsearch with a script's comparator, recursion|sorted: -3 0 5 7 9, 7 at 3; 10! = 3628800
printf of any mix|mix: -1 text 2.50 c  99.5% ff -5000000000 ab  | 18446744073709551615 copy 1e+100
text, malloc, strdup|text: text-7, 999, 0
fopen, fgets|file: duet
libm, doubles|numbers: 16 1.414 3.5 1024.0 1
snprintf of a double|0003.143
hash: update, delete, look-up, iterate, count|hash: -17 0 -2 gone 16, count 9, sum 276, steps 9, lru 10
bpf_loop, map_clear|loop: 10 45; cleared 0
queue, stack, LPM, live array|queue 1 2, stack 3, route 99, array 42
what the kernel half put into every kind|same: 1 1 1 1 1, stacks 1
histogram functions|hist: p50 1, mean 100.0
hist_move|moved 1 1
time, CPUs|1 cpus, 1 ns
END
	grep -q '^calls' "$work/out" && grep -Eq '\[?64.*128.*\*|@' "$work/out"
	ok "$1: print_hist, print_hists"
	grep -qx 'to standard error 1' "$work/err"
	ok "$1: fprintf(stderr)"
}

for clang in clang-19 clang-14; do
	t "$clang" 0 -- env DUET_CLANG=$clang "$duet" run tests/cli/user.c -- ls /
	features $clang
done

# Arrays are known to the compiler when they are mapped: not before, and not when a function's address
# may have been kept, which must stay good.
cat >"$work/lookup.c" <<'EOF_SCRIPT'
#include <duet.h>
ARRAY(counts, 100, u64);
u64 (*kept)(u64);
u64 twice(u64 x) { return 2 * x; }
#ifdef KEEP
u64 (*table[])(u64) = { twice };
#endif
#ifdef OPEN
SEC("user/open") int opened(void *c)
{
	u32 key = 7;
	kept = twice;
	return bpf_map_lookup_elem(&counts, &key) ? -1 : 0;
}
#endif
SEC("user/init") int init(void *c)
{
	for (int i = 0; i < 100000; i++) {
		u32 key = i % 100;
		u64 *value = bpf_map_lookup_elem(&counts, &key);
		if (value)
			*value += 1;
	}
	return 0;
}
SEC("user/exit") int report(void *c)
{
	u32 key = 7, beyond = 100;
	u64 *value = bpf_map_lookup_elem(&counts, &key), result = 0;
#ifdef OPEN
	result = kept(21);
#endif
#ifdef KEEP
	result += table[0](21);
#endif
	printf("seven %llu beyond %d kept %llu\n", value ? *value : 0,
	       bpf_map_lookup_elem(&counts, &beyond) != 0, result);
	return 0;
}
EOF_SCRIPT
t "look-ups in a mapped array" 0 'out~^seven 1000 beyond 0 kept 0$' -- "$duet" run "$work/lookup.c" -- true
t "... when user/open keeps a function" 0 'out~^seven 1000 beyond 0 kept 42$' -- \
	"$duet" run --cflags=-DOPEN "$work/lookup.c" -- true
t "... when data holds one" 0 'out~^seven 1000 beyond 0 kept 84$' -- \
	"$duet" run --cflags="-DOPEN -DKEEP" "$work/lookup.c" -- true

# gcc-bpf takes what the clang flags say about include folders and macros.
read -ra flags <<<"$("$duet" cflags)"
gcc=()
for ((i = 0; i < ${#flags[@]}; i++)); do
	case ${flags[i]} in
	-isystem | -include) gcc+=("${flags[i]}" "${flags[++i]}") ;;
	-I* | -D*) gcc+=("${flags[i]}") ;;
	esac
done
t "gcc-bpf compiles a user half" 0 -- bpf-gcc -O2 -gbtf -mcpu=v3 -fno-builtin -nostdinc "${gcc[@]}" \
	-c tests/cli/user-gcc.c -o "$work/gcc.o"
t "gcc-bpf: runs" 0 'out~^sum 15, sorted 1 2 3, third, 2.50$' -- "$duet" run "$work/gcc.o" -- true

done_testing
