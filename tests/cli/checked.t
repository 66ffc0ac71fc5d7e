#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""duet run --checked: whatever touches memory that is not the script's is a fault at its line, and
what does not runs as it does without."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checked/checked.c")
WORK = tap.work_folder("checked")
OBJECT = os.path.join(WORK, "checked.o")
CALLS = ["perl", "-e", "getppid for 1..20"]

with open(SOURCE) as source:
    text = source.read()
lines = text.splitlines()
HOW = {name: number for number, name in enumerate(re.findall(r"^\t(DO_\w+),", text, re.M))}

HEAP = "in the heap: freed, or past the end of its block\\?"
COPY = "a lookup's copy is valid until its hook returns, and not beyond its size"
NONE = "no memory of the script"
# How, what is on the line of the fault, what is said.
FAULTS = [
    ("FORGED_READ", "0x7ffffff0", "read of 4 bytes at 0x7ffffff0: " + NONE),
    ("FORGED_WRITE", "0x12345678", "write of 4 bytes at 0x12345678: " + NONE),
    ("PAST_GLOBAL", "bytes[past * 4096]", r"read of 1 byte at 0x\w+: "),
    ("BEFORE_GLOBAL", "bytes[-(long)", r"read of 1 byte at 0x\w+: "),
    ("WRITE_CONSTANT", "constant[1]", r"write of 1 byte at 0x\w+: constants can be changed in user/open only"),
    ("PAST_HEAP", "return heap[past]", r"read of 1 byte at 0x\w+: " + HEAP),
    ("FREED", "return heap[0]", r"read of 1 byte at 0x\w+: " + HEAP),
    ("REALLOCED", "return heap[0]", r"read of 1 byte at 0x\w+: " + HEAP),
    ("SHRUNK", "heap[10]", r"read of 1 byte at 0x\w+: " + HEAP),
    ("STALE_SNAPSHOT", "old_copy ?", r"read of 8 bytes at 0x\w+: " + COPY),
    ("PAST_SNAPSHOT", "value[1]", r"read of 8 bytes at 0x\w+: " + COPY),
    ("WRITE_SNAPSHOT", "*(u64 *)value", r"write of 8 bytes at 0x\w+: .*bpf_map_update_elem"),
    ("PAST_ARRAY", "number)[3]", r"read of 8 bytes at 0x\w+: " + NONE),
    ("MAP_ITSELF", "(volatile int *)&table", r"read of 4 bytes at 0x\w+: a map is no memory"),
    ("DEAD_FRAME", "*dead()", r"read of 8 bytes at 0x\w+: "),
    ("ARGUMENT_PAST", "options)[sizeof", r"read of 1 byte at 0x\w+: "),
    ("ARGUMENT_WRITE", "options)->pid", r"write of 4 bytes at 0x\w+: "),
    ("MEMCPY_FROM", "memcpy(bytes", r"memcpy\(\): argument 2: read of 8 bytes at 0x1234: " + NONE),
    ("MEMCPY_TO", None, r"memcpy\(\): argument 1: write of 16 bytes at 0x\w+: " + HEAP),
    ("SNPRINTF_TO", None, r"__snprintf_n\(\): write of 100000 bytes at 0x\w+: past the end of the script's variables"),
    ("SNPRINTF_STRING", None, r"__snprintf_n\(\): read of a string at 0x1234: " + NONE),
    ("SNPRINTF_FORMAT", None, r"__snprintf_n\(\): argument 3: read of a string at 0x1234: " + NONE),
    ("SNPRINTF_ITSELF", None, "printf: a text lies in the buffer that is written"),
    ("STRCAT_ITSELF", "strcat(", r"strcat\(\): bad argument: 0x\w+"),
    ("PRINTF_N", "__printf_n", "printf: `%n` does not exist in checked mode"),
    ("QSORT_BASE", "qsort(block, 9", r"qsort\(\): argument 1: write of 9 bytes at 0x\w+: " + HEAP),
    ("QSORT_COMPARATOR", "qsort(bytes", r"qsort\(\): argument 4: 0x1234 is no function of the program"),
    ("QSORT_FREES", "free(block)", r"free\(\) or realloc\(\) of memory that a function of the C library is working on"),
    ("STRLEN_ENDLESS", "strlen(block)", r"strlen\(\): argument 1: the string at 0x\w+ has no end in its memory"),
    ("STRCPY_TOO_LONG", "strcpy(block", r"strcpy\(\): bad argument: 0x\w+: " + HEAP),
    ("STRTOL_END", "strtol(", r"strtol\(\): argument 2: write of 8 bytes at 0x1234: " + NONE),
    ("LOOKUP_KEY", "bpf_map_lookup_elem(&table, (void", r"bpf_map_lookup_elem\(\): read of 4 bytes at 0x1234: " + NONE),
    ("UPDATE_VALUE", "&key, (void *)", r"bpf_map_update_elem\(\): read of 8 bytes at 0x1234: " + NONE),
    ("HIST_FORGED", "hist_quantile", r"hist_quantile\(\): argument 1: read of 528 bytes at 0x1234: " + NONE),
    ("COMM", "get_current_comm", r"bpf_get_current_comm\(\): write of 16 bytes at 0x1234: " + NONE),
    ("PRINT_MAP_TEXT", "__print_map", r"__print_map\(\): argument 2: read of a string at 0x1234: " + NONE),
    ("FILE_FORGED", "fputs(", "the stream is none that the script opened"),
    ("DOUBLE_FREE", None, r"free\(\) of an address that malloc\(\) did not return, or twice"),
    ("WILD_CALL", "return wild()", "call of 0x1234, which is no function"),
    ("ATOMIC_PAST", "__sync_fetch_and_add((u64", r"write of 8 bytes at 0x\w+: " + HEAP),
    ("EVENT_PAST", "record)[size / 8]", r"read of 8 bytes at 0x\w+: "),
    ("EVENT_STALE", "*last_record", r"read of 8 bytes at 0x\w+: "),
]

