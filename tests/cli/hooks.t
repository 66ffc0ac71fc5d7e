#!/bin/bash
# TAP: when the hooks run, what they receive, what their results do, and what is refused.
. "$(dirname "$0")/lib.sh"

# script NAME [BEFORE] <<END: a script of the lines on standard input, behind those of BEFORE
script() {
	{
		printf '#include <duet.h>\n%s' "${2:+$2$'\n'}"
		cat
	} >"$work/$1.c"
}
# in_order PATTERN...: lines of $work/out match, one after the other, others may lie between
in_order() {
	python3 - "$work/out" "$@" <<'END'
import re, sys
lines = iter(open(sys.argv[1]).read().splitlines())
for pattern in sys.argv[2:]:
    if not any(re.search(pattern, line) for line in lines):
        sys.exit(f"# missing, in this order: {pattern}")
END
}

# ---- order, arguments --------------------------------------------------------------------------
script order <<'END'
RING(records, 65536);
HASH(wide, 10, u32, u32);
const volatile u32 NUMBER = 1;
const volatile u32 OTHER = 1;
u64 seen, never, chosen, entries;
PMU(spin, "cycles");
PMU(pair, "page-faults");
PMU(apart, "context-switches");
PMU_GROUP(both, "spin,pair");

struct record { u32 number; };
SEC("raw_tp/sys_enter") int on_call(void *ctx)
{
	struct record *record;

	if (!in_target() || __sync_fetch_and_add(&seen, 1) >= 5)
		return 0;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record)
		return 0;
	record->number = NUMBER * 1000 + OTHER;
	bpf_ringbuf_submit(record, 0);
	return 0;
}
SEC("raw_tp/sys_exit") int off(void *ctx) { if (in_target()) never++; return 0; }
SEC("raw_tp/nothing_of_this_name") int chosen_later(void *ctx) { if (in_target()) chosen++; return 0; }
SEC("kprobe/no_such_function_anywhere") int optional(void *ctx) { return 0; }
OPTIONAL(optional);

SEC("user/open") int open1(const struct duet_options *o)
{
	printf("open1 %llu %u\n", o->duration_ns, bpf_map_update_elem(&wide, &seen, &seen, BPF_ANY) == -ENOENT);
	*(volatile u32 *)&NUMBER = 7;
	map_max_entries(&wide, 3);
	prog_disable(off);
	printf("target %d\n", prog_target(chosen_later, "raw_tp:sched_switch"));
	printf("event %d\n", pmu_event(&spin, "cpu-clock"));
	return 0;
}
SEC("user/open") int open2(void) { puts("open2"); return 1; }
SEC("user/open") int open3(void) { puts("never: open3"); return 0; }
SEC("user/init") int init(const struct duet_options *o)
{
	u32 i;

	for (i = 0; !bpf_map_update_elem(&wide, &i, &i, BPF_ANY); i++)
		;
	printf("init %llu entries, %llu calls\n", map_count(&wide), seen);
	return 0;
}
SEC("user/start") int start(void) { puts("start"); return 0; }
SEC("user/event/records") int event(const struct record *r, u64 size)
{
	printf("event %u size %llu\n", r->number, size);
	return 0;
}
SEC("user/exit") int exit1(const struct duet_exit *e)
{
	struct pmu_sum sum, other;

	printf("exit1 reason %d status %d\n", e->reason, e->status);
	printf("off %llu, chosen %d, total %d\n", never, chosen > 0,
	       !pmu_total(&spin, &sum) && sum.count > 0);
	printf("here %d\n", !pmu_read(&spin, &sum) && sum.count > 0 && sum.running == sum.enabled);
	printf("together %d %d\n", pmu_together(&spin, &sum, &pair, &other),
	       pmu_together(&spin, &sum, &apart, &other) == -EXDEV && !sum.enabled);
	return 0;
}
SEC("user/exit") int exit2(void) { puts("exit2"); return 0; }
END
t "every hook" 3 'err~optional.*no_such_function_anywhere' -- "$duet" run "$work/order.c" \
	--set OTHER=5 -d 60 -- sh -c 'exit 3'
in_order '^open1 60000000000 1$' '^target 0' '^event 0' '^open2$' '^init 3 entries, 0 calls$' '^start$' \
	'^event 7005 size 4$' '^event 7005' '^exit1 reason 0 status 3$' \
	'^off 0, chosen 1, total 1$' '^here 1$' '^together 0 1$' '^exit2$'
ok "in order: open sets constants, sizes, targets, events, and switches programs off"
[ "$(grep -c '^event 7005' "$work/out")" = 5 ]
ok "every record arrives before exit"
! grep -q never "$work/out"
ok "a positive return skips the programs behind it"

