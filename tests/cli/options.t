#!/bin/bash
# TAP: every option of `duet run`, what it refuses and in which words, and the exit status.
. "$(dirname "$0")/lib.sh"

hello=$work/hello.o
"$duet" build tests/cli/options.c -o "$hello" || exit 1
run=("$duet" run "$hello")

# ---- exit status ---------------------------------------------------------------------------
t "CMD's own status" 7 -- "${run[@]}" -- sh -c 'exit 7'
t "CMD killed by a signal: 128+signal" 137 -- "${run[@]}" -- sh -c 'kill -9 $$'
t "CMD not found: 127" 127 'err~^duet: no-such-cmd: No such file' -- "${run[@]}" -- no-such-cmd
t "CMD not executable: 126" 126 'err~^duet: /etc/passwd: Permission denied' \
	-- "${run[@]}" -- /etc/passwd
t "duet_stop(5)" 5 'out~^exit: reason 3 status 5' -- "${run[@]}" --set STOP=5 -- sleep 60
t "duet_stop(0) is not CMD's status" 0 -- "${run[@]}" --set STOP_AT_ALL=1 --set STOP=0 -- sleep 60
t "user/start returns an error: told, CMD's status" 0 'err~user/start' err1 -- "${run[@]}" --set FAIL=-5 -- true
t "--overhead: what each probe cost" 0 'err~^  on_switch +raw_tp/sched_switch +[0-9]+ +[0-9.]+ +[0-9.]+$' \
	'err~^  all: [0-9.]+ ms a second' 'out!ms a second' -- "$duet" run examples/ipc.c -q --overhead -- sleep 0.1
t "-d ends it: 0" 0 'out~^exit: reason 1 status 0' -- "${run[@]}" -d 50ms
t "CMD that -d cuts off: 0" 0 'out~^exit: reason 1' -- "${run[@]}" -d 50ms -- sleep 60

interrupted() { # SIGNAL
	"${run[@]}" >"$work/out" 2>"$work/err" &
	local pid=$!
	until grep -q started "$work/out"; do
		kill -0 $pid || return 1
		sleep 0.05
	done
	kill "-$1" $pid
	wait $pid
}
interrupted INT && grep -q '^exit: reason 2 status 0' "$work/out"
ok "SIGINT: a report and 0"
interrupted TERM && grep -q '^exit: reason 2 status 0' "$work/out"
ok "SIGTERM: a report and 0"

# ---- usage errors: 2, one line that names the command to ask --------------------------------
while IFS='|' read -r words pattern; do
	read -ra words <<<"$words"
	t "usage: ${words[*]}" 2 "err~$pattern" 'out=' -- "$duet" "${words[@]}"
done <<END
frobnicate|^duet: .frobnicate. is neither a command nor a shipped tool: see
rnu x.c|did you mean run\?
run|^duet run: which SCRIPT\?: see .duet run --help.
run $hello --|-- without a command behind it
run $hello -Z|^duet run: -Z: no such option: see
run $hello -d|^duet run: -d: a value is missing
run $hello --duration|^duet run: --duration: a value is missing
run $hello --json=3|^duet run: --json=3: it takes no value
run $hello -d 0|-d 0: seconds, or a number with a unit
run $hello -d soon|-d soon: seconds
run $hello -I 0|-I 0: milliseconds
run $hello -p abc|-p abc: no list of process ids
run $hello -p 1,|-p 1,: no list
run $hello -t 0|-t 0: no list
run $hello -x ab|-x ab: the separator is one character
run $hello -p 1 -- true|-p and -t measure what runs already
run $hello -u nobody|there is no -- CMD to run as nobody
run $hello -G / -p 1|-G: not together with -p
run $hello -G / -a -- true|-G: not together with -p
run $hello -G|-G: a value is missing
run $hello -F 99 -- true|-F: that samples: not in duet run
run $hello -c 99 -- true|-c: that samples: not in duet run
run $hello -g -- true|-g: that samples: not in duet run
build|which SCRIPT.c\?
build x.o|which SCRIPT.c\?
build x.c --frob|--frob: no such option
cflags x.c|x.c: it takes no files
new|which FILE.c\?
inspect|which SCRIPT\?
inspect --frob|--frob: no such option
list --frob|--frob: no such option
list events a b|b: one GLOB at a time
doctor x|x: it takes no arguments
doctor --frob|--frob: no such option
build x.c -o|-o: a value is missing
build x.c --arch|--arch: a value is missing
build x.c --out y.o|--out: no such option
build x.c -vx|-vx: no such option
asm x.s --hex=3|--hex=3: it takes no value
asm x.s y.s|y.s: one FILE.s at a time
asm -- --hex -o|-o: one FILE.s at a time
dis|which SCRIPT, or which bytes\?
dis x.o f g|g: one FUNCTION at a time
inspect x.o y.o|y.o: one SCRIPT at a time
new x.c y.c|y.c: one FILE.c at a time
END

