#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Faults of the user half: each hook, each kind, endless loops and what ends them."""
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fault/fault.c")
OBJECT = os.path.join(tap.work_folder("fault"), "fault.o")
# 1,000 records, a child, and time for whatever is to happen
TARGET = ["perl", "-e", "getppid for 1..1000; fork or exit; sleep 300"]
SHORT = ["perl", "-e", "getppid for 1..10"]
PAUSE = ["sleep", "0.3"] # some ticks long

with open(SOURCE) as source:
    lines = source.read().splitlines()


def enum(prefix):
    names = re.findall(r"^\t(" + prefix + r"_\w+)", "\n".join(lines), re.M)
    return {name: number for number, name in enumerate(names)}


HOOKS, KINDS = enum("IN"), enum("DO")
SECTIONS = {"IN_OPEN": "user/open", "IN_INIT": "user/init", "IN_START": "user/start",
            "IN_INTERVAL": "user/interval/20ms", "IN_EVENT": "user/event/events",
            "IN_LOST": "user/lost", "IN_CHILD": "user/child/fork",
            "IN_SIGNAL": "user/signal/USR1", "IN_EXIT": "user/exit"}


def line_of(comment):
    return next(i + 1 for i, line in enumerate(lines) if comment in line)


def start(hook, kind, *command):
    process = tap.Process([tap.DUET, "run", OBJECT, "--set", f"HOOK={HOOKS[hook]}", "--set",
                           f"HOW={KINDS[kind]}", "--", *(command or TARGET)])
    if hook == "IN_SIGNAL":
        process.wait_for("started")
        process.signal(signal.SIGUSR1)
    elif hook in ("IN_EXIT", "IN_LOST") and not command: # told at the end
        process.wait_for("goes on")
        process.signal(signal.SIGINT)
    return process


def diagnostics(process):
    return [line for line in process.err.splitlines()
            if line.startswith("duet: ") and "/fault.c:" in line]


def has_dump(process):
    return re.search(r"^table_of_sleeps$", process.out, re.M) is not None


t = tap.Tap()
built = tap.duet("build", SOURCE, "-o", OBJECT)
t.ok(built.status == 0, "the script builds", built)

# ---- one fault in each hook ------------------------------------------------------------------
for hook, section in SECTIONS.items():
    p = start(hook, "DO_READ_NEAR_NULL")
    p.end()
    where = f"/fault.c:{line_of('line of read_at')}: {section}: read of 8 bytes at 0x10: "
    said = diagnostics(p)
    t.ok(p.status == 1 and len(said) == 1 and where in said[0], f"{section}: fault named once", p,
         where)
    t.ok(re.search(r"called: read_at\S* .*< memory_fault.*< fail_in .*< on_\w+", p.err),
         f"{section}: back trace", p)
    exits = len(re.findall(r"^exit: why", p.out, re.M))
    if hook == "IN_OPEN":
        t.ok(exits == 0, f"{section}: nothing was loaded, so user/exit does not run", p)
    else:
        t.ok(exits == 1 and has_dump(p), f"{section}: user/exit runs once, maps are dumped", p)

# ---- kinds of faults --------------------------------------------------------------------------
for kind, text in {
    "DO_WRITE_SNAPSHOT": (line_of("line of the snapshot"),
                          r"write of 8 bytes at 0x\w+: .*bpf_map_update_elem"),
    "DO_WRITE_CONSTANT": (line_of("line of the constant"),
                          r"write of 1 byte at 0x\w+: .*constants"),
    "DO_WRITE_NULL": (line_of("line of the NULL pointer"),
                      r"write of 4 bytes at 0x0: a NULL pointer"),
    "DO_WILD_CALL": (line_of("line of the wild call"), r"call of 0x4444440, which is no function"),
    "DO_WILD_READ": (line_of("line of read_at"), r"read of 8 bytes at 0x123456789000"),
    "DO_FREE_TWICE": (line_of("free(memory);") + 1, r"free\(\).*(twice|freed)"),
    "DO_DEEP_RECURSION": (None, r"stack overflow: .*: recursion without an end\?"),
    "DO_BIG_FRAMES": (None, r"stack overflow: .*: recursion without an end\?"),
    "DO_FAULT_IN_COMPARATOR": (line_of("line of read_at"),
                               r"read of 8 bytes at 0x18.*called: .*faulty"),
}.items():
    line, pattern = text
    p = start("IN_INTERVAL", kind)
    p.end()
    said = diagnostics(p)
    where = f"/fault.c:{line if line else '[0-9]+'}: user/interval/20ms: "
    t.ok(p.status == 1 and len(said) == 1 and re.search(where + pattern, said[0]), kind, p,
         where + pattern)
    t.ok(len(re.findall(r"^exit: why", p.out, re.M)) == 1 and has_dump(p),
         f"{kind}: user/exit runs once, maps are dumped", p)

