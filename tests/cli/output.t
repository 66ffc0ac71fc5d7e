#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Output that nobody takes: a full disk, /dev/full, a pipe without a reader, a closed stream. One
error line, status 1, no half-written file."""
import os
import re
import signal
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fault/fault.c")
WORK = tap.work_folder("output")
OBJECT = os.path.join(WORK, "fault.o")
HELLO = os.path.join(WORK, "hello.o")
SMALL = os.path.join(WORK, "small")
os.mkdir(SMALL)
SHORT = ["perl", "-e", "getppid for 1..10"]
t = tap.Tap()


def shell(text, **variables):
    return tap.run("bash", "-c", text, env={**os.environ, "DUET": tap.DUET, "OBJECT": OBJECT,
                                             "SOURCE": SOURCE, "WORK": WORK, "SMALL": SMALL,
                                             "HELLO": HELLO, **variables})


def fails_once(p, text, name, *more):
    said = [line for line in p.err.splitlines() if line.startswith("duet: ")]
    t.ok(p.status == 1 and len(said) == 1 and text in said[0] and all(more), name, p,
         f"wanted: 1 and one line with `{text}`")


for source, target in ((SOURCE, OBJECT), (os.path.join(tap.ROOT, "examples/hello.c"), HELLO)):
    p = tap.duet("build", source, "-o", target)
    t.ok(p.status == 0, f"{os.path.basename(source)} builds", p)

# ---- a full device ----------------------------------------------------------------------------
FULL = "No space left on device"
for name, command in {
    "run, text": "run $OBJECT -q -- true",
    "run, table": "run $HELLO -q -d 100ms",
    "run, --json": "run $HELLO -q -d 100ms --json",
    "run, --csv": "run $HELLO -q -d 100ms --csv",
    "inspect": "inspect $OBJECT",
    "list": "list hooks",
    "cflags": "cflags",
    "--help": "--help",
    "run --help": "run --help",
    "--version": "--version",
}.items():
    fails_once(shell(f"$DUET {command} >/dev/full"), FULL, f"stdout is full: {name}")
fails_once(shell("$DUET run $OBJECT -q -o /dev/full -- true"), FULL, "-o /dev/full")
fails_once(shell("$DUET build $SOURCE -o /dev/full"), FULL, "build -o /dev/full")
t.ok(stat.S_ISCHR(os.stat("/dev/full").st_mode), "a device is written to, not replaced")

# ---- a small file system ------------------------------------------------------------------------
small = "mount -t tmpfs -o size=16k,nr_inodes=8 small $SMALL || exit 99; "
fill = small + "head -c 1M /dev/zero >$SMALL/filler 2>/dev/null; "
show = "; s=$?; ls -A $SMALL; exit $s"


def mounted(text, **variables):
    return shell("exec unshare -m bash -c \"$SCRIPT\"", SCRIPT=text, **variables)


p = mounted(fill + "$DUET run $OBJECT -q -o $SMALL/report -- true" + show)
fails_once(p, FULL, "-o on a full disk", p.out.split() == ["filler"])
p = mounted(fill + "$DUET build $SOURCE -o $SMALL/x.o" + show)
fails_once(p, FULL, "build -o on a full disk", p.out.split() == ["filler"])
p = mounted(small + "echo old >$SMALL/report; head -c 1M /dev/zero >$SMALL/filler 2>/dev/null; "
            "$DUET run $OBJECT -q -o $SMALL/report -- true; s=$?; cat $SMALL/report; exit $s")
fails_once(p, FULL, "-o on a full disk: the old report stays", p.out == "old\n")
p = mounted(fill + "$DUET run $SOURCE -q -- true" + show, XDG_CACHE_HOME=SMALL)
fails_once(p, f"cache folder {SMALL}/duet/compile: {FULL}: ", "a full cache folder",
           "tmp-" not in p.out)
p = mounted("mount -t tmpfs -o ro small $SMALL || exit 99; $DUET run $SOURCE -q -- true",
            XDG_CACHE_HOME=SMALL)
t.ok(p.status == 0 and "exit: why" in p.out, "a read-only cache folder: likewise", p)

# ---- nobody reads ------------------------------------------------------------------------------
p = shell("set -o pipefail; $DUET run $OBJECT -q -- perl -e 'getppid; sleep 1' | true")
fails_once(p, "Broken pipe", "a reader that is gone at the end")
# An interval prints for ever: the run ends by itself when nobody reads any more.
script = os.path.join(WORK, "ticks.c")
with open(script, "w") as file:
    file.write('#include <duet.h>\nu64 ticks;\n'
               'SEC("user/interval/10ms") int tick(const struct duet_tick *t)\n'
               '{\n\tprintf("tick %llu\\n", ++ticks);\n\treturn 0;\n}\n')
p = shell("set -o pipefail; $DUET run $WORK/ticks.c -q | head -1")
fails_once(p, "Broken pipe", "a reader that goes away ends the run", p.out == "tick 1\n")
p = shell("set -o pipefail; $DUET run $WORK/ticks.c -q -- sleep 300.$$ | head -1; s=$?; "
          "pgrep -f 'sleep 300.'$$ >&2; exit $s")
fails_once(p, "Broken pipe", "and its command")
p = shell("$DUET run $OBJECT -q -- true >&-")
fails_once(p, "Bad file descriptor", "a closed stdout")
p = shell("$DUET run $OBJECT -q -o $WORK/report -- true >&- 2>&- <&-; s=$?; cat $WORK/report; "
          "exit $s")
t.ok(p.status == 0 and re.search(r"\Aexit: why .*\n\Z", p.out), "-o with every stream closed", p)

# ---- names that cannot be written ----------------------------------------------------------------
fails_once(shell("$DUET run $OBJECT -q -o /nonexistent/x -- true"), "/nonexistent/x: No such file",
           "-o in no folder")
fails_once(shell("$DUET run $OBJECT -q -o $WORK -- true"), "Is a directory", "-o is a folder")
fails_once(shell("$DUET build $SOURCE -o /nonexistent/x.o"), "/nonexistent/x.o: ",
           "build -o in no folder")
p = shell("ln -sf real $WORK/link; $DUET run $OBJECT -q -o $WORK/link -- true; "
          "test -L $WORK/link && cat $WORK/real")
t.ok(p.status == 0 and "exit: why" in p.out, "-o of a symbolic link writes what it leads to", p)
left = [name for name in os.listdir(WORK) if "duet-" in name or "tmp" in name]
t.ok(not left, "no half-written file is left", *left)
t.done()
