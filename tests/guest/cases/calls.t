#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TAP: what a call costs its own thread: examples/func_cost.c and call_enter/call_leave.

    tests/guest/cases/calls.t [ARCH KERNEL]...
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import guest
import tap

t = tap.Tap()
CALLS, SLEEPS, THREADS, ROUNDS, DEPTH = 2000, 500, 64, 5, 8
WANDERERS, WANDERS = 16, 200


def number(pattern, part):
    match = re.search(pattern, part.out)
    return float(match.group(1)) if match else float("nan")


def within(percent, value, wanted):
    return abs(value - wanted) <= wanted * percent / 100


def stats(part):
    """The first line of func_cost's report, as numbers by name."""
    return {name: int(value) for value, name in re.findall(
        r"(\d+) (entered|returned|in flight|without entry|too deep|without value)", part.out)}


def check_stats(g, part, what, **wanted):
    found = stats(part)
    wanted = {name.replace("_", " "): value for name, value in wanted.items()}
    good = part.status == 0 and all(found.get(k) == v for k, v in wanted.items())
    g.ok(good, what, f"wanted {wanted}", part)


# ---- on every guest ------------------------------------------------------------------------------
COMMON = """
part sleepers $DUET run $FC $EVENTS do_nanosleep -- $P/calls_workload sleepers {threads} {rounds}
late() {{ # a thread is in the function when the probes are attached
	$P/calls_workload wait {rounds} &
	local workload=$!
	until grep -q ') S ' /proc/$workload/stat; do :; done
	$DUET run $FC $EVENTS do_nanosleep -p $workload 2>/tmp/late.err &
	local duet=$!
	until grep -q attached /tmp/late.err || ! kill -0 $duet; do sleep 0.05; done
	kill -USR1 $workload
	wait $duet
	local status=$?
	cat /tmp/late.err >&2
	return $status
}}
part late late
""".format(threads=THREADS, rounds=ROUNDS)


def check_common(g):
    # Where the TSC is unstable the clock may stand still for a tick, and with it a counter of 0.
    values = {"without_value": 0} if g.arch == "arm64" else {}
    check_stats(g, g["sleepers"], "64 threads sleep in the function: none missed",
                entered=THREADS * (ROUNDS + 1), returned=THREADS * ROUNDS, in_flight=THREADS,
                without_entry=0, too_deep=0, **values)
    # Its first call was entered before: no return of it is seen, or one without entry.
    part = g["late"]
    found = stats(part)
    g.ok(part.status == 0 and found.get("entered") == ROUNDS and
         found.get("returned") == ROUNDS and found.get("in flight") == 0 and
         found.get("without entry", 9) <= 1 and
         (not values or found.get("without value") == 0),
         "a function that was entered before", part)


# ---- arm64: instructions -------------------------------------------------------------------------
ARM64 = """
EVENTS=
SYS=__arm64_sys_getppid
cost() {{ $DUET run -v $FC "$@"; }}
part getppid cost $SYS -- $P/calls_workload getppid {calls}
part again cost $SYS -- $P/calls_workload getppid {calls}
export DUET_TEST_CALIBRATION_PERCENT=50
part half cost $SYS -- $P/calls_workload getppid {calls}
export DUET_TEST_CALIBRATION_PERCENT=200
part double cost $SYS -- $P/calls_workload getppid {calls}
unset DUET_TEST_CALIBRATION_PERCENT
oracle() {{ $P/task_oracle $P/task_oracle.bpf.o "$@"; }}
part oracle-getppid oracle $SYS $P/calls_workload getppid {calls}
part idle cost do_nanosleep -- $P/calls_workload sleep {sleeps} 1000
part oracle-idle oracle do_nanosleep $P/calls_workload sleep {sleeps} 1000
$P/calls_workload spin &
spinner=$!
part spinner cost do_nanosleep -- $P/calls_workload sleep {sleeps} 1000
part oracle-spinner oracle do_nanosleep $P/calls_workload sleep {sleeps} 1000
kill $spinner
""".format(calls=CALLS, sleeps=SLEEPS)


def costs_little(part):
    """A system call that does next to nothing: below 100 instructions, and not below none."""
    return 0 < number(r"insns: mean (-?[\d.]+)", part) < 100


