#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Signals at any moment: each run ends by itself with a report or one error line, and leaves
nothing behind. DUET_TEST_SEED repeats the moments of another run."""
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(HERE, "fault/fault.c")
WORK = tap.work_folder("signals")
OBJECT = os.path.join(WORK, "fault.o")
CACHE = os.path.join(WORK, "cache")
SEED = int(os.environ.get("DUET_TEST_SEED", random.randrange(1 << 30)))
print(f"# seed {SEED}")
random.seed(SEED)
os.environ["XDG_CACHE_HOME"] = CACHE
LONG = ["perl", "-e", "getppid for 1..10; sleep 300"]
SHORT = ["perl", "-e", "getppid for 1..10"]
t = tap.Tap()


def left_over():
    """What a run must not leave: processes, files that are half made."""
    found = tap.processes_with(WORK)
    for folder, _, names in os.walk(WORK):
        found += [os.path.join(folder, name) for name in names
                  if "tmp-" in name or ".duet-" in name]
    return found


def fresh_script(number):
    """One that is not in the cache."""
    path = os.path.join(WORK, f"script{number}.c")
    with open(SOURCE) as source, open(path, "w") as copy:
        copy.write(source.read() + f"\n// {number}\n")
    return path


def sound(p, output):
    """A report and 0, or one error line and 1; or ended by the signal before main()."""
    said = [line for line in p.err.splitlines() if line.startswith("duet: ")]
    reports = len(re.findall(r"^exit: why", p.out + output, re.M))
    if p.status == 0:
        return reports == 1 and not said
    if p.status == 1:
        return len(said) == 1 and "interrupted" in said[0] and reports <= 1
    return p.status in (128 + signal.SIGINT, 128 + signal.SIGTERM) and not reports and not said


def interrupted(name, argv, numbers, span, output=None):
    """One run of @argv, signalled at a random moment of @span seconds."""
    p = tap.Process([tap.DUET, "run", *argv])
    for number in numbers:
        time.sleep(random.random() * span)
        p.signal(number)
    p.end()
    text = ""
    if output and os.path.exists(output):
        with open(output) as file:
            text = file.read()
        os.unlink(output)
    if not sound(p, text) or (output and bool(text) != (p.status == 0)):
        return f"{name}: {p}\n-- -o\n{text}"
    return None


def series(name, count, argv_of, numbers, span, output=None):
    bad = [fault for fault in (interrupted(name, argv_of(i), numbers, span, output)
                               for i in range(count)) if fault]
    t.ok(not bad, f"{name}: {count} runs", *bad[:2])
    left = left_over()
    t.ok(not left, f"{name}: nothing is left", *left)


built = tap.duet("build", SOURCE, "-o", OBJECT)
t.ok(built.status == 0, "the script builds", built)

# How long does a run take here and now? Moments are spread over that.
begin = time.monotonic()
p = tap.duet("run", OBJECT, "-q", "--", *SHORT)
run_time = time.monotonic() - begin
begin = time.monotonic()
q = tap.duet("run", fresh_script(0), "-q", "--", *SHORT)
compile_time = time.monotonic() - begin
t.ok(p.status == 0 and q.status == 0, "runs without a signal", p, q)

OUT = os.path.join(WORK, "report.txt")
series("SIGINT, .o and a long command", 20, lambda i: [OBJECT, "-q", "--", *LONG],
       [signal.SIGINT], 1.5 * run_time)
series("SIGINT, .o and a short command, -o", 15, lambda i: [OBJECT, "-q", "-o", OUT, "--", *SHORT],
       [signal.SIGINT], 1.2 * run_time, OUT)
series("SIGINT, system-wide", 5, lambda i: [OBJECT, "-q", "-d", "300"], [signal.SIGINT],
       1.5 * run_time)
series("SIGINT, compiling", 15, lambda i: [fresh_script(i + 1), "-q", "--", *LONG],
       [signal.SIGINT], 1.2 * compile_time)
series("SIGTERM", 10, lambda i: [OBJECT, "-q", "--", *LONG], [signal.SIGTERM], 1.5 * run_time)
series("SIGINT twice", 10, lambda i: [OBJECT, "-q", "--", *LONG], [signal.SIGINT] * 2,
       0.8 * run_time)

# ---- SIGKILL: CMD that was not released goes too, a released one goes on -----------------------
released = []
for i in range(15):
    mark = f"{WORK}/mark{i}"
    p = tap.Process([tap.DUET, "run", OBJECT, "-q", "--", "perl", "-e",
                     f"getppid; sleep 300; # {mark}"], start_new_session=True)
    time.sleep(random.random() * 1.5 * run_time)
    p.signal(signal.SIGKILL)
    p.end()
    for _ in range(1000):  # what is a copy of duet is to end
        alive = tap.processes_with(mark)
        if not any("duet run" in line for line in alive):
            break
        time.sleep(0.01)
    t.ok(not any("duet run" in line for line in alive) and len(alive) <= 1,
         f"SIGKILL {i}: nothing but a command that was released goes on", *alive)
    released += alive
for line in released:
    os.kill(int(line.split()[0]), signal.SIGKILL)

# ---- targets that die ---------------------------------------------------------------------------
sleeper = subprocess.Popen(["sleep", "300"])
p = tap.Process([tap.DUET, "run", OBJECT, "-p", str(sleeper.pid)])
p.wait_for("^duet: attached")
sleeper.kill()
sleeper.wait()
p.end()
t.ok(p.status == 0 and "exit: why" in p.out, "-p of a process that is killed: the report", p)
p = tap.duet("run", OBJECT, "-q", "-p", str(sleeper.pid))
t.ok(p.status == 1 and f"-p {sleeper.pid}: " in p.err, "-p of a process that is gone", p)
for script, status in (("kill -9 $$", 137), ("kill -TERM $$", 143), ("exit 3", 3)):
    p = tap.duet("run", OBJECT, "-q", "--", "sh", "-c", script)
    t.ok(p.status == status and "exit: why" in p.out, f"CMD: {script}: status {status}", p)
p = tap.duet("run", OBJECT, "-q", "--", "/nonexistent/command")
t.ok(p.status == 127 and p.err.count("duet: ") == 1, "CMD not found: 127", p)
p = tap.duet("run", OBJECT, "-q", "--", OBJECT)
t.ok(p.status == 126 and p.err.count("duet: ") == 1, "CMD cannot be executed: 126", p)

# ---- signals that the script takes ---------------------------------------------------------------
p = tap.Process([tap.DUET, "run", OBJECT, "-q", "--", *LONG])
p.wait_for("^started")
for _ in range(20):
    p.signal(signal.SIGUSR1)
p.signal(signal.SIGINT)
p.end()
t.ok(p.status == 0 and "exit: why" in p.out, "USR1 of user/signal/USR1, then SIGINT", p)
left = left_over()
t.ok(not left, "nothing is left", *left)
t.done()
