#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TAP: counters per process: examples/ipc.c against workloads of known size and perf stat.

    tests/guest/cases/counters.t [ARCH KERNEL]...
"""
import csv
import io
import json
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import guest
import tap

t = tap.Tap()
SIZES = {"a": 20, "b": 40, "c": 60}
sizes = {name: int(m * 1e6 * random.uniform(0.9, 1.1)) // 20 * 20 for name, m in SIZES.items()}
TREE = random.randrange(1_000_000, 3_000_000, 20)


def within(percent, value, wanted):
    return abs(value - wanted) <= wanted * percent / 100


def rows(part):
    """The rows of the first table in JSON Lines."""
    for line in part.out.splitlines():
        if line.startswith('{"type":"table"'):
            return json.loads(line)["rows"]
    return []


def sums(part, member="insns"):
    """Of each process, whatever names it had: what it counted."""
    found = {}
    for row in rows(part):
        value = row[member]["value"] if isinstance(row[member], dict) else row[member]
        found[row["pid"]] = found.get(row["pid"], 0) + (value or 0)
    return found


def of_name(part, comm, member="insns"):
    """The processes that were once called so, in the order of their ids."""
    pids = sorted({row["pid"] for row in rows(part) if row["comm"] == comm})
    return [sums(part, member)[pid] for pid in pids]


def perf_stat(part, event):
    """What `perf stat -x,` counted, and for how many ns."""
    match = re.search(rf"^([\d.]+),[^,]*,{event},(\d+),", part.out + part.err, re.M)
    return (float(match.group(1)), int(match.group(2))) if match else (-1, -1)


ARM64 = """
EVENTS='-e insns=instructions:u -e cycles=cycles:u'
WORKLOAD={root}/build-arm64/workload
both() {{ # perf counts what duet counts, in the same run
	$DUET run -j $IPC $EVENTS -- perf stat -x, -o /tmp/perf -e instructions:u -- "$@"
	local status=$?
	cat /tmp/perf >&2
	return $status
}}
part sizes both $WORKLOAD a={a} b={b} c={c}
part tree both $P/tree_workload {tree}
$P/tree_workload spin &
spinner=$!
measure() {{
	$DUET run -j $IPC $EVENTS "$@"
}}
part pid measure -p $spinner -d 1
part perf perf stat -x, -e instructions:u -p $spinner -- sleep 1
part thread measure -t $spinner -d 300ms
part other measure -t $$ -d 300ms
part all measure -a -d 300ms
part together $DUET run $TOGETHER -d 1
part fits $DUET run $TOGETHER -e ninth=page-faults -e eighth=page-faults -d 100ms
eight=$(printf 'instructions,%.0s' 1 2 3 4 5 6 7)instructions
part large $DUET run $CROWD -e "{{$eight}}:u" -d 500ms
part weak $DUET run $CROWD -e "{{$eight}}:uW" -d 500ms
part quiet $DUET run -q $TOGETHER -d 100ms
kill $spinner
part page {root}/build-arm64/tests/unit/pmu/pmu_page_test
""".format(root=tap.ROOT, tree=TREE, **sizes)


def check_together(g):
    part = g["together"]
    g.ok(part.err.count("9 hardware events asked, 7 fit at once on armv8_pmuv3") == 1,
         "too many events: told once, with how many fit", part)
    values = re.search(r"^together 0 (\d+) (\d+)$", part.out, re.M)
    times = re.search(r"^times (\d+) (\d+) (\d+) (\d+)$", part.out, re.M)
    insns, cycles = (int(x) for x in values.groups()) if values else (0, 0)
    enabled, running = ([int(x) for x in times.groups()[i:i + 2]] for i in (0, 2)) if times \
        else ([0], [0])
    # Two cycles an instruction, always (-icount shift=1): of values of two times it would not be.
    g.ok(insns > 1e6 and abs(cycles - 2 * insns) <= 4 and
         0 < running[0] == running[1] < enabled[0] == enabled[1],
         f"a group that takes turns is of one time: {insns}, {cycles}", part)
    g.ok(re.search(r"^apart 1$", part.out, re.M), "events apart have no ratio", part)
    g.ok(re.search(r"^ *2\.00 \(scaled \d+ %\) +not together$", part.out, re.M),
         "nor in a table, where the group has one", part)
    g.ok("fit at once" not in g["fits"].err and g["fits"].status == 0, "silent when all fit",
         g["fits"])
    # Of eight in a group the first six fit.
    part, reason = g["large"], "cannot be in one group with 'instructions:u"
    g.ok(part.status == 0 and part.err.count(reason) == 2 and
         all(f"{name}: instructions:u {reason}" in part.err for name in ("seventh", "eighth")) and
         "together 0\n" in part.out and "breaks" not in part.err,
         "what does not fit in a group is counted alone, which is told", part)
    part = g["weak"]
    shares = re.search(r"^shares (\d+) (\d+)$", part.out, re.M)
    shares = [int(x) for x in shares.groups()] if shares else [0, 0]
    g.ok(part.status == 0 and part.err.count(reason) == 1 and
         "counted alone, and so are the others (:W breaks the group up)" in part.err and
         "together -18\n" in part.out and all(50 <= share < 95 for share in shares),
         f"a weak group that does not fit is broken up: its events take turns: {shares} %", part)
    g.ok("fit at once" not in g["quiet"].err and g["quiet"].status == 0, "silent with -q",
         g["quiet"])
    g.ok(g["page"].status == 0 and re.search("20 times 2000000 instructions", g["page"].out),
         "a thread's counter is read without a system call", g["page"])


def check_arm64(g):
    check_together(g)
    part = g["sizes"]
    for name, size in sizes.items():
        found = of_name(part, name)
        g.ok(len(found) == 1 and within(0.1, found[0], size),
             f"{size} user instructions: {found}", part)
    ours = sum(row["insns"]["value"] for row in rows(part)
               if row["comm"] in (*sizes, "workload"))
    perf = perf_stat(part, "instructions:u")[0]
    g.ok(part.status == 0 and within(0.5, ours, perf), f"perf stat agrees: {ours} and {perf:.0f}",
         part)
    part = g["tree"]
    found = sorted(of_name(part, "tree_workload"), reverse=True)
    # Two threads, a child with two, a grandchild with one: each spins as much. Nothing but start-up,
    # forks and threads comes on top: 40,000 instructions at the most.
    g.ok(len(found) == 3 and all(0 <= value - TREE * share < 40000 for value, share in
                                 zip(found, (2, 2, 1))),
         f"later threads and children of {TREE}: {found}", part)
    # A rate per time that it ran, since no two programs begin and end at the same moment.
    part = g["pid"]
    table = rows(part)
    perf, ns = perf_stat(g["perf"], "instructions:u")
    good = len(table) == 1 and ns > 0
    ours = table[0]["insns"]["value"] / table[0]["insns"]["enabled_ns"] if good else 0
    g.ok(good and within(1, ours, perf / ns),
         f"-p: {ours:.5f} instructions per ns, perf stat {perf / ns:.5f}", part, g["perf"])
    g.ok(good and 0.9e9 < table[0]["insns"]["enabled_ns"] < 1.2e9, "-d 1 is a second", part)
    part = g["thread"]
    g.ok(len(rows(part)) == 1 and rows(part)[0]["comm"] == "tree_workload" and
         rows(part)[0]["insns"]["value"] > 1e8, "-t", part)
    g.ok("tree_workload" not in {row["comm"] for row in rows(g["other"])} and
         g["other"].status == 0, "-t of another thread does not show it", g["other"])
    g.ok({"tree_workload", "duet"} <= {row["comm"] for row in rows(g["all"])}, "-a shows all",
         g["all"])


X86 = """
tree() {{
	$DUET run $1 $IPC -- perf stat -x, -o /tmp/perf -e context-switches -- $P/tree_workload {tree}
	local status=$?
	cat /tmp/perf >&2
	return $status
}}
part text tree
part json tree -j
part csv tree --csv
# Alone on CPU 1. (As a real-time thread it would keep the kernel's own from there, for ever.)
nice -n -20 $P/tree_workload spin 1 &
spinner=$!
clocks() {{
	taskset -c 0 $DUET run -j $IPC -e insns=cpu-clock -e cycles=task-clock "$@"
}}
part pid clocks -p $spinner -d 1
for i in 1 2 3 4 5; do part short$i clocks -p $spinner -d 50ms; done
part perf taskset -c 0 perf stat -x, -e cpu-clock -p $spinner -- sleep 1
part cpu0 clocks -C 0 -d 1
part cpu1 clocks -C 1 -d 1
kill -9 $spinner
echo never >/sys/kernel/mm/transparent_hugepage/enabled
cpu1() {{ echo $1 >/sys/devices/system/cpu/cpu1/online; }}
faults() {{ # CPU: 5,120 of them, and those of a start
	taskset -c $1 dd if=/dev/zero of=/dev/null bs=20M count=1 2>/dev/null
}}
come_and_go() {{
	faults 1
	cpu1 0
	faults 0
	cpu1 1
	sleep 0.5
	faults 1
	cpu1 0; cpu1 1 # too quick for anybody who only looks now and then
	sleep 0.5
	faults 1
}}
export -f cpu1 faults come_and_go
part hotplug $DUET run -v $HOTPLUG -- bash -c come_and_go
cpu1 0
part comes $DUET run -v $HOTPLUG -- bash -c 'cpu1 1; sleep 0.5; faults 1'
part unnoticed $DUET run $UNNOTICED
part only0 $DUET run -v $HOTPLUG -C 0 -- bash -c 'cpu1 0; cpu1 1; sleep 0.5; faults 1'
""".format(tree=TREE)

# To hibernate, with nowhere to write to, ends after the other CPUs went and came: without an alarm
# clock and without uevents. What sleeps less than the RTC's second is not noticed, hence the loop.
SUSPEND = r"""
echo never >/sys/kernel/mm/transparent_hugepage/enabled
faults() {
	taskset $((1 << $1)) dd if=/dev/zero of=/dev/null bs=20M count=1 2>/dev/null
}
slept() { # in ms: /proc/uptime goes on in sleep, the timers' clock does not
	local up now
	read -r up _ </proc/uptime
	now=$(sed -n 's/^now at \([0-9]*\) nsecs$/\1/p' /proc/timer_list)
	echo $((10#${up/./} * 10 - now / 1000000))
}
work() {
	local before after i
	faults 1
	before=$(slept)
	for i in 1 2 3 4 5; do
		echo disk >/sys/power/state
		after=$(slept)
		((after < before + 200)) || break
	done
	echo "slept $((after - before))"
	sleep 0.5
	faults 0
	faults 1
	faults 1
}
export -f faults slept work
part asleep $DUET run $HOTPLUG -- bash -c work
"""


def hotplug_sums(part):
    """total, lapped on CPU 0 and 1; None when something of it is wrong."""
    total = re.search(r"^total 0 (\d+)$", part.out, re.M)
    together = re.search(r"^together 0 (\d+) (\d+) 1$", part.out, re.M)
    lapped = re.search(r"^lapped (\d+) (\d+) negative 0$", part.out, re.M)
    if part.status != 0 or not total or not together or not lapped:
        return None
    return [int(x) for x in (*total.groups(), *lapped.groups())]


def check_output(g, part, least):
    """A buffer of EVENTS() is there again on CPU 1: as many records at least as programs ended."""
    found = re.search(r"^sent (\d+) (\d+) received (\d+) (\d+) refused", part.out, re.M)
    sent0, sent1, received0, received1 = (int(x) for x in found.groups()) if found else [0] * 4
    g.ok(least <= sent1 == received1 and sent0 == received0,
         f"what CPU 1 puts out arrives: {sent1} records", part)


def check_hotplug(g):
    part = g["hotplug"]
    sums = hotplug_sums(part)
    # Three times 5,120 faults on CPU 1; what was counted before each time it went is kept.
    g.ok(sums and 15360 <= sums[2] <= 19000 and sums[1] >= 5120 and
         abs(sums[0] - sums[1] - sums[2]) <= 100,
         f"CPU 1 goes and comes twice: total, CPU 0, CPU 1: {sums}", part)
    g.ok("reads 4 wrong 0" in part.out, "the calls meanwhile have their own 5,120 faults", part)
    check_output(g, part, 3)
    part = g["comes"]
    sums = hotplug_sums(part)
    g.ok(sums and 5120 <= sums[2] <= 8000 and abs(sums[0] - sums[1] - sums[2]) <= 100,
         f"CPU 1 comes: {sums}", part)
    samples = re.search(r"^samples (\d+) (\d+)$", part.out, re.M)
    g.ok(samples and int(samples[2]) > 5, "and is sampled", part)
    check_output(g, part, 1)
    part = g["unnoticed"]
    g.ok(part.status == 0 and part.out.strip() == "total 0 1" and
         part.err.count("CPU 1 was offline for a time, unnoticed:") == 1 and
         "CPU 0" not in part.err, "a CPU that came after the last look is told of", part)
    part = g["only0"]
    sums = hotplug_sums(part)
    g.ok(sums and sums[2] == 0 and 0 < sums[0] < 5120, f"-C 0 leaves it out: {sums}", part)
    check_output(g, part, 1)


def check_suspend(g):
    part = g["asleep"]
    sums = hotplug_sums(part)
    # Before and after: three times 5,120 on CPU 1, and once on the CPU that stayed.
    g.ok(sums and 15360 <= sums[2] <= 17500 and 5120 <= sums[1] <= 9000 and
         abs(sums[0] - sums[1] - sums[2]) <= 100,
         f"after a suspend counting goes on: total, CPU 0, CPU 1: {sums}", part)
    g.ok("reads 4 wrong 0" in part.out, "and so do the calls", part)
    check_output(g, part, 3)
    g.ok("the machine was suspended: the counters of 1 CPU were opened anew" in part.err and
         "unnoticed" not in part.err, "which is told", part)


def check_x86(g):
    check_hotplug(g)
    part = g["text"]
    lines = re.findall(r"^ *\d+ +tree_workload +not supported +not supported +(\d+) +not", part.out,
                       re.M)
    g.ok(part.status == 0 and len(lines) == 3, "no PMU: not supported, as text", part)
    part = g["json"]
    mine = [row for row in rows(part) if row["comm"] == "tree_workload"]
    g.ok(part.status == 0 and len(mine) == 3 and
         all(row[m]["value"] is None and row[m]["status"] == "not supported"
             for row in mine for m in ("insns", "cycles")), "as JSON", part)
    found = sum(row["switches"] for row in mine)
    perf = perf_stat(part, "context-switches")[0]
    # perf's events are gone before the last switch of each of the five threads.
    g.ok(0 < perf <= found <= perf + 8, f"{found} switches, perf stat {perf:.0f} and the last ones",
         part)
    part = g["csv"]
    head = re.search(r"^pid,comm,.*", part.out, re.M)
    table = list(csv.DictReader(io.StringIO(part.out[head.start():]))) if head else []
    mine = [row for row in table if row["comm"] == "tree_workload"]
    g.ok(part.status == 0 and len(mine) == 3 and
         all(row["insns"] == "" and row["insns.status"] == "not supported" and
             int(row["switches"]) > 0 for row in mine), "as CSV", part)
    part = g["pid"]
    table = rows(part)
    perf, ns = perf_stat(g["perf"], "cpu-clock")
    good = len(table) == 1 and ns > 0
    g.ok(good and within(1, table[0]["insns"]["value"] / table[0]["insns"]["enabled_ns"],
                         perf * 1e6 / ns) and table[0]["insns"]["value"] > 0.95e9,
         "-p of a spinner", part, g["perf"])
    # It is seldom switched out in so short a time: what counts is the last slice.
    short = [sums(g[f"short{i}"], "insns") for i in range(1, 6)]
    g.ok(all(len(run) == 1 and min(run.values()) > 42e6 for run in short),
         f"the slice that runs at the end is flushed: {[list(run.values()) for run in short]}")
    g.ok("tree_workload" not in {row["comm"] for row in rows(g["cpu0"])} and rows(g["cpu0"]),
         "-C 0 does not show what runs on CPU 1", g["cpu0"])
    g.ok("tree_workload" in {row["comm"] for row in rows(g["cpu1"])} and
         "duet" not in {row["comm"] for row in rows(g["cpu1"])}, "-C 1 does", g["cpu1"])


work = tap.work_folder("counters")
guests = sys.argv[1:] or "x86_64 6.12 arm64 6.1 arm64 6.12".split()
while guests:
    g = guest.Guest(t, guests.pop(0), guests.pop(0), work)
    g.run(f"IPC={g.object('examples/ipc.c')}\n"
          f"HOTPLUG={g.object('tests/guest/programs/hotplug.c')}\n"
          f"UNNOTICED={g.object('tests/guest/programs/unnoticed.c')}\n"
          f"CROWD={g.object('tests/guest/programs/crowd.c')}\n"
          f"TOGETHER={g.object('tests/guest/programs/together.c')}\n" + (ARM64 if g.arch == "arm64" else X86))
    check_arm64(g) if g.arch == "arm64" else check_x86(g)
    if g.arch == "arm64":
        continue
    # virtiofs cannot be suspended.
    g = guest.Guest(t, g.arch, g.kernel, work)
    packed = [g.object("tests/guest/programs/hotplug.c"), os.path.join(g.build, "duet")]
    g.run(f"HOTPLUG={packed[0]}\n" + SUSPEND, "--deterministic", "--cpus", "2",
          *(word for file in packed for word in ("--pack", file)))
    check_suspend(g)
t.done()
