#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is no script, and what this machine or user cannot do: one line that names it, status 1."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fault/fault.c")
WORK = tap.work_folder("bad_input")
t = tap.Tap()


def path(name):
    return os.path.join(WORK, name)


def write(name, data):
    with open(path(name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path(name)


def refused(name, pattern, *argv, before=()):
    p = tap.run(*before, tap.DUET, "run", *argv)
    said = p.err.splitlines()
    t.ok(p.status == 1 and len(said) == 1 and re.search(pattern, said[0]) and not p.out, name, p,
         f"wanted: {pattern}")


def script(name, text):
    return write(name + ".c", "#include <duet.h>\n" + text)


built = tap.duet("build", SOURCE, "-o", path("good.o"))
t.ok(built.status == 0, "the script builds", built)
with open(path("good.o"), "rb") as file:
    good = file.read()

# ---- files ----------------------------------------------------------------------------------
refused("an empty file", "empty.o: not an ELF object", write("empty.o", ""), "-q", "--", "true")
refused("a text", "text.o: not an ELF object", write("text.o", "hello\n"), "-q", "--", "true")
os.mkdir(path("folder.o"))
refused("a folder", "folder.o: Is a directory", path("folder.o"), "-q", "--", "true")
refused("no such file", "absent.o: No such file", path("absent.o"), "-q", "--", "true")
refused("a program of this machine", "an object for .*, not for BPF", "/bin/true", "-q")
for size in (63, 64, 1000, len(good) // 2, len(good) - 1):
    refused(f"an object cut to {size} bytes", "cut.o: ", write("cut.o", good[:size]), "-q", "--",
            "true")
# Another architecture: the note that duet.h leaves is made arm64's, the code is the same.
other = good.replace(b"x86_64\0", b"arm64\0\0") if b"x86_64\0" in good else \
    good.replace(b"arm64\0", b"x86_64")
refused("another architecture", "built for .*, and this machine is .*--arch",
        write("other.o", other), "-q", "--", "true")
write("plain.c", 'struct { int (*type)[1]; int *key, *value; int (*max_entries)[1]; } m\n'
                 '__attribute__((section(".maps"), used));\n'
                 '__attribute__((section("raw_tp/sched_switch"), used)) int p(void *c)\n'
                 '{ return ((int (*)(void *, void *))3)(&m, c) != 0; }\n'
                 'char l[] __attribute__((section("license"), used)) = "GPL";\n')
made = tap.run("clang-19" if os.path.exists("/usr/bin/clang-19") else "clang-14", "-target", "bpf",
               "-O2", "-c", path("plain.c"), "-o", path("nobtf.o"))
t.ok(made.status == 0, "an object without BTF is made", made)
refused("an object without BTF", "nobtf.o: .*-g", path("nobtf.o"), "-q", "--", "true")

# ---- scripts ------------------------------------------------------------------------------------
refused("a hook that does not exist", r"user/extt.*did you mean user/exit",
        script("hook", 'SEC("user/extt") int r(void) { return 0; }\n'), "-q", "--", "true")
event = script("event", 'RING(events, 4096);\n'
                        'SEC("user/event/evemts") int r(const u64 *v, u64 n) { return 0; }\n')
refused("a map that does not exist", r"user/event/evemts.*no map `evemts`: did you mean events\?",
        event, "-q", "--", "true")
refused("... with --dry-run too", "no map `evemts`", event, "-q", "--dry-run")
refused("a map that is no ring", "user/event/m.*neither",
        script("noring", 'HASH(m, 8, u32, u32);\n'
                         'SEC("user/event/m") int r(const u64 *v, u64 n) { return 0; }\n'),
        "-q", "--", "true")
refused("a section that does not exist", r'SEC\("kprob/vfs_read"\).*did you mean kprobe',
        script("section", 'SEC("kprob/vfs_read") int p(void *c) { return 0; }\n'), "-q", "--",
        "true")
refused("a tracepoint that does not exist", "sys_enter_reed.*nearest: .*sys_enter_read",
        script("probe", 'SEC("tp/syscalls/sys_enter_reed") int p(void *c) { return 0; }\n'), "-q",
        "--", "true")
refused("a function of a binary that does not exist", "uprobe/.*:mainn",
        script("uprobe", f'SEC("uprobe/{tap.BUILD}/workload:mainn") int p(void *c) '
                         '{ return 0; }\n'), "-q", "--", "true")
refused("a signal that is ours", "user/signal/ALRM.*cannot be a hook",
        script("alarm", 'SEC("user/signal/ALRM") int p(void) { return 0; }\n'), "-q", "--", "true")
refused("a verifier failure", r"/verifier\.c:5: program p: .*(NULL|null|test the pointer)",
        script("verifier", 'HASH(m, 8, u32, u32);\nSEC("raw_tp/sched_switch") int p(void *c) '
                           '{ u32 k = 0;\nu32 *v = bpf_map_lookup_elem(&m, &k);\nreturn *v; }\n'),
        "-q", "--", "true")
refused("a wrong type of a hook's argument", "user/exit",
        script("argument", 'SEC("user/exit") int r(const struct duet_tick *t) { return 0; }\n'),
        "-q", "--", "true")

# ---- users and limits ------------------------------------------------------------------------------
os.chmod(path("good.o"), 0o644)
refused("not root", "not permitted: run as root", path("good.o"), "-q", "--", "true",
        before=("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"))
for files in (12, 40):
    # prlimit takes the hard limit too; without CAP_SYS_RESOURCE nothing can be raised
    refused(f"{files} open files", r"open files: \d+ needed, \d+ granted: ", path("good.o"), "-q",
            "--", "true",
            before=("setpriv", "--bounding-set=-sys_resource", "prlimit", f"--nofile={files}"))
p = tap.run("prlimit", f"--nofile=12:{os.sysconf('SC_OPEN_MAX')}", tap.DUET, "run",
            path("good.o"), "-q", "--", "sh", "-c", "ulimit -n")
t.ok(p.status == 0 and re.search("^12$", p.out, re.M),
     "a soft limit is raised, and CMD gets its own back", p)
t.done()