# ---- what the script refuses: 1, one line: what: why: hint ----------------------------------
while IFS='|' read -r words pattern; do
	read -ra words <<<"$words"
	t "refused: ${words[*]}" 1 "err~$pattern" err1 'out=' -- \
		"${run[@]}" "${words[@]}" -- true
done <<'END'
-e nothing=cycles|-e nothing=cycles: the script has no PMU\(\) of this name: it has spin
-e spni=cycles|did you mean spin\?
-e spin|-e spin: write NAME=EVENT
-e spin=cpu-clokc|PMU\(spin\): event 'cpu-clokc': there is no such event: did you mean cpu-clock
-e spin=cpu-clock:z|PMU\(spin\): event 'cpu-clock:z'
-e spin=r|event 'r'
-e spin=nopmu/x=1/|there is no PMU 'nopmu'
--set nothing=1|--set: the script has no variable .nothing.: see .duet inspect
--set limti=1|did you mean limit\?
--set limit|--set limit: write VAR=VALUE
--set limit=many|limit: .many. is no number: write 10, 0x1f, 64k, 500us or a system call's name
--set limit=-1|does not fit an unsigned integer of 64 bits
--set small=256|does not fit an unsigned integer of 8 bits
--set offset=2147483648|does not fit a signed integer of 32 bits
--set flag=2|does not fit a bool
--set name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa|longer than the 15 bytes
--set fixed=1|fixed is plain .const.*declare it .const volatile.
--set pair=1|only numbers, enumerations and char arrays can be set
--map nothing.max_entries=4|the script has no map .nothing.
--map cel.value=4|did you mean cells\?
--map cells|write NAME.value\[0,2..5\]=N
--map cells.colour=4|only value, event and max_entries can be set
--map cells.max_entries=none|.none. is no number of entries
--map cells.value[9]=1|index 9: the map has entries 0..7
--map cells.value[x]=1|.x. is no list of indices
--map cells.value[1=1|the \] is missing
--map cells.value[1]=many|.many. is no number
--map by_name.value[0]=1|values are set by index
--map nothing.event=cycles|the script has no map .nothing.
-C 77|CPU 77 is not online
-C x|not a list such as
--frobnicate|--frobnicate: neither duet run nor .* has such an option
--limti 3|did you mean --limit\?
--limit many|^duet: --limit: limit: .many. is no number
--limit|^duet: --limit: a value is missing: how many
-u no-such-user|no-such-user
END
t "refused: two arguments for one ARG" 1 'err~^duet: .b.: .* takes no such argument' err1 'out=' -- \
	"${run[@]}" a b -- true
t "refused: an ARG that is too long" 1 'err~^duet: NAME: name: .*longer' err1 -- \
	"${run[@]}" aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa -- true
t "refused: a process that is not there" 1 'err~^duet: -p 4194305: no such process or thread' \
	-- "${run[@]}" -p 4194305
t "refused: a thread that is not there" 1 'err~^duet: -t 4194305: no such process or thread' \
	-- "${run[@]}" -t 4194305
