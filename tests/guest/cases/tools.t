#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TAP: the shipped tools and many counters, against workloads of known size.

    tests/guest/cases/tools.t [ARCH KERNEL]...
"""
import csv
import io
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import guest
import tap

t = tap.Tap()
ROUNDS = (10, 1000, 100_000)
MUX = 200_000_000
PINNED = 20_000_000


def tables(part):
    """The rows of each table in JSON Lines."""
    return [json.loads(line)["rows"] for line in part.out.splitlines()
            if line.startswith('{"type":"table"')]


def value(row, column):
    return row[column]["value"] if column in row and row[column]["value"] is not None else -1


COMMON = """
cd {root}
FUNCPMU="$DUET funcpmu"
part list $DUET list tools
part help $DUET funcpmu --help
part none $DUET funcpmu
part typo $DUET funcpmu vfs_reed -- true
part mixed $DUET funcpmu vfs_read,sched:sched_switch..sched:sched_switch -- true
part kernel $DUET funcpmu -j vfs_read,ksys_read --by-process=1 -- cat /etc/passwd
part text $DUET funcpmu --hist=1 vfs_read -- cat /etc/passwd
part tracepoints $DUET funcpmu -j raw_syscalls:sys_enter..raw_syscalls:sys_exit -- true
part many-events $DUET funcpmu -e faults,cs,faults,cs,faults vfs_read -- true
part top $DUET ipctop -j -I 300 -d 1 --top 2 -- sh -c 'while :; do :; done'
part thread $DUET ipctop -j --by thread -p $$ -d 1
part cgroup $DUET ipctop --by cgroup -d 1
part top-typo $DUET ipctop --by user
part top-sort $DUET ipctop --sort size
"""

ARM64 = """
E='-e instructions:u'
LOOPS=$P/loops_workload
for n in {rounds}; do part loops-$n $DUET funcpmu -j $E $LOOPS:loops -- $LOOPS 1000 $n; done
part nested $DUET funcpmu -j $E $LOOPS:loops -- $LOOPS 100 1000 8
part nested-kernel $DUET funcpmu -j -e instructions $LOOPS:loops -- $LOOPS 100 1000 8
for functions in ksys_read ksys_read,vfs_read; do
	part $functions $DUET funcpmu -j -e instructions $functions -- $P/calls_workload zero 500
done
part usdt $DUET funcpmu -j -e instructions usdt:$LOOPS:loops:begin..usdt:$LOOPS:loops:end \
	-- $LOOPS marks 200 1000
part system-call $DUET funcpmu -j -e instructions \
	syscalls:sys_enter_getppid..syscalls:sys_exit_getppid -- $LOOPS parent 200 1
part threads $DUET funcpmu -j $E $LOOPS:loops -- $LOOPS 100 1000 3 8
for n in 8 10 12; do
	list=$(for i in $(seq $n); do printf 'instructions:u,'; done)
	part mux-$n $DUET run -j $MANY -e "${{list%,}}" -- $LOOPS mux {mux}
done
list=$(for i in $(seq 7); do printf 'instructions:uD,'; done)
for format in -j --csv -q; do
	part pinned$format $DUET run $format $MANY -e "${{list%,}}" -- $LOOPS mux {pinned}
