#!/bin/bash
# TAP: libduetvm as another program meets it: installed, by pkg-config, shared and static.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=${DUET_BUILD:-$PWD/build}
work=$PWD/build/test-work/vm-embed
root=$work/root
rm -rf "$work"
mkdir -p "$work"
count=0

ok() { # NAME: the verdict is the status of the command before it
	local status=$?
	count=$((count + 1))
	if [ $status = 0 ]; then
		echo "ok $count - $1"
	else
		echo "not ok $count - $1"
		sed 's/^/# /' "$work/log" 2>/dev/null | head -20
	fi
}

meson install -C "$build" --no-rebuild --quiet --destdir "$root" --tags devel,duetvm >"$work/log" 2>&1
ok "meson install"
[ -e "$root" ] || {
	echo "1..$count"
	exit 1
}
PKG_CONFIG_LIBDIR=$(dirname "$(find "$root" -name duetvm.pc)")
export PKG_CONFIG_LIBDIR
export PKG_CONFIG_SYSROOT_DIR=$root
lib=$(dirname "$PKG_CONFIG_LIBDIR")
read -ra cflags <<<"$(pkg-config --cflags duetvm)"
read -ra libs <<<"$(pkg-config --libs duetvm)"
read -ra static <<<"$(pkg-config --libs --static duetvm)"
archive=("-L$lib" -l:libduetvm.a)
for word in "${static[@]}"; do
	[[ $word == -lduetvm || $word == -L* ]] || archive+=("$word")
done
[ -e "$lib/libduetvm.so.1" ] && [ -e "$lib/libduetvm.so" ] && [ -e "$lib/libduetvm.a" ]
ok "both libraries are there"
[[ "${libs[*]} " == "-L$lib -lduetvm " && "${static[*]}" == *-lffi* ]]
ok "pkg-config: the shared library stands alone, the static one names what it needs"

# ---- the example ---------------------------------------------------------------------------------
[ "$(wc -l <examples/embed/host.c)" -le 60 ]
ok "the example has at most 60 lines"
wanted='say: 10
result: 10
fault in instruction 2: read of 1 byte at 0x0'
run() { # COMMAND...
	"$@" >"$work/log" 2>&1 && [ "$(cat "$work/log")" = "$wanted" ]
}
gcc -std=c11 -Wall -Wextra -Werror "${cflags[@]}" examples/embed/host.c "${libs[@]}" \
	-o "$work/shared" 2>"$work/log"
ok "the example compiles: shared"
run env LD_LIBRARY_PATH="$lib" "$work/shared"
ok "... and runs"
readelf -dW "$work/shared" | grep -q 'NEEDED.*\[libduetvm\.so\.1\]'
ok "... against libduetvm.so.1"
gcc -std=c11 "${cflags[@]}" examples/embed/host.c "${archive[@]}" \
	-o "$work/static" 2>"$work/log" &&
	! readelf -dW "$work/static" | grep -q duetvm && run "$work/static"
ok "static: compiles and runs without the library"
gcc -std=c11 -static "${cflags[@]}" examples/embed/host.c "${static[@]}" -o "$work/alone" \
	2>"$work/log" && ! readelf -dW "$work/alone" | grep -q NEEDED && run "$work/alone"
ok "wholly static: compiles and runs"
printf '.function f\nr0 = r2\nr0 += 38\nexit\n' >"$work/mine.s"
hex=$("$build/duet" asm "$work/mine.s" --hex) &&
	LD_LIBRARY_PATH=$lib "$work/shared" "$hex" >"$work/log" 2>&1
