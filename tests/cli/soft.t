#!/bin/bash
# TAP: arithmetic by function, as gcc-bpf calls it: floating point, 128 bits, signed division; what
# cannot be returned.
. "$(dirname "$0")/lib.sh"

gcc -O2 -fno-builtin -w tests/cli/soft.c -o "$work/native" 2>"$work/err" && "$work/native" >"$work/native.out"
ok "the same source natively"
results=$(wc -l <"$work/native.out")
for level in -O2 -O0; do
	t "gcc-bpf $level compiles it" 0 -- \
		bpf-gcc $level -gbtf -mcpu=v3 -fno-builtin -w -c tests/cli/soft.c -o "$work/soft.o"
	for mode in '' --checked; do
		# shellcheck disable=SC2086
		"$duet" run $mode "$work/soft.o" -- true >"$work/soft.out" 2>"$work/err"
		diff "$work/native.out" "$work/soft.out" >"$work/out"
		ok "gcc-bpf $level ${mode:-unchecked}: $results results, all as native"
	done
done
names=$(bpf-nm "$work/soft.o" | awk '$1 == "U" && $2 != "__printf_n" { print $2 }' | wc -l)
[ "$names" -ge 50 ]
ok "they called $names functions of the compiler"

cat >"$work/returns.c" <<'END'
#define SEC(name) __attribute__((section(name), used))
static __attribute__((noinline)) __int128 square(long x) { return (__int128)x * x; }
SEC("user/exit") int report(void *e) { return square((long)e) >> 70; }
END
t "gcc-bpf: a function that returns 128 bits compiles" 0 -- \
	bpf-gcc -O2 -gbtf -mcpu=v3 -fno-builtin -c "$work/returns.c" -o "$work/returns.o"
t "... and is refused at load, by name" 1 \
	'err~square\(\) returns a value that does not fit a register: write to memory through a pointer' \
	err1 -- "$duet" run "$work/returns.o" -- true
cat >"$work/struct.c" <<'END'
#include <duet.h>
struct quotient { int quot, rem; };
struct quotient div(int a, int b);
SEC("user/exit") int report(void)
{
	return div(7, 2).quot == 3 ? 0 : -1;
}
END
t "a C function that returns a struct is refused at load" 1 \
	'err~div\(\) returns a value that does not fit a register: write to memory through a pointer' \
	err1 -- "$duet" run "$work/struct.c" -- true
cat >"$work/jump.c" <<'END'
#define SEC(name) __attribute__((section(name), used))
long x;
SEC("user/exit") int report(void *e)
{
	if (x) {
END
for ((i = 0; i < 3000; i++)); do
	echo "x += (long)(((__int128)x * (x + $i)) >> 64);"
done >>"$work/jump.c"
echo '} return 0; }' >>"$work/jump.c"
bpf-gcc -O1 -gbtf -mcpu=v3 -fno-builtin -c "$work/jump.c" -o "$work/jump.o" 2>"$work/err"
t "a jump over very many of them is refused, not cut" 1 'err~too long: split the function' err1 -- \
	"$duet" run "$work/jump.o" -- true

done_testing