# What is not on the list, and how that is said.
REFUSED = [
    ("system", 'extern int system(const char *); SEC("user/init") int f(void) { return system("true"); }'),
    ("open", '#include <fcntl.h>\nSEC("user/init") int f(void) { return open("/dev/null", 0, 0); }'),
    ("getline", '#include <stdio.h>\nSEC("user/init") int f(void) { return getline(0, 0, stdin); }'),
    ("gets", 'extern char *gets(char *); static char b[9]; SEC("user/init") int f(void) { return !gets(b); }'),
]


def run(*arguments):
    return subprocess.run([tap.DUET, "run", *arguments], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=tap.PATIENCE)


def build(name, source):
    path = os.path.join(WORK, name + ".c")
    with open(path, "w") as file:
        file.write("#include <duet.h>\n" + source + "\n")
    return path


t = tap.Tap()
built = subprocess.run([tap.DUET, "build", SOURCE, "-o", OBJECT], capture_output=True, text=True)
t.ok(built.returncode == 0, "the script compiles", built.stderr)

whole = run("--checked", OBJECT, "--", *CALLS)
t.ok(whole.returncode == 0 and whole.stdout == "guards whole\n" and not whole.stderr,
     "nothing bad, nothing said", whole.stdout, whole.stderr)
t.ok(len(FAULTS) == len(HOW) - 1, "every way is tried")

for how, line, message in FAULTS:
    ran = run("--checked", OBJECT, "--set", f"HOW={HOW['DO_' + how]}", "--", *CALLS)
    said = [text for text in ran.stderr.splitlines() if "checked.c:" in text]
    good = (ran.returncode == 1 and len(said) == 1 and re.search(message, said[0])
            and "guards whole" in ran.stdout.splitlines())
    number = int(re.search(r"checked\.c:(\d+)", said[0]).group(1)) if said else 0
    if good and line:
        good = line in lines[number - 1]
    t.ok(good, f"{how}: a fault at its line, canaries whole", f"wanted: {message}", ran.stdout,
         ran.stderr)

