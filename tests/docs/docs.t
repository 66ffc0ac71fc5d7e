#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The documents say what is: their examples run, their links lead somewhere, their options exist.

A fenced block in README.md and docs/*.md says in its first line what is done with it:

    c run NAME.c     a whole script: written to NAME.c; checked by --dry-run unless a `sh run` of the
                     same document runs it
    c build NAME.c   the same for what this machine may be unable to attach: compiled only
    c part           declarations: compiled behind #include <duet.h>
    c refused [clang-14]   a whole script that is refused; the `text` block that follows is the message
    sh run [status=N]      commands, run in a folder that holds these scripts and the examples
    sh elsewhere     commands for other machines: their scripts and options exist
    text             behind one of the above: its output, numbers apart; `text unordered`: in any
                     order of lines; `text sample`: not compared

Any other C or shell block is a mistake.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import tap  # noqa: E402

COMMANDS = ["run", "build", "cflags", "new", "inspect", "dis", "asm", "list", "doctor"]
TIMEOUT = 120
MANUALS = {"duet-run.1": "run", "duet-build.1": "build", "duet-list.1": "list",
           "duet-inspect.1": "inspect", "duet-doctor.1": "doctor", "duet-asm.1": "asm",
           "duet-dis.1": "dis"}
TOOLS = {"duet-funcpmu.1": "funcpmu", "duet-ipctop.1": "ipctop"}

os.chdir(tap.ROOT)
documents = ["README.md"] + sorted(glob.glob("docs/*.md"))
work = tap.work_folder("docs")
environment = dict(os.environ, PATH=os.path.dirname(tap.DUET) + ":" + os.environ["PATH"])
environment.pop("DUET_CLANG", None)
tests = tap.Tap()


def read(path):
    with open(path) as file:
        return file.read()


def command(argv, **changes):
    try:
        done = subprocess.run(argv, cwd=work, env=dict(environment, **changes), text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT,
                              errors="replace")
    except subprocess.TimeoutExpired:
        return 124, "", "hangs"
    return done.returncode, done.stdout, done.stderr


class Block:
    def __init__(self, line, info, text):
        self.line, self.text = line, text
        self.words = info.split()
        self.language = self.words[0] if self.words else ""
        self.verb = self.words[1] if len(self.words) > 1 else ""
        self.argument = self.words[2] if len(self.words) > 2 else ""


def blocks_of(path):
    blocks, start = [], None
    for number, line in enumerate(read(path).split("\n"), 1):
        fence = re.match(r" *```(.*)", line)
        if not fence:
            if start:
                text.append(line)
        elif start:
            blocks.append(Block(*start, "\n".join(text) + "\n"))
            start = None
        else:
            start, text = (number, fence.group(1)), []
    return blocks


def normal(text):
    """Numbers, their units and the spacing differ from run to run, and so how many rows alike."""
    text = text.replace(work + "/", "").replace(tap.ROOT + "/", "")
    lines = []
    for line in text.split("\n"):
        line = re.sub(r"(?<![A-Za-z_])-?\d[\d,.]*(?: ?(?:ns|us|ms|s|B|KiB|MiB|GiB|%)(?!\w))?", "N",
                      line)
        line = re.sub(r"\|[@ ]*\|", "|BAR|", line)
        line = re.sub(r"\s+", " ", line).strip()
        if line and (not lines or lines[-1] != line):
            lines.append(line)
    return "\n".join(lines)


# ---- examples ------------------------------------------------------------------------------------

def write_script(name, text):
    with open(os.path.join(work, name), "w") as file:
        file.write(text)


def check_output(place, block, out, shown):
    is_now, wanted = normal(out), normal(block.text)
    if block.verb == "unordered":
        is_now, wanted = sorted(is_now.split("\n")), sorted(wanted.split("\n"))
    tests.ok(is_now == wanted, f"{place}: the output is as shown", "shown:", normal(block.text),
             "is:", normal(out), shown)


def check_elsewhere(place, block):
    """Every `duet COMMAND` in it names a script that is there and options that exist."""
    bad = []
    text = re.sub(r"\\\n", " ", block.text)
    for line in re.findall(r"\bduet (\w+)((?: +[^\s|;&#]+)*)", text):
        verb, words = line[0], line[1].split()
        tool = verb in TOOLS.values()
        if verb not in COMMANDS and not tool:
            bad.append(f"{verb}: no such command")
            continue
        for word in words[:words.index("--")] if "--" in words else words:
            option = word.split("=")[0]
            known = options_of("run") | tool_options(verb) if tool else options_of(verb)
            if option.startswith("-") and option not in known | {"-"}:
                bad.append(f"duet {verb}: {option}: no such option")
            if word.endswith(".c") and not os.path.exists(os.path.join(work, word)) \
                    and not os.path.exists(word) and verb != "new":
                bad.append(f"{word}: no such script")
    tests.ok(not bad, f"{place}: commands exist", *bad)


def check_refused(place, block, answer):
    write_script("refused.c", block.text)
    changes = {"DUET_CLANG": block.argument} if block.argument else {}
    status, out, err = command([tap.DUET, "run", "refused.c", "--dry-run"], **changes)
    told = [line for line in err.split("\n") if line.startswith("duet: ")]
    wanted = answer.text if answer else "?"
    tests.ok(status == 1 and normal(wanted) in normal("\n".join(told)),
             f"{place}: refused as shown", f"status {status}", "shown:", wanted, "is:", err)


def check_document(path):
    blocks = blocks_of(path)
    commands = "".join(block.text for block in blocks if block.language == "sh")
    for i, block in enumerate(blocks):
        place = f"{path}:{block.line}"
        after = blocks[i + 1] if i + 1 < len(blocks) and blocks[i + 1].language == "text" else None
        if block.language == "c" and block.verb == "refused":
            check_refused(place, block, after)
        elif block.language == "c" and block.verb in ("run", "build") and block.argument:
            write_script(block.argument, block.text)
            if block.argument in commands and block.verb == "run":
                continue
            how = ["run", block.argument, "--dry-run"] if block.verb == "run" else \
                ["build", block.argument]
            status, out, err = command([tap.DUET, *how])
            tests.ok(status == 0 and "warning" not in err, f"{place}: {block.argument} is sound",
                     err)
        elif block.language == "c" and block.verb == "part":
            write_script("part.c", "#include <duet.h>\n" + block.text)
            status, out, err = command([tap.DUET, "build", "part.c"])
            tests.ok(status == 0 and "warning" not in err, f"{place}: compiles", err)
        elif block.language == "sh" and block.verb == "run":
            status, out, err = command(["bash", "-euo", "pipefail", "-c", block.text])
            wanted = int(block.argument.split("=")[1]) if block.argument else 0
            tests.ok(status == wanted, f"{place}: runs", f"status {status}, not {wanted}", err, out)
            if after and after.verb != "sample":
                check_output(place, after, out, err)
        elif block.language == "sh" and block.verb == "elsewhere":
            check_elsewhere(place, block)
        elif block.language in ("c", "sh", "bash", "console"):
            tests.ok(False, f"{place}: a block says what is done with it", " ".join(block.words))


# ---- links -----------------------------------------------------------------------------------------

def anchors_of(path):
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.S | re.M)
    anchors = set()
    for heading in re.findall(r"^#+ (.*)", text, re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        anchors.add(plain.replace(" ", "-"))
    return anchors


def check_links(path):
    bad = []
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(file):
            bad.append(f"{target}: no such file")
        elif anchor and anchor not in anchors_of(file):
            bad.append(f"{target}: no such heading")
    # Paths in backquotes that look like files of the tree.
    for file in re.findall(r"`((?:src|docs|include|examples|scripts|tests|man|bench)/[\w./-]+)`",
                           text):
        if "NAME" not in file and not os.path.exists(file):
            bad.append(f"{file}: no such file")
    tests.ok(not bad, f"{path}: what it refers to is there", *bad)


# ---- options, hooks, functions -----------------------------------------------------------------

helps = {}


def help_of(verb):
    if verb not in helps:
        helps[verb] = command([tap.DUET, verb, "--help"])[1]
    return helps[verb]


def help_options(verb):
    """Every option that --help tells of: what is before its examples and the exit status."""
    text = re.split(r"\n\n?(?:examples?|exit status):", help_of(verb))[0].replace("-- CMD", "")
    if verb == "list":
        text = text.replace("what -e and", "")
    return set(re.findall(r"(?<![\w-])(-[A-Za-z]|--[a-z][a-z-]*)(?![\w-])", text)) - {"--help"}


def options_of(verb):
    return help_options(verb) | {"--help"}


def tool_options(tool):
    """What a shipped tool declares itself."""
    own = help_of(tool).split(f"arguments of {tool}:")[-1]
    return set(re.findall(r"^ +(--[a-z-]+) ", own, re.M))


def man_options(path):
    found = set()
    for line in read(path).split("\n"):
        if line.startswith("."):
            found |= {"-" + word for word in re.findall(r"\bFl (\S+)", line)}
    return found - {"-vv", "--help"}


def check_manual(path):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True,
                          text=True)
    tests.ok(done.returncode == 0 and not done.stdout, f"{path}: mandoc finds nothing",
             done.stdout, done.stderr)
    verb = MANUALS.get(os.path.basename(path))
    if verb:
        tests.ok(man_options(path) == help_options(verb),
                 f"{path}: its options are those of duet {verb} --help",
                 f"in the manual only: {sorted(man_options(path) - help_options(verb))}",
                 f"in --help only: {sorted(help_options(verb) - man_options(path))}")
    tool = TOOLS.get(os.path.basename(path))
    if tool:
        own = tool_options(tool)
        tests.ok(own and own <= man_options(path), f"{path}: has the options of duet {tool} --help",
                 f"in --help only: {sorted(own - man_options(path))}")
    refers = re.findall(r"^\.Xr (duet\S*) (\d)", read(path), re.M)
    missing = [f"{name}({section})" for name, section in refers
               if not os.path.exists(f"man/{name}.{section}")]
    tests.ok(not missing, f"{path}: the manuals that it refers to are there", *missing)


def check_names():
    listed = command([tap.DUET, "list", "hooks", "-v"])[1]
    text = read("docs/hooks.md")
    missing = [row for row in re.findall(r'SEC\("(user/[\w/]+)"\)(?:.*struct (\w+) \*)?', listed)
               if row[0] not in text or row[1] not in text]
    tests.ok(len(listed) > 100 and not missing, "docs/hooks.md has every hook", *missing)
    listed = command([tap.DUET, "list", "functions"])[1].split("\n")
    names = [name for name in listed if re.fullmatch(r"\w+", name)]
    text = read("docs/functions.md")
    # sprintf() is there for objects that declare it; duet.h has snprintf() instead.
    missing = [name for name in names if not re.search(rf"\b{name}\b", text)
               and name != "sprintf"]
    tests.ok(len(names) > 40 and not missing, "docs/functions.md has every listed function",
             *missing)
    safe = command([tap.DUET, "list", "functions", "--checked"])[1].split("\n")
    text = read("docs/scripts.md")
    math = read("include/duet/libc.h").split("<math.h>")[1]
    missing = [name for name in set(safe) - set(listed) if name and f"`{name}`" not in text
               and not name.startswith("is") and name not in ("toupper", "tolower")
               and not re.search(rf"\b{name}\(", math)]
    tests.ok(len(safe) > len(listed) + 100 and not missing,
             "docs/scripts.md has every function of the C library for checked mode", *missing)
    shown = set(re.findall(r"^  duet (\w+) ", command([tap.DUET, "--help"])[1], re.M))
    text = read("man/duet.1")
    missing = [name for name in COMMANDS if not re.search(rf"\bCm {name}\b", text)]
    tests.ok(shown >= set(COMMANDS) and not missing, "duet.1 and duet --help have every command",
             *missing, sorted(shown))


def check_first_script():
    script = read("examples/hello.c").split("\n", 1)[1]
    tests.ok(f"\n{script}```" in read("README.md"), "README.md shows examples/hello.c as it is")
    lines = [line for line in script.split("\n") if line.strip()]
    tests.ok(len(lines) <= 20, "the first script has at most 20 lines", len(lines))


for example in glob.glob("examples/*.c"):
    shutil.copy(example, work)
check = subprocess.run(["scripts/generate-functions", "--check"], capture_output=True, text=True)
tests.ok(check.returncode == 0, "docs/functions.md is what the headers say", check.stdout,
         check.stderr)
check_first_script()
check_names()
for document in documents:
    check_document(document)
for document in documents + ["tests/guest/README.md"]:
    check_links(document)
for manual in sorted(glob.glob("man/*.[1-8]")):
    check_manual(manual)
tests.ok(set(MANUALS) | set(TOOLS) | {"duet.1", "duet-scripts.7"} == set(os.listdir("man")) - {"meson.build"},
         "man/ holds the manuals and nothing else", os.listdir("man"))
tests.done()
