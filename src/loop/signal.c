// SPDX-License-Identifier: BSD-2-Clause
#include "loop/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "loop/internal.h"

/*
 * A handler gets no context, so this one pointer must be global: the loop that owns the signals.
 * A real handler (and no signalfd) because a script that never returns must be interrupted too.
 */
static _Atomic(struct loop *) signal_owner;

static void handle_signal(int signo)
{
	struct loop *loop = atomic_load(&signal_owner);
	const uint64_t one = 1;
	int saved = errno;

	if (loop) {
		loop_signal_hook_fn hook = atomic_load(&loop->hook);

		atomic_fetch_add(&loop->arrived[signo], 1);
		atomic_fetch_add(&loop->pending[signo], 1);
		if (hook)
			hook(atomic_load(&loop->hook_context), signo);
		if (write(loop->wake_fd, &one, sizeof(one)) < 0) {
			/* The counter is full, so the loop wakes anyway. */
		}
	}
	errno = saved;
}

static int serve_signals(struct loop_source *source, uint32_t events)
{
	struct loop *loop = source->loop;
	uint64_t count;
	int signo, result = 0;

	if (read(loop->wake_fd, &count, sizeof(count)) < 0)
		return 0;
	for (signo = 1; signo < NSIG; signo++) {
		while (result >= 0 && atomic_load(&loop->pending[signo])) {
			const struct loop_signal_entry *entry = &loop->signals[signo];

			atomic_fetch_sub(&loop->pending[signo], 1);
			if (entry->fn)
				result = entry->fn(entry->context, signo);
		}
	}
	if (result < 0) {
		const uint64_t one = 1;

		/* Signals behind the failed one stay to be served. */
		if (write(loop->wake_fd, &one, sizeof(one)) < 0)
			return result;
	}
	return result;
}

static int own_signals(struct loop *loop, struct err *err)
{
	struct loop *nobody = NULL;
	struct loop_source *source;
	int code;

	if (loop->owns_signals)
		return 0;
	if (loop->wake_fd < 0)
		loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wake_fd < 0)
		return err_set(err, -errno, "signals: %s", strerror(errno));
	if (!atomic_compare_exchange_strong(&signal_owner, &nobody, loop))
		return err_set(err, -EBUSY, "signals: another loop of this process owns them");
	loop->owns_signals = true;
	code = source_add(loop, loop->wake_fd, false, EPOLLIN, serve_signals, loop, &source, err);
	if (code) {
		loop->owns_signals = false;
		atomic_store(&signal_owner, NULL);
	}
	return code;
}

int loop_signal(struct loop *loop, int signo, int flags, loop_signal_fn fn, void *context,
		struct err *err)
{
	struct sigaction action = { .sa_handler = handle_signal };
	struct loop_signal_entry *entry;
	struct sigaction old;
	sigset_t set;
	int code;

	if (signo <= 0 || signo >= NSIG)
		return err_set(err, -EINVAL, "signal %d: no such signal", signo);
	code = own_signals(loop, err);
	if (code)
		return code;
	if (!(flags & LOOP_SIGNAL_INTERRUPTS))
		action.sa_flags = SA_RESTART;
	sigemptyset(&action.sa_mask);
	entry = &loop->signals[signo];
	if (sigaction(signo, &action, &old))
		return err_set(err, -errno, "signal %d: %s", signo, strerror(errno));
	if (!entry->used)
		entry->old = old;
	entry->used = true;
	entry->fn = fn;
	entry->context = context;
	/* Our parent may have left it blocked. */
	sigemptyset(&set);
	sigaddset(&set, signo);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return 0;
}

void loop_set_signal_hook(struct loop *loop, loop_signal_hook_fn hook, void *context)
{
	/* In this order a handler between the lines never pairs a hook with another's context. */
	atomic_store(&loop->hook, NULL);
	atomic_store(&loop->hook_context, context);
	atomic_store(&loop->hook, hook);
}

unsigned int loop_signal_count(const struct loop *loop, int signo)
{
	return signo > 0 && signo < NSIG ? atomic_load(&loop->arrived[signo]) : 0;
}

void signals_release(struct loop *loop)
{
	int signo;

	for (signo = 1; signo < NSIG; signo++) {
		if (loop->signals[signo].used)
			sigaction(signo, &loop->signals[signo].old, NULL);
	}
	sigaction(SIGPIPE, &loop->pipe_action, NULL);
	if (loop->owns_signals)
		atomic_store(&signal_owner, NULL);
	if (loop->owns_signals)
		pthread_sigmask(SIG_SETMASK, &loop->mask, NULL);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
}

void signals_restore_child(const struct loop *loop)
{
	int signo;

	sigaction(SIGPIPE, &loop->pipe_action, NULL);
	for (signo = 1; signo < NSIG; signo++) {
		if (loop->signals[signo].used)
			sigaction(signo, &loop->signals[signo].old, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &loop->mask, NULL);
}