for name, source in REFUSED:
    ran = run("--checked", build(name, source), "--", "true")
    t.ok(ran.returncode == 1 and re.search(
        rf"^duet: \S+/{name}\.c:\d+: {name}\(\) cannot be called in checked mode: .*: use a function "
        r"of `duet list functions --checked`", ran.stderr) and len(ran.stderr.splitlines()) == 1,
         f"{name}() is refused, in one line", ran.stderr)

ran = run("--checked", build("types", 'extern void *memcpy(double, void *, void *, unsigned long);\n'
                             'SEC("user/init") int f(void) { return !memcpy(1.0, 0, 0, 1); }'), "--", "true")
t.ok(ran.returncode == 1, "a prototype that hides an argument is refused", ran.stderr)
ran = run("--checked", build("variable", 'extern char **environ; SEC("user/init") int f(void) '
                             '{ return !environ; }'), "--", "true")
t.ok(ran.returncode == 1 and "`environ` is the C library's" in ran.stderr,
     "variables of the C library are refused", ran.stderr)

# ---- what is right runs as it does without ------------------------------------------------------
LENT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <errno.h>
#include <ctype.h>
SEC("user/init") int f(void)
{
	char line[64], *save = 0, parts[] = "a b c";
	time_t when = 86400 * 365;
	struct libc_tm tm;
	FILE *file = fopen("/proc/self/comm", "r");

	printf("%s\n", getenv("CHECKED") ?: "none");
	printf("%s %d\n", strerror(2), errno * 0);
	printf("%s\n", file && fgets(line, sizeof(line), file) ? line : "none");
	if (file)
		fclose(file);
	gmtime_r(&when, &tm);
	strftime(line, sizeof(line), "%Y-%m-%d %Z", &tm);
	printf("%s\n", line);
	for (char *part = strtok_r(parts, " ", &save); part; part = strtok_r(0, " ", &save))
		printf("%s%c", part, toupper('x'));
	printf("%.3s|%-8s|%*d|%5.1f|%c|%%\n", "abcdef", "left", 5, 42, 2.5, 'c');
	fprintf(stdout, "%d %llx\n", isalpha('a') != 0, 255ULL);
	fputs("end\n", stdout);
	return 0;
}
"""
os.environ["CHECKED"] = "value"
lent = build("lent", LENT)
plain, checked = run(lent, "--", "true"), run("--checked", lent, "--", "true")
t.ok(plain.returncode == 0 and plain.stdout == checked.stdout and plain.stderr == checked.stderr,
     "memory that the C library lends", plain.stdout, plain.stderr, checked.stdout, checked.stderr)


def shape(text):
    """What does not change from run to run."""
    return sorted({re.sub(r"\s+", " ", line) for line in text.splitlines()
                   if not re.search(r"\d|%|^\s*$", line)})


SCRIPTS = ["tests/cli/user.c"]
for folder in ("tests/scripts", "examples"):
    for name in sorted(os.listdir(os.path.join(tap.ROOT, folder))):
        path = os.path.join(folder, name)
        if name.endswith(".c"):
            with open(os.path.join(tap.ROOT, path)) as source:
                if "duet.h" in source.read():
                    SCRIPTS.append(path)
for path in SCRIPTS:
    script = os.path.join(tap.ROOT, path)
    # What ticks do differs from run to run, on a busy machine too: three attempts.
    for _ in range(3):
        plain = run(script, "-d", "2", "--", "sh", "-c", "ls /; sleep 0.3")
        checked = run("--checked", script, "-d", "2", "--", "sh", "-c", "ls /; sleep 0.3")
        same = (plain.returncode == checked.returncode
                and shape(plain.stdout) == shape(checked.stdout)
                and shape(plain.stderr) == shape(checked.stderr))
        if same:
            break
    t.ok(same, f"{path} as without --checked", plain.returncode, shape(plain.stdout),
         shape(plain.stderr), "checked:", checked.returncode, shape(checked.stdout),
         shape(checked.stderr))
t.done()