[ "$(cat "$work/log")" = "result: 42
result: 42" ]
ok "the example runs what duet asm --hex prints"
LD_LIBRARY_PATH=$lib "$work/shared" ffff000000000000 >"$work/log" 2>&1
[ $? = 1 ] && grep -q '^instruction 0: unknown opcode 0xff$' "$work/log"
ok "... and refuses what is no code"

# ---- names ---------------------------------------------------------------------------------------
declared=$(sed -n 's/^.*[ *]\(vm_[a-z0-9_]*\)(.*/\1/p' "$root"/usr/local/include/duet/vm.h \
	include/duet/vm.h 2>/dev/null | grep -v '^vm_create()' | sort -u)
exported=$(nm -D --defined-only "$lib/libduetvm.so" | grep -v ' A DUET_VM_[0-9]*$' | awk '{ print $3 }' | sort)
echo "$exported" >"$work/log"
[ -n "$exported" ] && ! echo "$exported" | grep -qv '^vm_[a-z0-9_]*@@DUET_VM_[0-9]*$'
ok "the shared library exports versioned vm_* and nothing else"
functions=$(echo "$exported" | sed 's/@@.*//')
# What a comment mentions is a declared name too.
diff <(echo "$declared") <(echo "$functions") >"$work/log"
ok "... just what the header declares"
local_names=$(nm -g --defined-only "$lib/libduetvm.a" | awk 'NF == 3 { print $3 }' | sort)
diff <(echo "$functions") <(echo "$local_names") >"$work/log"
ok "the static one shows the same names"
needed=$(readelf -dW "$lib/libduetvm.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
	grep -v '^\(libffi\|libc\|libgcc_s\|ld-linux.*\)\.so')
echo "$needed" >"$work/log"
[ -z "$needed" ]
ok "it needs libffi and the C library alone (libgcc_s is the compiler's)"
readelf -dW "$lib/libduetvm.so" | grep -q 'SONAME.*\[libduetvm\.so\.1\]'
ok "its name is libduetvm.so.1"
# Names of the inside are free for the program.
cat >"$work/clash.c" <<'END'
#include <duet/vm.h>
int err_set(void), isa_find(void), vm_decode(void), buf_append(void), fault_raise(void);
int err_set(void) { return 1; }
int isa_find(void) { return 1; }
int vm_decode(void) { return 1; }
int buf_append(void) { return 1; }
int fault_raise(void) { return 1; }
int main(void)
{
	struct bpf_insn code[] = { { .code = 0xb7, .imm = 42 }, { .code = 0x95 } };
	struct vm_function function = { "main", 0, 2, 0 };
	struct vm_image image = { VM_IMAGE_SIZES, code, 2, &function, 1 };
	uint64_t result = 0;
	struct vm *vm;

	if (vm_create(&image, NULL, &vm, NULL, 0, NULL) || vm_call(vm, 0, NULL, 0, &result, NULL))
		return 1;
	vm_destroy(vm);
	return result == 42 ? 0 : 1;
}
END
gcc "${cflags[@]}" "$work/clash.c" "${archive[@]}" \
	-o "$work/clash" 2>"$work/log" && "$work/clash" >>"$work/log" 2>&1 &&
	gcc "${cflags[@]}" "$work/clash.c" "${libs[@]}" -o "$work/clash2" 2>"$work/log" &&
	LD_LIBRARY_PATH=$lib "$work/clash2" >>"$work/log" 2>&1
ok "names of the inside do not clash with the program's"

# ---- C++, other languages --------------------------------------------------------------------------
if type -P g++ >/dev/null; then
	g++ -std=c++11 -Wall -Wextra -Werror "${cflags[@]}" tests/vm/embed.cc "${libs[@]}" \
		-o "$work/cpp" 2>"$work/log" &&
		[ "$(LD_LIBRARY_PATH=$lib "$work/cpp" 2>>"$work/log")" = "41 named" ]
	ok "a C++ program compiles and runs"
else
	clang-19 -x c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only "${cflags[@]}" \
		tests/vm/embed.cc 2>"$work/log"
	ok "a C++ program compiles"
fi
python3 - "$lib/libduetvm.so.1" >"$work/log" 2>&1 <<'END'
import ctypes, sys
for _ in range(3):
    library = ctypes.CDLL(sys.argv[1])
    image = (ctypes.c_size_t * 32)()
    vm = ctypes.c_void_p()
    why = ctypes.create_string_buffer(200)
    code = library.vm_create(image, None, ctypes.byref(vm), why, 200, None)
    assert code == -22 and b"struct vm_image" in why.value, (code, why.value)
END
ok "it can be loaded at run time"

echo "1..$count"
