# SPDX-License-Identifier: BSD-2-Clause
"""What tests in Python share: TAP, paths, duet as a process that is watched and signalled.

    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
    import tap
"""
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("DUET_TEST_BUILD", os.path.join(ROOT, "build"))
DUET = os.path.join(BUILD, "duet")
# Seconds until something that must happen has not: only failures wait this long.
PATIENCE = int(os.environ.get("DUET_TEST_PATIENCE", 120))


def work_folder(name):
    """An empty folder for one test's files."""
    path = os.path.join(ROOT, "build/test-work", name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, name, *details):
        self.count += 1
        if good:
            print(f"ok {self.count} - {name}", flush=True)
            return True
        self.failed += 1
        print(f"not ok {self.count} - {name}")
        for detail in details:
            for line in str(detail).splitlines()[:30]:
                print(f"#   {line}")
        sys.stdout.flush()
        return False

    def matches(self, pattern, text, name, *details):
        return self.ok(re.search(pattern, text, re.M), name, f"wanted: {pattern}", "got:", text,
                       *details)

    def done(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed else 0)


class Process:
    """A command whose output is collected while the test waits for something."""

    def __init__(self, argv, stdin=subprocess.DEVNULL, **options):
        self.argv = argv
        self.started = time.monotonic()
        self.process = subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, **options)
        self.pid = self.process.pid
        self.streams = {self.process.stdout.fileno(): b"", self.process.stderr.fileno(): b""}
        self.open = set(self.streams)
        self.killed = False

    @property
    def out(self):
        return self.streams[self.process.stdout.fileno()].decode(errors="replace")

    @property
    def err(self):
        return self.streams[self.process.stderr.fileno()].decode(errors="replace")

    def _read(self, seconds):
        ready, _, _ = select.select(list(self.open), [], [], seconds)
        for fd in ready:
            data = os.read(fd, 65536)
            self.streams[fd] += data
            if not data:
                self.open.discard(fd)

    def wait_for(self, pattern, seconds=PATIENCE):
        """Until either output has @pattern; False when it ended or the patience did."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.out + "\n" + self.err, re.M):
            if not self.open or time.monotonic() > end:
                return False
            self._read(0.1)
        return True

    def signal(self, number):
        if self.process.poll() is None:
            os.kill(self.pid, number)
        return self

    def end(self, seconds=PATIENCE):
        """Waits for its end, not for that of others that hold its output; the exit status."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            if time.monotonic() > end:
                self.killed = True
                self.process.kill()
                self.process.wait()
                break
            if self.open:
                self._read(0.05)
            else:
                time.sleep(0.01)
        while self.open and select.select(list(self.open), [], [], 0)[0]:
            self._read(0)
        return self.status

    @property
    def status(self):
        """As a shell tells it, or "hangs"."""
        code = self.process.returncode
        if self.killed:
            return "hangs"
        return 128 - code if code is not None and code < 0 else code

    def __str__(self):
        return (f"{' '.join(self.argv)}\nstatus {self.status}\n-- stdout\n{self.out}"
                f"-- stderr\n{self.err}")


def run(*argv, **options):
    process = Process(list(argv), **options)
    process.end()
    return process


def duet(*argv, **options):
    return run(DUET, *argv, **options)


def children_of(pid):
    """All descendants, zombies too."""
    parents = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [], [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.append(child)
            todo.append(child)
    return found


def processes_with(mark):
    """Those whose command line has @mark: "PID STATE COMMAND LINE"."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/cmdline") as file:
                line = file.read().replace("\0", " ")
            with open(f"/proc/{entry}/stat") as stat:
                state = stat.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if mark in line:
            found.append(f"{entry} {state} {line}")
    return found
