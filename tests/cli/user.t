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