done
part doctor $DUET doctor
"""


def check_common(g):
    arm = g.arch == "arm64"
    g.ok(g["list"].out.split() == ["funcpmu", "ipctop"], "duet list tools", g["list"])
    g.ok("--by-process" in g["help"].out and "FUNC[,FUNC...]" in g["help"].out, "--help", g["help"])
    g.ok(g["none"].status == 2 and "funcpmu: which FUNC?" in g["none"].err, "no function: 2",
         g["none"])
    g.ok(g["typo"].status == 1 and "vfs_reed" in g["typo"].err and "vfs_read" in g["typo"].err,
         "a function that is not there: nearest names", g["typo"])
    g.ok(g["mixed"].status == 2 and "cannot be mixed" in g["mixed"].err, "kinds are not mixed",
         g["mixed"])
    part = g["kernel"]
    rows = {row["function"]: row for table in tables(part) for row in table}
    event = "instructions" if arm else "task-clock"
    g.ok(part.status == 0 and set(rows) == {"vfs_read", "ksys_read"} and
         all(row["pid"] > 0 and row["calls"] > 2 for row in rows.values()) and
         value(rows["ksys_read"], event) > value(rows["ksys_read"], event + "_self") > 0,
         "two kernel functions, by process; self is less than all", part)
    g.ok(arm or "funcpmu: this machine counts no cycles" in part.err, "what stands in is told", part)
    part = g["text"]
    g.ok(part.status == 0 and re.search(r"^vfs_read +\d+ ", part.out, re.M) and "|" in part.out,
         "as text, with a distribution", part)
    part = g["tracepoints"]
    rows = [row for table in tables(part) for row in table]
    g.ok(part.status == 0 and len(rows) == 1 and rows[0]["calls"] > 5, "a pair of tracepoints", part)
    g.ok(g["many-events"].status == 1 and "takes at most 4 events" in g["many-events"].err,
         "five events are one too many", g["many-events"])
    part = g["top"]
    found = tables(part)
    g.ok(len(found) >= 2 and all(len(table) <= 2 for table in found) and
         any(row["comm"] == "sh" for table in found for row in table),
         "ipctop: a table each interval, two rows", part)
    if arm:
        spinner = [row for table in found for row in table if row["comm"] == "sh"]
        g.ok(spinner and all(0.1 < row["ipc"] < 10 for row in spinner), "ipctop: IPC", part)
    part = g["thread"]
    g.ok(part.status == 0 and all("tid" in row for table in tables(part) for row in table),
         "ipctop --by thread -p", part)
    g.ok(g["cgroup"].status == 0 and re.search(r"^/", g["cgroup"].out, re.M), "ipctop --by cgroup",
         g["cgroup"])
    g.ok(g["top-typo"].status == 2 and "process, thread or cgroup" in g["top-typo"].err,
         "ipctop --by user: 2", g["top-typo"])
    g.ok(g["top-sort"].status == 2 and "time, ipc or misses" in g["top-sort"].err,
         "ipctop --sort size: 2", g["top-sort"])


def check_arm64(g):
    event = "instructions:u"
    for n in ROUNDS:
        part = g[f"loops-{n}"]
        row = (tables(part) or [[{}]])[0][0] if tables(part) and tables(part)[0] else {}
        mean = row.get(event + "_mean") or -1
        wanted = 2 * n
        g.ok(row.get("calls") == 1000 and abs(mean - wanted) <= max(50, 0.005 * wanted),
             f"a function of {wanted} instructions: {mean:.1f} in {row.get('calls')} calls", part)
    part = g["nested"]
    row = tables(part)[0][0] if tables(part) and tables(part)[0] else {}
    # Level k of 8 holds k loops: 36 loops in all calls; self is one loop a call.
    self = value(row, event + "_self") / 800 if row else -1
    total = value(row, event) / 800 if row else -1
    g.ok(row.get("calls") == 800 and abs(self - 2000) <= 50, f"recursion: self {self:.1f} a call", part)
    g.ok(abs(total - 2000 * 4.5) <= 8 * 50, f"recursion: {total:.1f} a call, inner ones included",
         part)
    # With the kernel's part, and so the probes': those of user functions cost more than kprobes.
    part = g["nested-kernel"]
    row = tables(part)[0][0] if tables(part) and tables(part)[0] else {}
    self = value(row, "instructions_self") / 800 if row else -1
    total = value(row, "instructions") / 800 if row else -1
    g.ok(row.get("calls") == 800 and abs(self - 2000) <= 200 and abs(total - 2000 * 4.5) <= 900,
         f"recursion, with the kernel's part: self {self:.1f} a call, {total:.1f} with inner ones",
         part)
    means = []
    for name in ("ksys_read", "ksys_read,vfs_read"):
        rows = {row["function"]: row for table in tables(g[name]) for row in table}
        means.append(rows.get("ksys_read", {}).get("instructions_mean") or -1)
    g.ok(means[0] > 10000 and abs(means[1] - means[0]) <= 400,
         f"a kernel function does not pay for probes inside it: {means[0]} alone, {means[1]}",
         g["ksys_read"], g["ksys_read,vfs_read"])
    # Ticks are in the means; what the probes cost is 10 times as much.
    for name, least, most in (("usdt", 1900, 2300), ("system-call", 50, 500)):
        part = g[name]
        row = tables(part)[0][0] if tables(part) and tables(part)[0] else {}
        mean = row.get("instructions_mean") or -1
        g.ok(row.get("calls") == 200 and least < mean < most,
             f"a pair of other probes, {name}: {mean} a call", part)
    part = g["threads"]
    row = tables(part)[0][0] if tables(part) and tables(part)[0] else {}
    self = value(row, event + "_self") / 2400 if row else -1
    g.ok(row.get("calls") == 2400 and abs(self - 2000) <= 50,
         f"8 threads, 3 deep: self {self:.1f} a call", part)
    for n in (8, 10, 12):
        part = g[f"mux-{n}"]
        rows = [row for table in tables(part) for row in table if row["comm"] == "loops_workload"]
        sums = [column for row in rows[:1] for column in row.values() if isinstance(column, dict)]
        good = len(sums) == n
        g.ok(part.status == 0 and good and all(
            column["status"] == "scaled" and abs(column["value"] - MUX) <= 0.02 * MUX and
            abs(column["running"] - 6 / n) < 0.1 for column in sums),
             f"{n} events on 6 counters: {[(c['value'], c['running']) for c in sums]}", part)
    for format_, says in (("-j", '"not counted"'), ("--csv", "not counted"), ("-q", "not counted")):
        part = g[f"pinned{format_}"]
        g.ok(part.status == 0 and says in part.out, f"a 7th pinned event, {format_}", part)
    g.ok(re.search(r"^  armv8\w+ +6 +are free on CPU 0", g["doctor"].out, re.M),
         "doctor finds 6 counters", g["doctor"])
    g.ok(re.search(r"^  virtual machine +yes +linux,dummy-virt: ", g["doctor"].out, re.M),
         "and that it is a virtual machine", g["doctor"])


work = tap.work_folder("tools")
guests = sys.argv[1:] or "x86_64 6.12 arm64 6.12".split()
while guests:
    g = guest.Guest(t, guests.pop(0), guests.pop(0), work)
    script = COMMON + (ARM64 if g.arch == "arm64" else "")
    g.run(f"MANY={g.object('tests/guest/programs/many.c')}\n" + script.format(
        root=tap.ROOT, rounds=" ".join(map(str, ROUNDS)), mux=MUX,
        pinned=PINNED))
    check_common(g)
    if g.arch == "arm64":
        check_arm64(g)
t.done()
