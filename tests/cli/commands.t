#!/bin/bash
# TAP: the commands beside `duet run`: build, cflags, new, inspect, list, doctor, help.
. "$(dirname "$0")/lib.sh"

# ---- help ------------------------------------------------------------------------------------
t "duet alone: usage on standard error" 2 'out=' 'err~duet run ' -- "$duet"
t "duet --help" 0 'out~duet run ' 'out~duet doctor' 'out~^examples:' 'err!.' -- "$duet" --help
t "duet help" 0 'out~duet run ' -- "$duet" help
t "duet --version" 0 'out~^duet [0-9]+\.[0-9]+\.[0-9]+$' -- "$duet" --version
for command in run build cflags new inspect dis asm list doctor; do
	t "duet $command --help: usage and an example" 0 "out~^usage: duet $command" 'out~example' \
		'err!.' -- "$duet" $command --help
	"$duet" $command --help >/dev/full 2>"$work/err"
	[ $? = 1 ]
	ok "duet $command --help into a full device: 1"
done
for option in $("$duet" run --help | grep -oE '^  -[-a-zA-Z]+' | sort -u); do
	grep -q -- "$option" man/duet-run.1 2>/dev/null || grep -rq -- "$option" src/cli/run.c
	ok "duet run $option: described"
done

# ---- new, build, run ---------------------------------------------------------------------------
first=$work/first.c
t "new writes a script" 0 'out~first.c: written: try .duet run ' -- "$duet" new "$first"
t "new leaves an existing file alone" 1 'err~first.c: exists already' err1 -- "$duet" new "$first"
t "new where it cannot write" 1 'err~/nowhere/x.c: cannot be written: No such' err1 -- \
	"$duet" new /nowhere/x.c
for clang in clang-19 clang-14; do
	t "the new script runs as it stands: $clang" 0 'out~^by_process' 'out~^[0-9]+ processes$' -- \
		env DUET_CLANG=$clang "$duet" run "$first" -- ls /
done
t "build puts the object beside the source" 0 'out=' 'err!.' -- "$duet" build "$first"
[ -s "$work/first.o" ]
ok "build: it is there"
t "build -o" 0 -- "$duet" build "$first" -o "$work/other.o"
cmp -s "$work/first.o" "$work/other.o"
ok "build: the same source gives the same object"
t "build where it cannot write" 1 'err~/nowhere/x.o: .*No such file' err1 -- \
	"$duet" build "$first" -o /nowhere/x.o
mknod "$work/full" c 1 7 # a duplicate of /dev/full: what goes wrong must not hit the machine's
t "build -o into a full device" 1 'err~full: cannot be written: No space left' err1 -- \
	"$duet" build "$first" -o "$work/full"
[ -c "$work/full" ]
ok "which is still a device"
ln -s linked.o "$work/link.o"
t "build -o into a link" 0 -- "$duet" build "$first" -o "$work/link.o"
[ -L "$work/link.o" ] && [ -s "$work/linked.o" ]
ok "which is still a link"
t "build of what is not there" 1 'err~^duet: nothing.c: No such file' err1 -- "$duet" build nothing.c
echo '#include <duet.h>
SEC("user/exit") int f(void) { retrun 0; }' >"$work/wrong.c"
t "build of what does not compile: the compiler's words and one line of ours" 1 \
	'err~wrong.c:2:' 'err~^duet: .*wrong.c: does not compile' -- "$duet" build "$work/wrong.c"
[ ! -e "$work/wrong.o" ]
ok "build: nothing is left of it"
t "build --cflags reaches the compiler" 1 'err~MISTAKE' -- \
	"$duet" build "$first" --cflags '-DMISTAKE=1 -include nothing-MISTAKE.h' -o "$work/x.o"
t "build --arch of an unknown one" 1 'err~riscv' err1 -- "$duet" build --arch riscv "$first"
other=arm64
[ "$(uname -m)" = aarch64 ] && other=x86_64
t "build for the other architecture needs its types" 1 "err~--btf" err1 -- \
	"$duet" build --arch $other "$first" -o "$work/other.o"
btf=$(tests/guest/btf $other 6.12)
t "build for the other architecture" 0 -- \
	"$duet" build --arch $other --btf "$btf" "$first" -o "$work/other.o"
t "which this machine refuses by name" 1 "err~built for $other, and this machine is" err1 -- \
	"$duet" run "$work/other.o" -- true

# ---- the second run starts no compiler -----------------------------------------------------------
cp "$first" "$work/cached.c"
echo "static const u64 unique __attribute__((used)) = $$;" >>"$work/cached.c"
compilers() { # COMMAND...: programs that it executes and whose name has clang in it
	strace -f -qq -e trace=execve -o "$work/trace" "$@" >/dev/null 2>&1
	grep -c 'execve(".*clang.* = 0' "$work/trace"
}
[ "$(compilers "$duet" run "$work/cached.c" -- true)" -ge 1 ]
ok "the first run compiles"
[ "$(compilers "$duet" run "$work/cached.c" -- true)" = 0 ]
ok "the second run starts no compiler"
echo "// changed" >>"$work/cached.c"
[ "$(compilers "$duet" run "$work/cached.c" -- true)" -ge 1 ]
ok "an edited script is compiled again"