# ---- the process tree ------------------------------------------------------------------------------
script tree <<'END'
u64 calls;
SEC("raw_tp/sys_enter") int on_call(void *ctx) { if (in_target()) calls++; return 0; }
static u64 forks, execs, exits;
SEC("user/child/fork") int on_fork(const struct duet_child *c)
{
	forks++;
	printf("fork %s %d\n", c->comm, c->pid != c->parent && c->parent);
	return 0;
}
SEC("user/child/exec") int on_exec(const struct duet_child *c)
{
	execs++;
	printf("exec %s\n", c->comm);
	return 0;
}
SEC("user/child/exit") int on_exit(const struct duet_child *c)
{
	exits++;
	printf("exit %s %d %d\n", c->comm, WIFEXITED(c->status), WEXITSTATUS(c->status));
	return 0;
}
SEC("user/exit") int report(void)
{
	printf("%llu forks %llu execs %llu exits\n", forks, execs, exits);
	return 0;
}
END
t "child hooks" 0 'out~^fork sh 1$' 'out~^exec uname$' 'out~^exit sh 1 4$' -- \
	"$duet" run "$work/tree.c" -- sh -c 'uname >/dev/null; (exit 4); true'
in_order '^exec sh$' '^fork sh' '^exec uname$' '^exit uname 1 0$' '^fork sh' '^exit sh 1 4$' \
	'^2 forks 2 execs [23] exits$'
ok "in the order in which they happen"

# ---- intervals ---------------------------------------------------------------------------------------
script ticks <<'END'
static u64 last, named, missed;
SEC("user/interval") int every(const struct duet_tick *t)
{
	printf("tick %llu %d\n", t->n, t->now > last && t->since_last > 0);
	last = t->now;
	if (t->n == 1)
		usleep(200000);
	missed += t->missed;
	if (missed >= 3 && named > 3)
		duet_stop(0);
	return 0;
}
SEC("user/interval/7ms") int often(const struct duet_tick *t) { named++; return 0; }
SEC("user/exit") int report(const struct duet_exit *e)
{
	printf("missed %llu, reason %d\n", missed, e->reason);
	return 0;
}
END
t "intervals: numbered, missed ones counted, not queued" 0 'out~^tick 1 1$' \
	'out~^missed [1-9][0-9]*, reason 3$' -- "$duet" run "$work/ticks.c" -I 20 -d 60

# ---- signals ------------------------------------------------------------------------------------------
script signals <<'END'
SEC("user/start") int start(void) { puts("started"); return 0; }
SEC("user/signal/USR1") int one(const struct duet_signal *s) { printf("USR1 %d\n", s->number); return 0; }
SEC("user/signal/SIGUSR2") int two(void) { puts("USR2"); return duet_stop(6); }
SEC("user/exit") int report(void) { puts("exit"); return 0; }
END
"$duet" run "$work/signals.c" >"$work/out" 2>"$work/err" </dev/null &
pid=$!
until grep -q started "$work/out"; do kill -0 $pid || break; sleep 0.05; done
kill -USR1 $pid
until grep -q USR1 "$work/out"; do kill -0 $pid || break; sleep 0.05; done
kill -USR2 $pid
wait $pid
[ $? = 6 ] && in_order '^started$' '^USR1 10$' '^USR2$' '^exit$'
ok "signals: numbers, and duet_stop() from one"

# ---- lost --------------------------------------------------------------------------------------------
# A kernel half whose ring is too small. FLAGS: of each record's submission.
small_ring() { # FLAGS
	cat <<END
RING(small, 4096);
u64 failed;
SEC("raw_tp/sys_enter") int on_call(void *ctx)
{
	void *record;

	if (!in_target())
		return 0;
	record = bpf_ringbuf_reserve(&small, 1000, 0);
	if (!record) {
		__sync_fetch_and_add(&failed, 1);
		return 0;
	}
	bpf_ringbuf_submit(record, $1);
	return 0;
}
END
}

script lost "$(small_ring BPF_RB_NO_WAKEUP)" <<'END'
static u64 lost, got;
SEC("user/event/small") int event(const void *r, u64 size) { got += size == 1000; return 0; }
SEC("user/lost") int on_lost(const struct duet_lost *l) { lost += l->n; return 0; }
SEC("user/exit") int report(const struct duet_exit *e)
{
	printf("same %d, some %d, got %d, told %d\n", lost == failed, lost > 0, got > 0, e->lost == lost);
	return 0;
}
END
t "lost: failed reservations arrive in user/lost" 0 'out~^same 1, some 1, got 1, told 1$' -- \
	"$duet" run "$work/lost.c" -- dd if=/dev/zero of=/dev/null bs=1 count=1000 status=none

