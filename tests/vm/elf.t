#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TAP: bpf_conformance_plugin --elf: objects as the public runner makes them, and of compilers."""
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap  # noqa: E402

os.chdir(tap.ROOT)
PLUGIN = os.environ.get("DUET_PLUGIN") or os.path.join(tap.BUILD, "tests/bpf_conformance_plugin")
work = tap.work_folder("vm-elf")
tests = tap.Tap()


def plugin(program, *options, memory=None):
    words = [PLUGIN] + ([memory] if memory else []) + [*options, "--elf"]
    done = subprocess.run(words, input=program, capture_output=True, timeout=60)
    return done.returncode, done.stdout.decode().strip(), done.stderr.decode().strip()


def runner_object(code, section=".text", function="main"):
    """What the runner makes: names of symbols among those of sections, sections aligned to 4."""
    strings = b"\0.shstrtab\0.symtab\0" + section.encode() + b"\0" + function.encode() + b"\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", strings.index(b"\0" + function.encode() + b"\0") + 1,
                                      0x12, 0, 3, 0, len(code))
    body, headers, at = b"", [bytes(64)], 64

    def add(name, kind, flags, data, link=0, info=0, entry=0, align=4):
        nonlocal body, at
        padding = -(at - 4) % 8  # never a multiple of 8
        body += bytes(padding) + data
        headers.append(struct.pack("<IIQQQQIIQQ", strings.index(b"\0" + name + b"\0") + 1, kind, flags,
                                   0, at + padding, len(data), link, info, align, entry))
        at += padding + len(data)

    add(b".shstrtab", 3, 0, strings, align=1)
    add(b".symtab", 2, 0, symbols, link=1, info=1, entry=24)
    add(section.encode(), 1, 6, code)
    return b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 1, 247, 1, 0, 0, at, 0, 64, 0, 0,
                                                     64, len(headers), 1) + body + b"".join(headers)


def as_hex(data):
    return " ".join(f"{byte:02x}" for byte in data).encode() + b"\n"


def same_as_bytes():
    """Own cases as objects: the result must be that of the bytes alone."""
    random.seed(1)
    with open("tests/vm/cases/hand.tsv") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    bad = []
    for name, memory, program, wanted in (row[:4] for row in random.sample(rows, min(40, len(rows)))):
        status, out, err = plugin(as_hex(runner_object(bytes.fromhex(program))), "--interp",
                                  memory=memory)
        if status or int(out, 16) != int(wanted, 16):
            bad.append(f"{name}: {out} {err}, not {wanted}")
    tests.ok(not bad, f"{min(40, len(rows))} of our own cases, as the runner's objects", *bad)


EXIT = bytes.fromhex("9500000000000000")
answer = bytes.fromhex("b70000002a000000") + EXIT
same_as_bytes()
for engine in ("--interp", "--jit", "--checked"):
    tests.ok(plugin(runner_object(answer), engine)[:2] == (0, "2a"), f"{engine}: an object as it is")
length = bytes.fromhex("bf20000000000000") + EXIT
tests.ok(plugin(as_hex(runner_object(length, "xdp", "other")), memory="01 02 03")[:2] == (0, "3"),
         "another section and name; memory")

source = os.path.join(work, "program.c")
with open(source, "w") as file:
    file.write("""typedef unsigned long long u64;
static const int squares[] = { 0, 1, 4, 9, 16, 25 };
int counter = 30;
static __attribute__((noinline)) u64 twice(const unsigned char *at) { return 2 * *at; }
u64 helper(const unsigned char *at) { return twice(at) + counter; }
__attribute__((section("program"))) u64 entry(const unsigned char *memory, u64 size)
{
	int *volatile where = &counter;
	*where += squares[memory[0] % 6];
	return helper(memory + 1) + size;
}
""")
for compiler in ([["clang-19", "-target", "bpf"], ["clang-14", "-target", "bpf"], ["bpf-gcc"]]):
    made = source[:-2] + "." + compiler[0] + ".o"
    subprocess.run([*compiler, "-O2", "-c", source, "-o", made], check=True)
    with open(made, "rb") as file:
        status, out, err = plugin(file.read(), memory="05 07")
    # 25 of squares, 30 of counter, 14 of twice, 2 of size
    wanted = hex(25 + 30 + 14 + 2)[2:]
    tests.ok((status, out) == (0, wanted), f"{compiler[0]}: calls between sections, data", out, err)

assembled = os.path.join(work, "text.s")
with open(assembled, "w") as file:
    file.write('.string text "*"\n.function other\nr0 = 1\nexit\n.function main\n'
               "r1 = text ll\nr0 = *(u8 *)(r1)\nexit\n")
subprocess.run([tap.DUET, "asm", assembled], check=True)
with open(assembled[:-2] + ".o", "rb") as file:
    tests.ok(plugin(file.read())[:2] == (0, "2a"), "duet asm: main, not at the start of its section")

# ---- refusals ------------------------------------------------------------------------------------
for name, program, why in (
        ("text that is neither", b"hello", "neither an object nor one in hex bytes"),
        ("an object for another machine", open("/bin/true", "rb").read(), "no little endian BPF object"),
        ("half an object", runner_object(answer)[:200], "cut short"),
        ("nothing", b"", "cut short"),
        ("code that is not sound", runner_object(answer[:8]), "")):
    status, out, err = plugin(program)
    tests.ok(status == 1 and not out and why in err and err, f"{name}: refused", status, out, err)
whole, crashed = runner_object(answer), []
for seed in range(300):
    random.seed(seed)
    broken = bytearray(whole)
    for _ in range(random.randrange(1, 4)):
        broken[random.randrange(len(broken))] = random.randrange(256)
    status = plugin(bytes(broken), "--interp")[0]
    if status not in (0, 1):
        crashed.append(f"seed {seed}: status {status}")
tests.ok(not crashed, "300 broken objects: refused or run, never a crash", *crashed)
tests.done()