# ---- cflags ----------------------------------------------------------------------------------------
for clang in clang-19 clang-14; do
	export DUET_CLANG=$clang
	read -ra flags <<<"$("$duet" cflags)"
	[ ${#flags[@]} -gt 5 ]
	ok "cflags: one line for $clang"
	for script in examples/*.c "$first"; do
		grep -q '<duet.h>' "$script" || continue
		t "cflags: $clang compiles ${script##*/} by hand" 0 'err!.' -- \
			$clang "${flags[@]}" -c "$script" -o "$work/by-hand.o"
		t "and duet loads it" 0 'err~sound' -- \
			"$duet" run "$work/by-hand.o" --dry-run
	done
done
unset DUET_CLANG

# ---- inspect ------------------------------------------------------------------------------------------
t "inspect: programs, hooks, maps, variables, events, groups, needs" 0 \
	'out~on_switch +SEC\("raw_tp/sched_switch"\)' 'out~report +SEC\("user/exit"\)' \
	'out~by_proc +hash, 10240 entries, struct proc -> struct use \(20 -> 56 bytes\)' \
	'out~^  cycles +cycles$' 'out~^  insns +instructions$' 'out~^  ipc +cycles,insns$' \
	'out~^  raw tracepoints +this one ' 'out! $' -- "$duet" inspect examples/ipc.c
t "inspect: arguments" 0 'out~^\* FUNC +char\[128\] = "vfs_read"$' 'out~kernel function' \
	'out~^  kprobes ' 'out~^  task storage ' 'out!_slot' -- "$duet" inspect examples/func_cost.c
t "inspect: sampling and options" 0 'out~-e cycles -F 997 -g' 'out~--flight 5s' \
	-- "$duet" inspect tests/scripts/spike.c
t "inspect --dis: both halves, with source lines" 0 'out~^\.function report "user/exit" ; user half$' \
	'out~^\.function on_switch "raw_tp/sched_switch" ; kernel half$' 'out~ipc.c:[0-9]+' 'out~: call ' -- \
	"$duet" inspect --dis examples/ipc.c
t "inspect of an object for the other architecture" 0 "out~^  $other" -- \
	"$duet" inspect "$work/other.o"
t "inspect of what is no object" 1 'err~Makefile' err1 'out=' -- "$duet" inspect ./Makefile

# ---- list -----------------------------------------------------------------------------------------------
t "list: what there is to list" 0 'out~^  events' 'out~^  probes' -- "$duet" list
t "list events" 0 'out~^cycles$' 'out~^page-faults$' 'out~^L1-dcache-load-misses$' -- \
	"$duet" list events
t "list events GLOB" 0 'out~^cache-misses$' 'out!^cycles$' -- "$duet" list events 'cache*'
t "list events -v" 0 'out~^page-faults +software' -- "$duet" list events 'page-f*' -v
t "list probes" 0 'out~^kprobe/vfs_read$' 'out~^raw_tp/sched_switch$' \
	'out~^tracepoint/sched/sched_switch$' -- "$duet" list probes
t "list probes -v: a SEC line and a signature" 0 'out~^SEC\("kprobe/vfs_read"\)$' \
	'out~^int BPF_KPROBE\(vfs_read, struct file \*file, char \*buf, size_t count, loff_t \*pos\)$' \
	'out~^int BPF_KRETPROBE\(vfs_read_return, ssize_t result\)$' -- "$duet" list probes vfs_read -v
t "list probes -v: tracepoints" 0 'out~^SEC\("tracepoint/sched/sched_switch"\)$' \
	'out~^int sched_switch\(struct trace_event_raw_sched_switch \*ctx\)$' \
	'out~^SEC\("tp_btf/sched_switch"\)$' -- "$duet" list probes sched_switch -v
{
	echo '#include <duet.h>'
	for name in sched_switch sys_enter_openat sys_exit_read signal_generate; do
		"$duet" list probes "tracepoint/*/$name" -v | sed 's/)$/) { return 0; }/; s/^\(SEC.*\) { return 0; }/\1/'
	done
} >"$work/pasted.c"
t "what -v prints compiles as it stands" 0 'err!.' -- "$duet" build "$work/pasted.c"
t "list hooks" 0 'out~^user/interval ' 'out~^user/child/exec ' -- "$duet" list hooks
t "list hooks -v" 0 'out~SEC\("user/exit"\) int NAME\(const struct duet_exit \*x\)' -- \
	"$duet" list hooks -v
t "list functions" 0 'out~^print_map$' 'out~^hist_quantile$' 'out~C and math library' -- \
	"$duet" list functions
t "list functions -v: prototypes and descriptions" 0 \
	'out~^int map_clear\(const void \*map\)$' 'out~^    deletes every element' \
	'out~^print_map\(map, options\)$' 'out!struct .*\{' -- "$duet" list functions -v
t "list functions -v: what scripts must declare" 0 'out~^sprintf$' 'out~no header of duet declares it' -- \
	"$duet" list functions -v sprintf
t "list functions GLOB" 0 'out~^hist_move$' 'out!print_map' -- "$duet" list functions 'hist_*'
t "list tools" 0 -- "$duet" list tools
t "list GLOB: every kind" 0 'out~^raw_tp/sched_switch$' -- "$duet" list 'sched_sw*'
t "list of what is not there" 1 'err~^duet: nothing-such: nothing here has such a name' err1 -- \
	"$duet" list nothing-such
(
	set +o pipefail
	"$duet" list probes 2>"$work/err" | head -1 | grep -q '^raw_tp' && [ ! -s "$work/err" ]
)
ok "list into a pipe that closes early: quiet"
"$duet" list events >/dev/full 2>/dev/null
[ $? = 1 ]
ok "list into a full device: 1"

# ---- doctor --------------------------------------------------------------------------------------------
t "doctor: BTF, probes, PMU, compiler" 0 'out~^  (hardware PMU|[a-z0-9_]+) +(no|[0-9]+) .*(virtual machine|found none|are free)' 'out~^  BTF +yes' 'out~^  kprobes +(yes|no)' \
	'out~^  cycles +(yes|no)' 'out~^  page-faults +yes' 'out~^  perf_event_paranoid' \
	'out~^  clang +yes +/.*clang' 'err!.' -- "$duet" doctor
python3 -c 'import ctypes, struct, time
attr = ctypes.create_string_buffer(struct.pack("IIQ", 1, 128, 2), 128) # page faults
c = ctypes.CDLL(None)
print(c.syscall(298, attr, 0, -1, -1, 0) + c.syscall(298, attr, 0, -1, -1, 0), flush=True)
time.sleep(60)' >"$work/holder" &
holder=$!
until [ -s "$work/holder" ]; do sleep 0.05; done
t "doctor names who else has events open" 0 \
	"out~^  other user +2 +events are open in process $holder \(python3\)" -- "$duet" doctor
kill $holder
t "doctor without a compiler says how to get one" 0 'out~^  clang +no .*(apt|install)' -- \
	env PATH=/nowhere "$duet" doctor
"$duet" doctor >/dev/full 2>/dev/null
[ $? = 1 ]
ok "doctor into a full device: 1"

# ---- the demonstration of `make run` -----------------------------------------------------------------------
if [ "$duet" = "$root/build/duet" ]; then
	try scripts/demo
	[ "$status" = 0 ]
	ok "demo: ends well"
	for pattern in '^== 1/4' '^== 4/4' '^  BTF +yes' '^  cycles +(yes|no)' '^  kprobes +(yes|no)' \
		'^by_proc' '^ *[0-9]+  a ' '^ *[0-9]+  b ' '^ *[0-9]+  c '; do
		grep -Eq "$pattern" "$work/out"
		ok "demo: $pattern"
	done
	grep '^{' "$work/out" >"$work/json"
	python3 - "$work/json" <<'END'
import json, sys
tables = [json.loads(line) for line in open(sys.argv[1])]
rows = {row["comm"]: row for table in tables if table["type"] == "table" for row in table["rows"]}
assert {"a", "b", "c"} <= set(rows), rows
assert all(rows[name]["cycles"]["value"] > 0 for name in "abc"), rows
END
	ok "demo: the three processes as JSON, counted"
	if grep -Eq '^  cycles +no' "$work/out"; then
		grep -q '^by_proc (cycles = cpu-clock)$' "$work/out" &&
			grep -q '"events":{"cycles":"cpu-clock"}' "$work/out" &&
			grep -q '^Missing: instructions' "$work/out"
	else
		! grep -q 'cpu-clock)' "$work/out"
	fi
	ok "demo: without a PMU the header names what is counted, and what is missing is said"
	sed -n '/^== 4/,$p' "$work/out" | grep '^build/duet' >"$work/commands"
	[ "$(wc -l <"$work/commands")" = 3 ]
	ok "demo: three commands to paste"
	mkdir "$work/paste"
	while read -r line; do
		(cd "$work/paste" && ln -sfn "$root/build" build && ln -sfn "$root/examples" examples &&
			timeout 120 bash -c "$line") >"$work/out" 2>"$work/err" </dev/null &&
			[ -s "$work/out" ]
		ok "demo: paste: $line"
	done <"$work/commands"
fi

done_testing