# The command ends only once user/lost has made a file.
script lost-live "$(small_ring 0)" <<'END'
char file[256] = "";
ARG(file, "FILE", "made by user/lost");
static u64 lost, calls;
SEC("user/event/small") int event(const void *r, u64 size)
{
	int tries = 0;

	while (!*(volatile u64 *)&failed && tries++ < 3000)
		usleep(10000);
	return 0;
}
SEC("user/lost") int on_lost(const struct duet_lost *l)
{
	FILE *made = fopen(file, "w");

	lost += l->n;
	calls++;
	return made ? fclose(made) : -1;
}
SEC("user/exit") int report(const struct duet_exit *e)
{
	printf("same %d, told %d\n", lost == failed, e->lost == lost && calls > 0);
	return 0;
}
END
rm -f "$work/lost-file"
t "lost: told while the run goes on" 0 'out~^same 1, told 1$' -- \
	"$duet" run "$work/lost-live.c" "$work/lost-file" -- sh -c \
	'i=0; until [ -e "$0" ]; do sleep 0.02; i=$((i + 1)); [ $i -lt 2000 ] || exit 3; done' \
	"$work/lost-file"

# ---- results --------------------------------------------------------------------------------------------
for hook in open init exit; do
	script "negative-$hook" <<END
SEC("user/$hook") int fails(void) { return -EBUSY; }
SEC("user/$hook") int behind(void) { puts("behind"); return 0; }
SEC("user/exit") int report(void) { puts("report"); return 0; }
END
	t "a negative return of user/$hook: told, status 1" 1 'out!behind' err1 \
		"err~fails: user/$hook returned -16: Device or resource busy" -- \
		"$duet" run "$work/negative-$hook.c" -- true
done
script negative-running <<'END'
SEC("user/start") int fails(void) { return -EBUSY; }
SEC("user/start") int behind(void) { puts("behind"); return 0; }
SEC("user/interval/10ms") int ticks(const struct duet_tick *t) { return t->n < 5 ? -EAGAIN : duet_stop(4); }
SEC("user/exit") int report(void) { puts("report"); return 0; }
END
t "a negative return elsewhere: told once, the run goes on" 4 'out~^behind$' 'out~^report$' \
	'err~fails: user/start returned -16: Device or resource busy' \
	'err~ticks: user/interval/10ms returned -11' -- \
	"$duet" run "$work/negative-running.c"
t "nothing was attached or started after user/init failed" 1 'out!ran' -- \
	"$duet" run "$work/negative-init.c" -- echo ran

# ---- the names of earlier patches ------------------------------------------------------------------------
script ubpf <<'END'
ARRAY(counts, 4, u32);
static char buffer[8];
SEC("UBPF;perf_record_start") int start(void *ctx)
{
	u32 key = 2, value = 40, copy = 0, next = 0;

	ubpf_map_update_elem(&counts, &key, &value, BPF_ANY);
	ubpf_map_lookup_elem(&counts, &key, &copy);
	ubpf_map_get_next_key(&counts, NULL, &next);
	ubpf_memcpy(buffer, "abc", 4);
	ubpf_printf("start: %d %d %d %d\n", copy, next, ubpf_memcmp(buffer, "abc", 3),
		    ubpf_strcmp(buffer, "abd") < 0);
	return 0;
}
SEC("UBPF;perf_record_end") int end(struct ubpf_record_end *e) { ubpf_printf("end %d\n", e->samples); return 5; }
SEC("UBPF;perf_record_exit") int last(void *ctx) { ubpf_printf("never\n"); return 0; }
END
t "UBPF; programs and their numbered helpers" 0 'out!never' -- "$duet" run "$work/ubpf.c" -- true
in_order '^start: 40 0 0 1$' '^end 0$'
ok "UBPF: start, end; any other result than 0 stops the chain"