t "refused: no such script" 1 'err~^duet: nothing: neither a .c, .s nor .o file' err1 -- \
	"$duet" run nothing
t "refused: no such .c" 1 'err~^duet: nothing.c: No such file' err1 -- "$duet" run nothing.c
t "refused: no such .o" 1 'err~^duet: nothing.o: No such file' err1 -- "$duet" run nothing.o
t "refused: a .o that is none" 1 'err~^duet: ./Makefile: ' err1 -- "$duet" run ./Makefile

# ---- --set and the script's own arguments ----------------------------------------------------
t "--set: numbers, sizes, durations" 0 'out~^limit 65536 small 255 offset -7 flag 1 wide 500000$' -- \
	"${run[@]}" --set limit=64k --set small=0xff --set offset=-7 --set flag=true \
	--set wide=500us -- true
write=1
[ "$(uname -m)" = aarch64 ] && write=64
t "--set: system calls by name, text, enumerators, doubles" 0 \
	"out~^limit $write  name hello colour 2 share 0.25$" -- \
	"${run[@]}" --set limit=write --set name=hello --set colour=GREEN --set share=0.25 -- true
t "--set of a const volatile reaches the kernel half" 0 'out~^kernel read 4711$' -- \
	"${run[@]}" --set constant=4711 -- true
t "ARG() and OPTION()" 0 'out~^limit 3 ' 'out~ name abc ' -- \
	"${run[@]}" abc --limit 3 -- true
t "OPTION() with =" 0 'out~^limit 4096 ' -- "${run[@]}" --limit=4k -- true
t "an option of the script whose name begins one of duet's" 0 'out~ offset 9 ' -- \
	"${run[@]}" --call 9 -- true
t "--help lists them" 0 'out~^ +--limit N? *how many' 'out~^ +NAME +whom' -- "${run[@]}" --help
t "--help before the script" 0 'out~^usage: duet run' -- "$duet" run --help

# ---- --map ------------------------------------------------------------------------------------
t "--map value by index, list and range" 0 'out~^cells 0 5 0 9 9 9 0 0$' -- \
	"${run[@]}" --map 'cells.value[1]=5' --map 'cells.value[3..5]=9' -- true
t "--map value of all" 0 'out~^cells 7 7 7 7 7 7 7 7$' -- "${run[@]}" --map 'cells.value[all]=7' -- true
t "--map value of a list" 0 'out~^cells 1 0 1 1 0 0 0 1$' -- \
	"${run[@]}" --map 'cells.value[0,2..3,7]=1' -- true
t "--map max_entries" 0 'out~^by_name holds 3$' 'err!full' -- \
	"${run[@]}" --map by_name.max_entries=3 -- true
t "--map event of a bare perf event array" 0 'out~^bare counts 1$' -- \
	"${run[@]}" --map bare.event=cpu-clock -- true
t "-e rebinds" 0 'out~^values.*spin = task-clock' -- "${run[@]}" -e spin=task-clock -- true

# ---- intervals, duration ----------------------------------------------------------------------
t "-I 20: milliseconds" 0 'out~^ticks [1-9]' -- "${run[@]}" --set STOP_AFTER=3 -I 20 -d 60
t "-I with a unit" 0 'out~^ticks 3' -- "${run[@]}" --set STOP_AFTER=3 -I 5ms -d 60

# ---- output -----------------------------------------------------------------------------------
json_ok() { python3 -m json.tool --json-lines "$1" >/dev/null; }
t "--json: CMD's standard output goes to standard error" 0 'err~^from CMD$' 'out!from CMD' -- \
	"${run[@]}" --json -- echo 'from CMD'
json_ok "$work/out"
ok "--json: every line is JSON"
t "-j is --json" 0 'out~"type":"table"' -- "${run[@]}" -j -- true
t "-o: CMD's standard output stays" 0 'out=from CMD' -- \
	"${run[@]}" --json -o "$work/report" -- echo 'from CMD'
