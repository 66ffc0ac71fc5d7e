#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Whole runs of the sanitizer build: no leak, no invalid access, on good and on bad ways out."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap

SANITIZED = os.environ.get("DUET_TEST_SANITIZED", os.path.join(tap.ROOT, "build-sanitize"))
EXAMPLES = os.path.join(tap.ROOT, "examples")
FAULT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fault/fault.c")
WORK = tap.work_folder("sanitize")
os.environ["ASAN_OPTIONS"] = ("allow_user_segv_handler=1:detect_leaks=1:abort_on_error=0:"
                              f"exitcode=99:log_path={WORK}/asan")
os.environ["UBSAN_OPTIONS"] = f"print_stacktrace=1:halt_on_error=1:exitcode=99:log_path={WORK}/ub"
DUET = os.path.join(SANITIZED, "duet")
WORKLOAD = [os.path.join(SANITIZED, "workload"), "a=1M", "b=2M"]
t = tap.Tap()


def logs():
    text = ""
    for name in sorted(os.listdir(WORK)):
        if name.startswith(("asan", "ub")):
            with open(os.path.join(WORK, name)) as file:
                text += file.read()
            os.unlink(os.path.join(WORK, name))
    return text


def clean(name, process, *statuses):
    process.end()
    said = logs()
    # A command that duet starts is none of ours, but a leak in it would be logged too.
    t.ok(process.status in statuses and not said, name, process, said)


def run(*argv):
    return tap.Process([DUET, *argv])


def obj(source):
    target = os.path.join(WORK, os.path.basename(source)[:-2] + ".o")
    clean(f"build {os.path.basename(source)}", run("build", source, "-o", target), 0)
    return target


objects = {name: obj(os.path.join(EXAMPLES, name + ".c"))
           for name in ("hello", "ipc", "events", "threshold")}
fault = obj(FAULT)
clean("inspect --dis", run("inspect", objects["ipc"], "--dis"), 0)
clean("dis", run("dis", objects["ipc"]), 0)
clean("dis --jit", run("dis", objects["ipc"], "--jit"), 0)
clean("dis of bytes, --jit", run("dis", "b7000000000000009500000000000000", "--jit"), 0)
assembled = os.path.join(WORK, "text.s")
with open(assembled, "w") as file:
    file.write('.string text "it runs"\n.space counter 8\n.function report "user/exit"\n'
               "loop: r1 = text ll\nr2 = counter ll\nr3 = 0\ncall __printf_n\ncall other\n"
               "if r0 != 0 goto loop\nexit\n.function other\nr0 = 0\nexit\n")
clean("asm", run("asm", assembled), 0)
clean("asm --hex of what it cannot", run("asm", assembled, "--hex"), 1)
clean("run of assembler text", run("run", assembled, "-q", "--", "true"), 0)
with open(assembled, "a") as file:
    file.write("r1 = r11\n")
clean("asm: a mistake", run("asm", assembled), 1)
clean("list hooks", run("list", "hooks"), 0)
clean("doctor", run("doctor"), 0, 1)
clean("cflags", run("cflags"), 0)
clean("--dry-run", run("run", objects["ipc"], "-q", "--dry-run"), 0)
for name in ("hello", "events", "threshold"):
    for form in ([], ["--json"], ["--csv"]):
        clean(" ".join([name, *form]),
              run("run", objects[name], "-q", "-d", "300ms", *form, "--", *WORKLOAD), 0)
clean("ipc, whose events this machine may lack",
      run("run", objects["ipc"], "-q", "-d", "1", "--", *WORKLOAD), 0)
clean("system-wide", run("run", objects["hello"], "-q", "-d", "200ms"), 0)
for number in (signal.SIGINT, signal.SIGTERM):
    p = run("run", objects["hello"], "--", "sleep", "300")
    p.wait_for("attached", 3)
    clean(f"signal {number}", p.signal(number), 0, 1)
plain = os.path.join(tap.BUILD, "tests/programs")
for name in ("tracepoint_hist", "bpf_iter", "printk"):
    clean(name, run("run", f"{plain}/{name}.bpf.o", "-q", "--", f"{plain}/workload", "3"), 0)

# ---- bad ways out ---------------------------------------------------------------------------------
perl = ["perl", "-e", "getppid for 1..10"]
for hook in range(1, 6):
    clean(f"a fault in hook {hook}", run("run", fault, "-q", "--set", f"HOOK={hook}", "--set",
                                         "HOW=1", "--", "perl", "-e", "getppid; sleep 1"), 1)
for how in (2, 3, 4, 5, 6, 8, 9, 12):
    clean(f"a fault of kind {how} in user/exit",
          run("run", fault, "-q", "--set", "HOOK=9", "--set", f"HOW={how}", "--", *perl), 1)
clean("CMD not found", run("run", fault, "-q", "--", "/nonexistent"), 127)
clean("no such option", run("run", fault, "--nonsense"), 1, 2)
clean("a bad --set", run("run", fault, "-q", "--set", "HOOK=x", "--", "true"), 1)
clean("no such map", run("run", fault, "-q", "--map", "nomap.max_entries=3", "--", "true"), 1)
clean("-p of nobody", run("run", fault, "-q", "-p", "4194303"), 1)
clean("output is full", run("run", fault, "-q", "-o", "/dev/full", "--", "true"), 1)
with open(fault, "rb") as file:
    whole = file.read()
for size in (0, 40, 64, 500, len(whole) // 3, len(whole) // 2, len(whole) - 64):
    cut = os.path.join(WORK, "cut.o")
    with open(cut, "wb") as file:
        file.write(whole[:size])
    clean(f"an object cut to {size} bytes", run("run", cut, "-q", "--", "true"), 1)
t.done()