def check_arm64(g):
    part = g["getppid"]
    check_stats(g, part, "every call is counted", entered=CALLS, returned=CALLS, in_flight=0,
                without_entry=0, without_value=0)
    raw, overhead, difference = (number(rf"insns: .*{name} (-?[\d.]+)", part)
                                 for name in ("raw", "overhead", "difference"))
    g.ok(costs_little(part), f"a trivial call costs {difference:.1f} instructions", part)
    g.ok(raw > 1000 and abs(raw - overhead - difference) < 0.2,
         f"-v: raw {raw:.1f} = overhead {overhead:.0f} + difference {difference:.1f}", part)
    g.ok(re.search(r"cycles: mean [\d.]+", part.out) and
         re.search(r"\[32, 64\) +[\d,]+ \|@+\|\n", part.out),
         "the second counter, and a log2 histogram", part)
    g.ok("an empty call costs" in part.err and "an empty call costs" not in g["again"].err and
         costs_little(g["again"]) and
         number(r"insns: .*overhead (\d+)", g["again"]) == overhead,
         "the calibration is kept for this boot", part.err, g["again"])
    for name, sign in (("half", 1), ("double", -1)):
        mean = number(r"insns: mean (-?[\d.]+)", g[name])
        g.ok(not costs_little(g[name]) and mean * sign > 100 and g[name].status == 0,
             f"{name} the calibration: {mean:.1f}, not clamped", g[name])

    def raw_of(name):
        return number(r"insns: raw ([\d.]+)", g[name]), number(r"mean ([\d.]+)",
                                                               g["oracle-" + name])

    for name in ("idle", "spinner"):
        ours, oracle = raw_of(name)
        check_stats(g, g[name], f"{name}: every sleep is counted", entered=SLEEPS,
                    returned=SLEEPS, without_value=0)
        g.ok(within(5, ours, oracle),
             f"do_nanosleep, {name}: raw {ours:.0f}, the test's own probes {oracle:.0f}",
             g[name], g["oracle-" + name])
    # Less what the own probes cost, as the trivial call tells.
    cost = number(r"mean ([\d.]+)", g["oracle-getppid"]) - difference
    for name in ("idle", "spinner"):
        ours, oracle = number(r"insns: mean ([\d.]+)", g[name]), raw_of(name)[1] - cost
        g.ok(within(8, ours, oracle),
             f"do_nanosleep, {name}: costs {ours:.0f}, by the test's own probes {oracle:.0f}",
             g[name], g["oracle-" + name])
    # The kernel itself does more when there is another thread to choose: as the oracle tells.
    idle, spinner = raw_of("idle"), raw_of("spinner")
    g.ok(within(5, spinner[0] / idle[0], spinner[1] / idle[1]),
         f"a spinner changes it by {spinner[0] / idle[0]:.3f}, the oracle by "
         f"{spinner[1] / idle[1]:.3f}")


# ---- x86: software events, two CPUs --------------------------------------------------------------
X86 = """
EVENTS='-e insns=page-faults -e cycles=cpu-clock'
part zero $DUET run $FC $EVENTS vfs_read -- $P/calls_workload zero {calls}
part getppid $DUET run $FC $EVENTS __x64_sys_getppid -- $P/calls_workload getppid {calls}
part nested $DUET run $NESTED --set BIN=$P/calls_workload -- $P/calls_workload nested 200 {depth}
WORK=$P/wander_workload
part wander $DUET run $WANDER $WORK -- $WORK {wanderers} {wanders}
part wander-any $DUET funcpmu -j $WORK:wander -e page-faults -- $WORK {wanderers} {wanders}
""".format(calls=CALLS, depth=DEPTH - 1, wanderers=WANDERERS, wanders=WANDERS)


def check_x86(g):
    part = g["zero"]
    g.ok(re.search(rf"\[4, 8\) +{CALLS:,} \|", part.out) and part.status == 0,
         "5 page faults inside each of 2000 reads", part)
    check_stats(g, g["getppid"], "every call is counted", entered=CALLS, returned=CALLS,
                in_flight=0, without_entry=0)
    g.ok(number(r"insns: mean (-?[\d.]+)", g["getppid"]) == 0, "and has no page fault",
         g["getppid"])
    part = g["nested"]
    calls = 2 * 200
    found = {int(n): int(c) for n, c in re.findall(r"faults (\d+) calls (\d+)", part.out)}
    g.ok(re.search(rf"entered {calls * DEPTH} left {calls * DEPTH} no_entry 0 too_deep 0 "
                   "no_value 0", part.out), "nested, concurrent, migrating: none is missed", part)
    # A thread's first round also takes faults for its stack and the probes' own pages.
    g.ok(all(calls - 2 <= found.get(3 * level, 0) <= calls for level in range(1, DEPTH + 1)) and
         sum(found.values()) == calls * DEPTH,
         "each level has its own page faults and those inside it", part)
    # 16 threads that change the CPU inside each call, all into one sum: what they counted themselves.
    for name, pattern in (("wander", r"calls (\d+) faults (\d+)"),
                          ("wander-any", r'"calls":(\d+),"page-faults":\{"value":(\d+)')):
        part = g[name]
        ours = re.search(pattern, part.out)
        truth = re.search(r"calls (\d+) pages (\d+) faults (\d+)", part.err)
        good = part.status == 0 and ours and truth
        ours = tuple(map(int, ours.groups())) if good else ()
        truth = tuple(map(int, truth.groups())) if good else ()
        g.ok(good and ours == (truth[0], truth[2]) and truth[0] == WANDERERS * WANDERS and
             truth[1] <= truth[2] <= truth[1] + 40 and (name != "wander" or "missed 0" in part.out),
             f"{name}: calls and page faults {ours}, the threads' own sums {truth}", part)


work = tap.work_folder("calls")
guests = sys.argv[1:] or "x86_64 6.1 arm64 6.1 arm64 6.12".split()
while guests:
    g = guest.Guest(t, guests.pop(0), guests.pop(0), work)
    head = f"FC={g.object('examples/func_cost.c')}\n"
    if g.arch == "arm64":
        g.run(head + ARM64 + COMMON)
        check_arm64(g)
    else:
        head += f"NESTED={g.object('tests/guest/programs/nested.c')}\n"
        head += f"WANDER={g.object('tests/guest/programs/wander.c')}\n"
        g.run(head + X86 + COMMON)
        check_x86(g)
    check_common(g)
t.done()