json_ok "$work/report" && grep -q '"name":"values"' "$work/report"
ok "-o: the report is in the file"
t "--csv" 0 'out~^key,spin,spin.status$' -- "${run[@]}" --csv -- true
t "-x ;" 0 'out~^key;spin;spin.status$' -- "${run[@]}" -x ';' -- true
t "-x \\t" 0 $'out~^key\tspin\t' -- "${run[@]}" -x '\t' -- true
t "-x and a quote" 1 'err~-x: a quote or a line break cannot' err1 -- "${run[@]}" -x '"' -- true

"${run[@]}" -o "$work/whole" -- sh -c "sleep 0.2; ls '$work' >'$work/listing'" >/dev/null 2>&1
[ -s "$work/whole" ] && ! grep -qx whole "$work/listing"
ok "-o: the file appears when it is whole"
t "-o of a folder that is not there" 1 'err~^duet: -o /nowhere/x: No such file' err1 -- \
	"${run[@]}" -o /nowhere/x -- true
mknod "$work/full" c 1 7
t "-o into a full device" 1 'err~No space left' -- "${run[@]}" -o "$work/full" -- true
[ -c "$work/full" ]
ok "which is still a device"
ln -s linked "$work/link"
t "-o into a link" 0 'out=' -- "${run[@]}" -o "$work/link" -- true
[ -L "$work/link" ] && grep -q '^limit' "$work/linked"
ok "which is still a link"
"${run[@]}" -- true >/dev/full 2>"$work/err"
[ $? = 1 ] && grep -q 'No space left' "$work/err"
ok "standard output that is full: 1, and told"
t "-o - is standard output" 0 "out~^limit" -- "${run[@]}" -o - -- true
echo precious >"$work/keep"
"${run[@]}" -o "$work/keep" --set nothing=1 -- true 2>/dev/null
[ "$(cat "$work/keep")" = precious ] && [ -z "$(find "$work" -name 'keep.*')" ]
ok "-o: a run that fails at its start leaves the old file, and nothing beside it"

# ---- -q, -v, --dry-run ------------------------------------------------------------------------
t "-q: nothing beside the report" 0 'err!.' -- "${run[@]}" -q -d 20ms
t "without -q it says that it is attached" 0 'err~^duet: attached$' -- \
	"${run[@]}" -d 20ms
t "-v says more" 0 'err~attached .* s after the start' -- "${run[@]}" -v -- true
t "-vv says everything" 0 'err~libbpf' -- "${run[@]}" -vv -- true
t "--dry-run attaches nothing and runs no CMD" 0 'out=' 'err~sound: nothing was attached' -- \
	"${run[@]}" --dry-run -- sh -c "echo ran >'$work/ran'"
[ ! -e "$work/ran" ]
ok "--dry-run: CMD did not run"

# ---- who is measured --------------------------------------------------------------------------
t "-u runs CMD as that user" 0 "out~^$(id -u nobody)$" -- "${run[@]}" -u nobody -- id -u
t "-C: only this CPU's switches" 0 'out~^cpus 2$' -- \
	"${run[@]}" -C 1 -- sh -c 'taskset -cp 0 $$; taskset -cp 1 $$'
t "-a with CMD ends with it" 3 'out~^exit: reason 0 status 3' -- "${run[@]}" -a -- sh -c 'exit 3'
sleep 0.5 &
t "-p ends with its process" 0 'out~^exit: reason 0 status 0' -- "${run[@]}" -p $!
sleep 0.5 &
t "-t likewise" 0 'out~^exit: reason 0 status 0' -- "${run[@]}" -t $!

# ---- standard input, compiler ------------------------------------------------------------------
sed 's/@/%/' tests/cli/options.c | "$duet" run - -- true >"$work/out" 2>"$work/err" && grep -q ^limit "$work/out"
ok "a script on standard input"
echo 'int x = ;' | "$duet" run - -- true >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q '^<stdin>:1:9: error' "$work/err"
ok "an error on standard input is told with its line"
mkdir "$work/empty"
t "a .o runs without a compiler in PATH" 0 'out~^limit' -- \
	env PATH="$work/empty" "${run[@]}" -- /bin/true

done_testing
