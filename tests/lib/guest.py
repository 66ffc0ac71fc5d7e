# SPDX-License-Identifier: BSD-2-Clause
"""For guest cases in Python: one boot runs one shell script, whose parts come back by name.

The script writes `part NAME` before each command; its stdout, stderr and status are then
Part.out, Part.err and Part.status.
"""
import os
import re

import tap

PRELUDE = r"""
export HOME=/tmp
part() { # NAME CMD...: runs CMD and reports
	local name=$1 status
	shift
	"$@" >/tmp/part.out 2>/tmp/part.err </dev/null
	status=$?
	# Not by cat: each program that starts costs a guest up to half a second.
	printf '\n@@@ %s %s\n%s\n@@@err\n%s\n' "$name" "$status" "$(</tmp/part.out)" \
		"$(</tmp/part.err)"
}
"""


class Part:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __str__(self):
        return f"status {self.status}\n-- stdout\n{self.out}\n-- stderr\n{self.err}"


MISSING = Part(None, "", "the guest did not come this far")


class Guest:
    """Builds what scripts need on the host, boots once, keeps the parts."""

    def __init__(self, t, arch, kernel, work):
        self.t, self.arch, self.kernel, self.work = t, arch, kernel, work
        self.name = f"{arch} {kernel}"
        self.build = os.path.join(tap.ROOT, "build-arm64" if arch == "arm64" else "build")
        self.programs = os.path.join(self.build, "tests/guest/programs")
        self.parts = {}

    def object(self, source):
        """Compiles a script for the guest; the path of the object."""
        name = os.path.basename(source)[:-2]
        path = os.path.join(self.work, f"{name}.{self.arch}.o")
        if os.path.exists(path):
            return path
        options = []
        if self.arch == "arm64":
            btf = tap.run(os.path.join(tap.ROOT, "tests/guest/btf"), "arm64", "6.12")
            options = ["--arch", "arm64", "--btf", btf.out.strip()]
        built = tap.run(os.path.join(tap.ROOT, "build/duet"), "build",
                        os.path.join(tap.ROOT, source), "-o", path, *options)
        if built.status != 0:
            self.t.ok(False, f"{self.name}: {source} compiles", built)
        return path

    def run(self, script, *options, timeout=600):
        path = os.path.join(self.work, f"{self.arch}-{self.kernel}.sh")
        with open(path, "w") as file:
            file.write(PRELUDE + f"DUET={self.build}/duet P={self.programs} W={self.work}\n"
                       + script)
        guest = tap.Process([os.path.join(tap.ROOT, "tests/guest/run"), "--arch", self.arch,
                             "--kernel", self.kernel, "--timeout", str(timeout), *options, "--",
                             "bash", path], cwd=tap.ROOT)
        guest.end(timeout + 60)
        for block in re.split(r"^@@@ ", guest.out, flags=re.M)[1:]:
            head, body = block.split("\n", 1)
            name, status = head.rsplit(" ", 1)
            out, err = body.split("\n@@@err\n", 1) if "\n@@@err\n" in body else (body, "")
            self.parts[name] = Part(int(status), out, err)
        if guest.status != 0:
            self.t.ok(False, f"{self.name}: the guest ran its script", guest.err[-2000:])

    def __getitem__(self, name):
        return self.parts.get(name, MISSING)

    def ok(self, good, name, *details):
        return self.t.ok(good, f"{self.name}: {name}", *details)
