#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TAP: what calls of functions of known size cost, with the kernel's part and without: alone,
nested, recursive, in threads. What the probes cost must not be in it, those of inner calls neither.

    tests/guest/cases/deltas.t [ARCH KERNEL]...

Only the arm64 guests have a counter of instructions, exact on one CPU.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import guest
import tap

t = tap.Tap()
DEPTH, THREADS = 8, 8
# Rounds of two instructions, and calls.
SINGLE = {10: 1000, 1000: 1000, 100_000: 1000, 1_000_000: 100}
ROUNDS, CALLS = 1000, 125
EVENTS = {"user": "instructions:u", "all": "instructions"}

SCRIPT = """
LOOPS=$P/loops_workload
deltas() {{ # EVENT OPTION... -- ARGUMENT...
	local event=$1 options=()
	shift
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	$DUET run -v $DELTAS $LOOPS "${{options[@]}}" -e "$event" -- $LOOPS "$@"
}}
"""
for name, event in EVENTS.items():
    for rounds, calls in SINGLE.items():
        SCRIPT += f"part {name}-{rounds} deltas {event} -- {calls} {rounds}\n"
    SCRIPT += f"""
part {name}-nested deltas {event} --levels 1 -- levels {CALLS} {ROUNDS}
part {name}-recursive deltas {event} --depth {DEPTH} -- {CALLS} {ROUNDS} {DEPTH}
part {name}-threads deltas {event} -- {CALLS} {ROUNDS} 1 {THREADS}
part {name}-nested-threads deltas {event} --levels 1 -- levels {CALLS} {ROUNDS} {THREADS}
"""


def rows(part):
    """{(function, position): (calls, self least, median, most, total least, median, most)}"""
    found = {}
    for line in part.out.splitlines():
        numbers = re.findall(r"-?\d+", line)
        if re.match(r"\d+\.\d+ calls ", line) and len(numbers) == 9:
            found[(int(numbers[0]), int(numbers[1]))] = tuple(map(int, numbers[2:]))
    return found


# Around other probed calls and with the kernel: each return probe allocates memory, and on some boots
# the allocator goes its slow way in every second call (173 instructions on 6.1). What the probes
# cost in all is 20 times as much.
SLOW_WAY = 250


def near(value, wanted, slack):
    return abs(value - wanted) <= max(slack, 0.005 * wanted)


def check(g, name, kind, calls, levels):
    """@levels: key of the row to the number of loops in it and inside; innermost first."""
    part = g[f"{name}-{kind}"]
    found = rows(part)
    rounds = kind if isinstance(kind, int) else ROUNDS
    good = part.status == 0 and set(found) == set(levels) and "missed 0" in part.out
    texts = []
    for key, inside in levels.items():
        if key not in found:
            continue
        count, *values = found[key]
        good &= count == calls
        # Of user code every call is right; with the kernel the median: ticks are in some.
        own, total = values[:3], values[3:]
        if name == "all":
            own, total = own[1:2], total[1:2]
        slack = SLOW_WAY if name == "all" and len(levels) > 1 else 50
        good &= all(near(value, 2 * rounds, slack) for value in own)
        good &= all(near(value, 2 * rounds * inside, slack * inside) for value in total)
        texts.append(f"{'/'.join(map(str, own))} of {'/'.join(map(str, total))}")
    g.ok(good, f"{EVENTS[name]}, {kind}, {2 * rounds} instructions: {'; '.join(texts)}", part)


work = tap.work_folder("deltas")
guests = sys.argv[1:] or "arm64 6.1".split()
while guests:
    g = guest.Guest(t, guests.pop(0), guests.pop(0), work)
    g.run(f"DELTAS={g.object('tests/guest/programs/deltas.c')}\n" + SCRIPT.format())
    for name in EVENTS:
        for rounds, calls in SINGLE.items():
            check(g, name, rounds, calls, {(0, 0): 1})
        nested = {(level, 0): DEPTH - level for level in range(DEPTH - 1, -1, -1)}
        check(g, name, "nested", CALLS, nested)
        check(g, name, "recursive", CALLS, {(0, i): i + 1 for i in range(DEPTH)})
        check(g, name, "threads", CALLS * THREADS, {(0, 0): 1})
        check(g, name, "nested-threads", CALLS * THREADS, nested)
t.done()
