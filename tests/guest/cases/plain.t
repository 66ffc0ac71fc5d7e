#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TAP: ordinary libbpf programs under `duet run`, on every kernel of both architectures: attached,
typed maps, text of bpf_printk and of an iterator, maps and variables printed at the end.

    tests/guest/cases/plain.t [ARCH KERNEL]...
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import guest
import tap

t = tap.Tap()
STEPS = 20
# The maps of each program, which `bpftool map show` lists with their types while it runs.
PROGRAMS = {
    "kprobe_counter": ["sleepers"],
    "tracepoint_hist": ["entered", "latency"],
    "uprobe": ["steps"],
    "usdt": ["usdt_steps"],
    "bpf_iter": ["threads"],
    "timer": ["clock", "ticks"],
}

# Programs are what costs time in a guest: it starts as few as it can, and all is judged here.
SCRIPT = """
T={build}/tests/programs
read_file() {{
	echo "$(<$1)"
}}
plain() {{
	$DUET run $T/$1.bpf.o -- bash -c '$0/workload {steps}; bpftool map show >/tmp/maps' $T
}}
for name in {names}; do
	part $name plain $name
	part $name.maps read_file /tmp/maps
done
# What bpf_printk says is shown while the program runs, and trace_pipe keeps it for others.
printk() {{
	$DUET run $T/printk.bpf.o -- bash -c '
		$0/workload 2
		for i in $(seq 100); do
			grep -q "sleep of workload" /tmp/part.out && break
			sleep 0.1
		done
		grep -c "sleep of workload" /tmp/part.out >/tmp/live' $T
}}
part printk printk
part live read_file /tmp/live
part trace read_file /sys/kernel/tracing/trace
"""


class Report:
    """What a program printed, and what was wrong with it."""

    def __init__(self, g, name):
        self.name, self.part, self.maps, self.wrong = name, g[name], g[f"{name}.maps"].out, []
        self.want(self.part.status == 0, f"status {self.part.status}")
        for variable in PROGRAMS[name]:
            shown = re.search(rf"^\d+: .*name {variable[:15]} .*\n(.*\n)?(.*\n)?", self.maps, re.M)
            self.want(shown, f"no map {variable} while it ran")
            self.want(shown and re.search(r"btf_id [1-9]", shown[0]), f"{variable} has no btf_id")
            self.want(re.search(rf"^{variable}\b", self.out, re.M), f"{variable} was not printed")
        self.want("__" not in self.out, "private maps were printed")

    @property
    def out(self):
        return self.part.out

    def want(self, good, why):
        if not good:
            self.wrong.append(why)

    def shows(self, pattern):
        self.want(re.search(pattern, self.out, re.M), f"no line like {pattern}")

    def table(self, variable):
        """The lines with two numbers below the variable's name."""
        lines = self.out[self.out.find(f"\n{variable}\n"):].splitlines()
        pairs = [line.replace(",", "").split() for line in lines]
        return {int(k): int(v) for k, v in (p for p in pairs if len(p) == 2) if (k + v).isdigit()}

    def verdict(self, g):
        g.ok(not self.wrong, self.name, *self.wrong, self.part, self.maps)


def check(g):
    report = Report(g, "kprobe_counter")
    report.shows(rf"^ *\d+ +{2 * STEPS} +workload$")  # calls of the workload's two threads
    report.verdict(g)

    report = Report(g, "tracepoint_hist")  # a sleep of a millisecond is slot 19 or more
    slots = report.table("latency")
    slow = sum(n for slot, n in slots.items() if 19 <= slot < 40)
    report.want(slow >= 2 * STEPS, f"{slow} long calls in {slots}")
    report.verdict(g)

    report = Report(g, "uprobe")
    report.shows(rf"\b{2 * STEPS} +{2 * STEPS} +{2 * STEPS * (STEPS + 1)}$")
    report.verdict(g)

    report = Report(g, "usdt")
    threads = re.findall(rf"^ *\d+ +{STEPS} +{STEPS * (STEPS + 1) // 2}$", report.out, re.M)
    report.want(len(threads) == 2, "not two threads")
    report.verdict(g)

    report = Report(g, "bpf_iter")
    report.shows("^1 1$")  # the text of the iterator: process 1 is among all
    lines = len(re.findall(r"^\d+ \d+$", report.out, re.M))
    counted = report.table("threads").get(0)
    report.want(lines == counted, f"{lines} lines, {counted} counted")
    report.verdict(g)

    if (g.arch, g.kernel) == ("arm64", "6.1"):
        part = g["timer"]  # fentry does not attach there: one error that says so
        lines = [line for line in part.err.splitlines() if "fentry" in line]
        g.ok(part.status == 1 and len(lines) == 1, "timer", part)
    else:
        report = Report(g, "timer")
        ticks = report.table("ticks").get(0, 0)
        report.want(ticks >= 3, f"{ticks} ticks")
        report.verdict(g)

    part, text = g["printk"], "sleep of workload"
    g.ok(part.status == 0 and len(re.findall(f"^.*{text}", part.out, re.M)) == 4,
         "printk: four lines", part)
    g.ok(int(g["live"].out.strip() or 0) > 0, "printk: while it runs", part)
    g.ok(text in g["trace"].out, "printk: others find it in trace", part, g["trace"])


work = tap.work_folder("plain")
guests = sys.argv[1:] or "x86_64 6.1 x86_64 6.12 arm64 6.1 arm64 6.12".split()
while guests:
    g = guest.Guest(t, guests.pop(0), guests.pop(0), work)
    g.run(SCRIPT.format(build=g.build, steps=STEPS, names=" ".join(PROGRAMS)))
    check(g)
t.done()