p = start("IN_INTERVAL", "DO_STRLEN_NULL")
p.end()
said = diagnostics(p)
t.ok(p.status == 1 and len(said) == 1 and
     re.search(rf"/fault.c:{line_of('line of strlen')}: user/interval/20ms: read at 0x0 inside "
               r"strlen \(SIGSEGV\)", said[0]), "a fault inside libc", p)
t.ok("exit: why" not in p.out and has_dump(p), "after it no hook runs, the maps are dumped", p)

p = start("IN_EXIT", "DO_DIVIDE_BY_ZERO", *SHORT)
p.end()
t.ok(p.status == 0 and "7 / 0 = 0, 7 % 0 = 7" in p.out, "division by zero gives 0, as BPF has it",
     p)

p = start("IN_EXIT", "DO_STOP_7", *SHORT)
p.end()
t.ok(p.status == 7, "duet_stop(7) in user/exit", p)
p = start("IN_START", "DO_STOP_7")
p.end()
t.ok(p.status == 7 and "exit: why" in p.out, "duet_stop(7) in user/start", p)
for hook in ("IN_OPEN", "IN_INIT", "IN_START", "IN_INTERVAL", "IN_EXIT"):
    p = start(hook, "DO_RETURN_ERROR", *(SHORT if hook in ("IN_START", "IN_EXIT") else PAUSE))
    p.end()
    final = hook in ("IN_OPEN", "IN_INIT", "IN_EXIT")
    t.ok(p.status == (1 if final else 0) and p.err.count("Invalid argument") == 1,
         f"{hook}: a negative return is told" + ("" if final else ", the run goes on"), p)

# ---- endless loops ------------------------------------------------------------------------------
for hook, section in SECTIONS.items():
    p = start(hook, "DO_ENDLESS_LOOP")
    p.wait_for(f"in hook {HOOKS[hook]}")
    p.signal(signal.SIGINT)
    p.end()
    said = diagnostics(p)
    t.ok(p.status == 1 and len(said) == 1 and f": {section}: interrupted" in said[0],
         f"{section}: an endless loop, SIGINT", p)
for name, kind, hook, count in (("SIGINT twice", "DO_ENDLESS_LOOP", "IN_INTERVAL", 2),
                                ("SIGINT twice in user/exit", "DO_ENDLESS_LOOP", "IN_EXIT", 2),
                                ("comparator of qsort", "DO_ENDLESS_COMPARATOR", "IN_EXIT", 1),
                                ("sleeping for ever", "DO_ENDLESS_SLEEP", "IN_INTERVAL", 1)):
    p = start(hook, kind)
    p.wait_for(f"in hook {HOOKS[hook]}")
    for _ in range(count):
        p.signal(signal.SIGINT)
    p.end()
    t.ok(p.status == 1 and len(diagnostics(p)) == 1 and ": interrupted" in p.err,
         f"an endless loop: {name}", p)
p = start("IN_INTERVAL", "DO_ENDLESS_LOOP")
p.wait_for("in hook")
p.signal(signal.SIGTERM)
p.end()
t.ok(p.status == 1 and ": interrupted" in p.err and "exit: why" in p.out,
     "an endless loop: SIGTERM; user/exit still runs", p)
left = tap.processes_with("getppid for 1..")
t.ok(not left, "no process is left", *left)
t.done()