# ---- refused at load, by name ------------------------------------------------------------------------------
refused() { # NAME PATTERN <<END
	script "$1" </dev/stdin
	t "refused: $1" 1 "err~$2" err1 'out=' -- "$duet" run "$work/$1.c" -- true
}
refused wrong-argument 'f: user/exit receives \(const struct duet_exit \*\) or \(void\), not this' <<'END'
SEC("user/exit") int f(const struct duet_tick *t) { return 0; }
END
refused wrong-start 'f: user/start receives \(void\)' <<'END'
SEC("user/start") int f(const struct duet_tick *t) { return 0; }
END
refused integer-argument 'f: user/interval receives \(const struct duet_tick \*\)' <<'END'
SEC("user/interval") int f(int t) { return 0; }
END
refused wrong-event 'user/event/r receives \(const struct YOURS \*record, u64 size\)' <<'END'
RING(r, 4096);
SEC("user/event/r") int f(int a, u64 size) { return 0; }
END
refused unknown-hook 'SEC\("user/exti"\).*did you mean user/exit' <<'END'
SEC("user/exti") int f(void) { return 0; }
END
refused unknown-alias 'UBPF;perf_record_begin' <<'END'
SEC("UBPF;perf_record_begin") int f(void) { return 0; }
END
refused unknown-ring 'user/event/recods.*(did you mean records|no map)' <<'END'
RING(records, 4096);
SEC("user/event/recods") int f(const void *r, u64 size) { return 0; }
END
refused event-of-a-hash 'user/event/h' <<'END'
HASH(h, 16, u32, u32);
SEC("user/event/h") int f(const void *r, u64 size) { return 0; }
END
refused bad-interval 'user/interval/often.*no interval of at least 1us' <<'END'
SEC("user/interval/often") int f(void) { return 0; }
END
refused bad-signal 'there is no signal .FOO.' <<'END'
SEC("user/signal/FOO") int f(void) { return 0; }
END
refused kill-signal 'user/signal/KILL.*cannot be a hook' <<'END'
SEC("user/signal/KILL") int f(void) { return 0; }
END
refused unknown-function 'unknown-function.c:3: .strlne. is neither a function of duet nor of' <<'END'
extern size_t strlne(const char *s);
SEC("user/exit") int f(void) { return strlne("x"); }
END
refused kernel-helper 'bpf_get_current_task' <<'END'
SEC("user/exit") int f(void) { return bpf_get_current_task() != 0; }
END
refused user-function-in-kernel 'on_call.*printf|printf.*on_call' <<'END'
SEC("raw_tp/sys_enter") int on_call(void *ctx) { printf("x\n"); return 0; }
END
refused wrong-column 'print_map\(h\): no column .valeu.: did you mean value\?' <<'END'
HASH(h, 16, u32, u32);
SEC("user/exit") int f(void) { return print_map(&h, "sort=-valeu"); }
END
refused percpu-lookup 'bpf_map_lookup_percpu_elem' <<'END'
PERCPU_ARRAY(a, 1, u64);
SEC("user/exit") int f(void) { u32 k = 0; return bpf_map_lookup_elem(&a, &k) != NULL; }
END
refused no-such-target 'program f \(raw_tp/nothing_like_this\): no such tracepoint' <<'END'
SEC("raw_tp/nothing_like_this") int f(void *ctx) { return 0; }
END
refused empty-target 'TARGET is empty: give it with --set TARGET=' <<'END'
char TARGET[64];
SEC("uprobe/$TARGET:main") int f(void *ctx) { return 0; }
END
refused unknown-target-variable 'there is no variable .NONE.' <<'END'
SEC("uprobe/$NONE:main") int f(void *ctx) { return 0; }
END
refused group-without-pmu 'PMU_GROUP\(g\): there is no PMU\(b\)' <<'END'
PMU(a, "cpu-clock");
PMU_GROUP(g, "a,b");
SEC("user/exit") int f(void) { return 0; }
END
refused uprobe-without-function 'no_such_function' <<'END'
SEC("uprobe//bin/sh:no_such_function") int f(void *ctx) { return 0; }
END
refused verifier 'verifier.c:[0-9]+' <<'END'
HASH(h, 16, u32, u64);
SEC("raw_tp/sys_enter") int f(void *ctx)
{
	u32 k = 0;
	u64 *v = bpf_map_lookup_elem(&h, &k);
	*v = 1;
	return 0;
}
END

# ---- objects without a user half: their maps are the report ------------------------------------------
steps='ARRAY(steps, 2, u64);'
look='int f(void *ctx)
{
	u32 key = 0;
	return bpf_map_lookup_elem(&steps, &key) != NULL;
}'
script maps <<END
$steps
SEC("raw_tp/sys_enter") $look
END
t "maps of an object without hooks" 0 'out~^steps$' 'err!.' -- "$duet" run -q "$work/maps.c" -- true
t "no maps when CMD is not there" 127 'out=' err1 -- "$duet" run -q "$work/maps.c" -- no-such-command
# Where there are kprobes at all, the kernel refuses this one when it is attached.
script unattached <<END
$steps
SEC("kprobe/exc_page_fault") $look
END
t "no maps when a program cannot be attached" 1 'out=' err1 -- \
	"$duet" run -q "$work/unattached.c" -- true

done_testing
