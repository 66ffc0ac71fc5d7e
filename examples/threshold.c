// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Can a measurement be steered while it runs, without a system call?
//
//	duet run threshold.c -- dd if=/dev/zero of=/dev/null count=10000000
//
// Global variables are one memory for both halves. Ten times a second the user half lowers the
// threshold, watches the kernel's counter grow, raises it again, and sees that the counter stands
// still although system calls go on. Between the two lines that it writes, `strace -p` on duet
// shows nothing.
#include <duet.h>

u64 threshold = ~0ULL; /* ns between two system calls of a thread; the user half writes it */
u64 calls, over;       /* the kernel half writes these */
HASH(last_call, 65536, u32, u64);

SEC("raw_tp/sys_enter") int on_enter(void *ctx)
{
	u64 now = bpf_ktime_get_ns(), *last;
	u32 thread = bpf_get_current_pid_tgid();

	if (!in_target() || !(last = map_at(&last_call, &thread)))
		return 0;
	if (*last && now - *last >= *(volatile u64 *)&threshold)
		__sync_fetch_and_add(&over, 1);
	__sync_fetch_and_add(&calls, 1);
	*last = now;
	return 0;
}

static u64 rounds, obeyed, grown;

/* Reads *counter until it is at least @until; false after a second. */
static bool wait_for(const volatile u64 *counter, u64 until)
{
	u64 end = bpf_ktime_get_ns() + 1000000000;

	while (*counter < until)
		if (bpf_ktime_get_ns() > end)
			return false;
	return true;
}

static void say(const char *line)
{
	write(STDERR_FILENO, line, strlen(line));
}

SEC("user/interval/100ms") int steer(const struct duet_tick *t)
{
	volatile u64 *limit = &threshold;
	u64 before;
	bool ok;

	rounds++;
	say("threshold: lowered\n");
	before = over;
	*limit = 0;
	ok = wait_for(&over, before + 10);
	*limit = ~0ULL;
	/* Calls that had read the old threshold are over when each CPU has begun another. */
	ok = ok && wait_for(&calls, *(volatile u64 *)&calls + 64);
	before = *(volatile u64 *)&over;
	ok = ok && wait_for(&calls, *(volatile u64 *)&calls + 100);
	ok = ok && *(volatile u64 *)&over == before;
	say("threshold: raised\n");
	obeyed += ok;
	return 0;
}

SEC("user/exit") int report(const struct duet_exit *e)
{
	grown = over;
	printf("%llu rounds, %llu obeyed; %llu system calls, %llu counted\n", rounds, obeyed, calls,
	       grown);
	return 0;
}
