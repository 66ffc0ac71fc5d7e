#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""TAP: who is measured by cgroup (-G): version 2 and 1, descendants, several, a container's id.

    tests/guest/cases/scopes.t [ARCH KERNEL]...
"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import guest
import tap

t = tap.Tap()
CONTAINER = "%064x" % random.getrandbits(255)
MILLIONS = {"inner": 10, "beside": 14, "aside": 18}
sizes = {name: int(m * 1e6 * random.uniform(0.9, 1.1)) // 20 * 20 for name, m in MILLIONS.items()}

SCRIPT = """
mkdir -p /tmp/v2 /tmp/v1
mount -t cgroup2 none /tmp/v2
mount -t cgroup -o perf_event none /tmp/v1
C2=/tmp/v2/outer/docker-{container}.scope
C1=/tmp/v1/one/two
mkdir -p $C2 /tmp/v2/aside $C1 /tmp/v1/three
within() {{ # DIRECTORY DIRECTORY COMMAND...: in a cgroup of each version
	sh -c 'echo $$ >$1/cgroup.procs && echo $$ >$2/cgroup.procs && shift 2 && exec "$@"' sh "$@"
}}
export -f within
measure() {{ # OPTIONS...: three processes in cgroups of both versions
	$DUET run -j $IPC $EVENTS "$@" -- bash -c '
		within $0 $3 $5 inner={inner} &
		within $1 $4 $5 beside={beside} &
		within $2 $4 $5 aside={aside} &
		wait' $C2 /tmp/v2/outer /tmp/v2/aside $C1 /tmp/v1/three {root}/{build}/workload
}}
part outer measure -G outer
part whole measure -G /tmp/v2/outer
part container measure -G {container:.13}
part two measure -G outer/docker-{container}.scope -G aside
part root measure -G /
part v1 measure -G /tmp/v1/one
part v1-deep measure -G /tmp/v1/one/two
part missing measure -G no/such/place
part mixed measure -G aside -G /tmp/v1/three
# A thread that comes into the cgroup while it is measured, and leaves it.
moved() {{
	$DUET run -j $IPC $EVENTS -G aside -- bash -c '
		{root}/{build}/workload --serial inner={inner} 
		echo $$ >/tmp/v2/aside/cgroup.procs
		{root}/{build}/workload --serial beside={beside}
		echo $$ >/tmp/v2/cgroup.procs
		{root}/{build}/workload --serial aside={aside}'
}}
part moved moved
"""


def counted(part, member="insns"):
    """What each process counted, by its last name."""
    found = {}
    for line in part.out.splitlines():
        if not line.startswith('{"type":"table"'):
            continue
        for row in json.loads(line)["rows"]:
            value = row[member]["value"] or 0
            found.setdefault(row["comm"], []).append(value)
    return found


def check(g):
    exact = g.arch == "arm64"

    def right(name, values):
        if not exact:  # no PMU: time on a CPU, which is not known beforehand
            return len(values) == 1 and values[0] > 1e6
        return len(values) == 1 and abs(values[0] - sizes[name]) <= 0.001 * sizes[name]

    for part, names in {"outer": "inner beside", "whole": "inner beside", "container": "inner",
                        "two": "inner aside", "root": "inner beside aside", "v1": "inner",
                        "v1-deep": "inner", "moved": "beside"}.items():
        found = counted(g[part])
        mine = {name: found.get(name, []) for name in sizes if name in found}
        g.ok(g[part].status == 0 and set(mine) == set(names.split()) and
             all(right(name, values) for name, values in mine.items()),
             f"{part}: {mine}", g[part])
    g.ok(g["missing"].status == 1 and "cgroup 'no/such/place': No such file or directory" in
         g["missing"].err and "give a path below /" in g["missing"].err, "a missing one says where",
         g["missing"])
    g.ok(g["mixed"].status == 1 and "of different hierarchies" in g["mixed"].err,
         "two hierarchies are refused", g["mixed"])


work = tap.work_folder("scopes")
guests = sys.argv[1:] or "x86_64 6.12 arm64 6.1".split()
while guests:
    g = guest.Guest(t, guests.pop(0), guests.pop(0), work)
    arm = g.arch == "arm64"
    events = "-e insns=instructions:u" if arm else "-e insns=task-clock -e cycles=cpu-clock"
    g.run(f"IPC={g.object('examples/ipc.c')}\nEVENTS='{events}'\n" +
          SCRIPT.format(root=tap.ROOT, build="build-arm64" if arm else "build",
                        container=CONTAINER, **sizes))
    check(g)
t.done()
