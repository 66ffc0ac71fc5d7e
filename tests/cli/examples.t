#!/bin/bash
# TAP: what the examples and the target scripts promise, on this machine.
. "$(dirname "$0")/lib.sh"

# wait_for COMMAND...: until it holds; a minute at most, for a busy machine.
wait_for() {
	local i
	for ((i = 0; i < 600; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}

# ---- sys_write_cycles.c: a line at each write of the target, live --------------------------------
mkfifo "$work/go"
"$duet" run examples/sys_write_cycles.c -e counter=cpu-clock -- \
	sh -c "echo one; read x <'$work/go'; echo two; echo three; echo four" \
	>"$work/out" 2>"$work/err" </dev/null &
pid=$!
lines() { [ "$(grep -cE '^bpf count: CPU-[0-9]+ [0-9]+$' "$work/out")" = "$1" ]; }
wait_for lines 1 && kill -0 $pid && grep -q one "$work/out" && ! grep -q two "$work/out"
ok "sys_write_cycles: the line is there while the workload still runs"
(echo >"$work/go")
wait $pid && lines 4
ok "sys_write_cycles: as many lines as the target wrote"
awk '/^bpf count/ { print $4 }' "$work/out" | sort -nc
ok "sys_write_cycles: the counter grows"
yes >/dev/null &
other=$!
t "sys_write_cycles: others' writes are not the target's" 0 'out!bpf count' -- \
	"$duet" run examples/sys_write_cycles.c -e counter=cpu-clock -- sleep 0.2
kill $other
t "sys_write_cycles: another system call" 0 'out~^bpf count: CPU-' -- \
	"$duet" run examples/sys_write_cycles.c -e counter=cpu-clock --syscall=getppid -- \
	python3 -c 'import os; os.getppid()'

# ---- threshold.c: steered through shared memory ---------------------------------------------------
dd if=/dev/zero of=/dev/null bs=1 2>/dev/null &
busy=$!
strace -ff -e trace=all -e signal=none -o "$work/strace" "$duet" run examples/threshold.c \
	-p $busy -d 3 >"$work/out" 2>"$work/err" </dev/null
kill $busy
grep -Eq '^[1-9][0-9]* rounds, [1-9][0-9]* obeyed; ' "$work/out"
ok "threshold: the kernel half obeyed"
main=$(grep -l 'threshold: lowered' "$work"/strace.* | head -1)
awk '/^write\(2, "threshold: lowered/ { inside = 1; lowered++; next }
	/^write\(2, "threshold: raised/ { inside = 0; raised++; next }
	inside { print "# between: " $0; bad = 1 }
	END { exit bad || !lowered || lowered != raised }' "$main"
ok "threshold: no system call between the two lines"

# ---- events.c: produced = handled + lost, exactly ---------------------------------------------------
balance() { # LOST_PATTERN
	python3 - "$work/out" "$1" <<'END'
import re, sys
text = open(sys.argv[1]).read()
produced, handled, lost = map(int, re.search(
    r"^produced (\d+) = handled (\d+) \+ lost (\d+)$", text, re.M).groups())
assert produced == handled + lost, (produced, handled, lost)
assert handled > 0 and (lost > 0) == (sys.argv[2] == "lost"), (handled, lost)
rows = re.findall(r"^(\S+) +(\d+) +(\d+) +(\d+\.\d{3}) +(\d+\.\d)%$", text, re.M)
assert rows and len(rows) == min(10, handled), rows
times = [float(row[3]) for row in rows]
assert times == sorted(times, reverse=True), times
assert any(row[0] == sys.argv[3] if len(sys.argv) > 3 else row[0] for row in rows), rows
END
}
for clang in clang-19 clang-14; do
	export DUET_CLANG=$clang
	try "$duet" run examples/events.c --set DELAY_US=500 -- \
		dd if=/dev/zero of=/dev/null bs=1 count=20000
	[ "$status" = 0 ] && balance lost
	ok "events, $clang: a slow handler: produced = handled + lost, both above zero"
	grep -Eq 'ring events was full: [1-9][0-9]* records were lost: .*--map events.max_entries=N' \
		"$work/err"
	ok "events, $clang: the loss is told, and how to avoid it"
	try "$duet" run examples/events.c --map events.max_entries=4M -- \
		dd if=/dev/zero of=/dev/null bs=1 count=20000
	[ "$status" = 0 ] && balance none && ! grep -q lost "$work/err"
	ok "events, $clang: a larger ring loses nothing"
done
unset DUET_CLANG

# ---- the target scripts run their course ---------------------------------------------------------------
for script in adaptive cgtop dbmiss ipc spike; do
	if [ -d ../shared/scripts ]; then
		cmp -s ../shared/scripts/$script.c tests/scripts/$script.c
		ok "$script: the copy here is the script as it stands"
	fi
done
cc -O2 -Itests/unit/kern -o "$work/base" tests/guest/programs/queries.c || exit 1
dd=(dd if=/dev/zero of=/dev/null bs=1)
for clang in clang-19 clang-14; do
	export DUET_CLANG=$clang
	for script in adaptive cgtop ipc spike; do
		t "$script, $clang: loads" 0 'err~sound: nothing was attached' -- \
			"$duet" run tests/scripts/$script.c --dry-run
	done
	t "ipc, $clang: processes, switches; what is not counted says so" 0 \
		'out~^ *pid +comm +cycles +insns +switches +ipc$' 'out~^ *[0-9]+ +b .* [1-9][0-9]* ' \
		'out~^[0-9]+ processes$' -- \
		"$duet" run tests/scripts/ipc.c -- build/workload a=20M b=40M c=60M
	t "cgtop, $clang: -d 3 shows a table a second" 0 'out~^by_cgroup' 'out~switches' -- \
		"$duet" run tests/scripts/cgtop.c -d 3
	[ "$(grep -c ^by_cgroup "$work/out")" -ge 2 ]
	ok "cgtop, $clang: more than one"
	t "dbmiss, $clang: calls by query" 0 'out~^ *qid +calls' 'out~^ *40 +10 ' 'out~^ *41 +20 ' \
		'out~^ *42 +30 ' -- "$duet" run tests/scripts/dbmiss.c --set BIN="$work/base" \
		--set FUNC=get_row -e misses=page-faults -- "$work/base"
	t "spike, $clang: a bad second: the recording says that it is not in duet run" 0 \
		'err~not in duet run' 'out~^[12] bad seconds, 0 samples$' -- \
		"$duet" run tests/scripts/spike.c -d 2500ms --set NR=read --set LIMIT_US=0 -- "${dd[@]/bs=1/bs=1M}"
	t "spike, $clang: no bad second" 0 'err!.' 'out~^0 bad seconds, 0 samples$' -- \
		"$duet" run tests/scripts/spike.c --set NR=getpid -- sleep 1.2
	t "adaptive, $clang: steering says that it is not in duet run" 0 'err~not in duet run' \
		'out~^event_period\([0-9]+\): -95$' -- "$duet" run tests/scripts/adaptive.c -d 1 -a -- \
		"${dd[@]}" count=200000
done

done_testing
