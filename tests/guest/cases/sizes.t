#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TAP: threads and processes of known size: none is lost, none is charged what another one ran.

    tests/guest/cases/sizes.t [ARCH KERNEL]...

Only the arm64 guests have a counter of instructions, exact on one CPU.
"""
import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import guest
import tap

t = tap.Tap()
BRIEF = 1000
# What a thread or process has beside its loop, in instructions: its start and end.
BESIDE = 1000
START = 30_000


class Work:
    """One run of sizes_workload: COUNT loops of FIRST, FIRST + STEP ... instructions."""

    def __init__(self, kind, count, least, most):
        self.kind, self.count = kind, count
        self.first = random.randrange(least, most, 20)
        self.step = max(2, self.first // 100 // count * 2)
        self.name = f"{kind}-{count}"
        self.command = f"$P/sizes_workload {kind} {count} {self.first} {self.step}"
        self.sizes = [self.first + i * self.step for i in range(count)]


WORKS = [Work("threads", 1, 30_000_000, 60_000_000),
         Work("threads", 4, 20_000_000, 30_000_000),
         Work("threads", 64, 3_000_000, 4_000_000),
         Work("chain", 5, 10_000_000, 15_000_000),
         Work("brief-threads", BRIEF, 100_000, 150_000),
         Work("brief-processes", BRIEF, 100_000, 150_000)]
INSIDE = Work("threads", 4, 8_000_000, 9_000_000)

SCRIPT = """
run() {{ # OPTION... -- CMD...: duet and perf count the same run
	$DUET run -j $SIZES -e instructions:u "$@"
	local status=$?
	cat /tmp/perf >&2
	return $status
}}
PERF="perf stat -x, -o /tmp/perf -e instructions:u --"
{runs}
mkdir /tmp/v2
mount -t cgroup2 none /tmp/v2
mkdir /tmp/v2/inside
rm /tmp/perf && touch /tmp/perf
part cgroup run -G inside -- sh -c 'echo $$ >/tmp/v2/inside/cgroup.procs; exec '"{inside}"
part task run -- {inside}
"""


def threads_of(part):
    """(pid, tid, last name, instructions) of each thread."""
    for line in part.out.splitlines():
        if line.startswith('{"type":"table"'):
            return [(row["pid"], row["tid"], row["comm"], row["instructions:u"]["value"] or 0)
                    for row in json.loads(line)["rows"]]
    return []


def check_work(g, work):
    """Rows of the workload against its sizes; the sum and perf against the system."""
    part = g[work.name]
    rows = threads_of(part)
    mine = [row for row in rows if row[2] == "sizes_workload"]
    # The loops; the first thread or process besides, when it has none of its own.
    main = [row for row in mine if row[0] == row[1]]
    if work.kind.endswith("threads"):
        loops = sorted(row[3] for row in mine if row[0] != row[1])
        good = len(main) == 1
    else:
        loops = sorted(row[3] for row in main)
        if work.kind == "brief-processes":
            start = min((row[:2] for row in main), default=None)
            loops = sorted(row[3] for row in main if row[:2] != start)
        good = len(main) == len(mine)
    beside = [value - size for value, size in zip(loops, work.sizes)]
    # The chain's first process has the program's start too.
    limits = [START if work.kind == "chain" and not i else BESIDE for i in range(work.count)]
    g.ok(part.status == 0 and good and len(loops) == work.count and
         all(0 <= value <= limit for value, limit in zip(beside, limits)),
         f"{work.name} of {work.first} + i * {work.step}: {len(loops)} found, "
         f"{min(beside, default=-1)} to {max(beside, default=-1)} beside", part.err,
         loops[:20])
    ours = sum(row[3] for row in mine)
    perf = re.search(r"^(\d+),[^,]*,instructions:u", part.err, re.M)
    perf = int(perf.group(1)) if perf else 0
    # perf counts from its own exec on, ours has that program's last instructions too.
    g.ok(abs(ours - perf) <= 0.001 * perf, f"{work.name}: {ours}, perf stat {perf}", part.err)
    processes = sum(row[3] for row in rows)
    total = re.search(r"total (\d+)", part.out)
    total = int(total.group(1)) if total else 0
    g.ok(abs(processes - total) <= 0.01 * total and processes <= total,
         f"{work.name}: all processes {processes}, the system {total}", part.out[-300:])
    others = processes - ours
    g.ok(abs(total - others - perf) <= 0.001 * perf,
         f"{work.name}: the system without the others: {total - others}", part.out[-300:])


def check_scope(g, name):
    part = g[name]
    rows = [row for row in threads_of(part) if row[2] == "sizes_workload"]
    loops = sorted(row[3] for row in rows if row[0] != row[1])
    g.ok(part.status == 0 and len(loops) == INSIDE.count and
         all(0 <= value - size <= size // 1000 for value, size in zip(loops, INSIDE.sizes)) and
         len(threads_of(part)) == len(rows), f"{name}: {loops}", part)


work = tap.work_folder("sizes")
guests = sys.argv[1:] or "arm64 6.12".split()
while guests:
    g = guest.Guest(t, guests.pop(0), guests.pop(0), work)
    runs = "\n".join(f"part {w.name} run -a -- $PERF {w.command}" for w in WORKS)
    g.run(f"SIZES={g.object('tests/guest/programs/sizes.c')}\n" +
          SCRIPT.format(runs=runs, inside=INSIDE.command))
    for w in WORKS:
        check_work(g, w)
    check_scope(g, "cgroup")
    check_scope(g, "task")
t.done()
