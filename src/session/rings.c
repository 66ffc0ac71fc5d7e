// SPDX-License-Identifier: BSD-2-Clause
/* Output of the kernel half: rings to user/event, bpf_printk and iterators to the report. */
#include "session/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"

#define PORTION    4096 /* records */
#define PORTION_NS 1000000

static bool ring_matches(const struct hook_program *program, const void *map)
{
	/* The ring has its name from the first of its programs. */
	return program->parameter == map || !strcmp(program->parameter, map);
}

/* What a record means for the run, after its programs: 0, or the consume ends. */
static int go_on(struct session *session, int code, const struct err *err)
{
	if (code) {
		session_fail(session, err);
		return -ECANCELED;
	}
	/* What is there at the end is served whatever asked for it. */
	return session->stop_asked && !session->draining ? -ECANCELED : 0;
}

static int take_record(void *context, const void *record, size_t size)
{
	struct session_ring *ring = context;
	struct session *session = ring->session;
	struct err err;
	int code;

	/* To clear all of it takes as long as a small hook. */
	err.code = 0;
	err.text[0] = 0;
	if (hook_half_dead(session->half))
		return -ECANCELED;
	if (ring->batch)
		code = hook_batch_run(ring->batch, record, size);
	else
		code = hook_run(session->half, HOOK_EVENT, ring_matches, ring->map, record, size,
				&err);
	return go_on(session, code, ring->batch ? ring->batch->err : &err);
}

static int after_record(void *context, uint64_t result)
{
	struct session_ring *ring = context;

	return go_on(ring->session, hook_batch_after(ring->batch, result), ring->batch->err);
}

static int drive(void *context, struct hook_batch *batch)
{
	struct session_ring *ring = context;
	const struct kern_direct direct = { .call = batch->direct,
					    .attention = batch->attention,
					    .after = after_record,
					    .context = ring };

	if (direct.call)
		return kern_ring_consume_direct(ring->ring, ring->limit, &direct);
	return kern_ring_consume(ring->ring, ring->limit);
}

/* At most @limit records (0: all there are) in one entry of the vm. Like kern_ring_consume(). */
static int consume(struct session_ring *ring, size_t limit)
{
	struct hook_batch batch = { .kind = HOOK_EVENT,
				    .match = ring_matches,
				    .match_context = ring->map,
				    .drive = drive,
				    .context = ring };
	struct session *session = ring->session;
	struct err err = { 0 };
	int code, count = 0;

	/* A fault leaves by siglongjmp(), and libbpf's own loop over perf buffers would lose its
	 * place. In checked mode each record is a region of its own. */
	if (!kern_ring_is_direct(ring->ring) || hook_half_dead(session->half) ||
	    session->options->checked)
		return kern_ring_consume(ring->ring, limit);
	ring->limit = limit;
	ring->batch = &batch;
	code = hook_run_batch(session->half, &batch, &count, &err);
	ring->batch = NULL;
	if (!code)
		return count;
	session_fail(session, &err);
	return -ECANCELED;
}

int session_lost(struct session *session, uint32_t what, uint32_t cpu, uint64_t count)
{
	struct duet_lost lost = { .n = count, .what = what, .cpu = cpu };

	session->exit.lost += count;
	return session_run_hook(session, HOOK_LOST, &lost, sizeof(lost));
}

static void lose_records(void *context, int cpu, uint64_t count)
{
	struct session_ring *ring = context;

	ring->lost += count;
	session_lost(ring->session, 0, cpu, count);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* In portions, so that timers and signals are served under a flood: a millisecond late at most, if
 * one portion takes no longer. The clock is cheaper than another turn of the loop. */
static int ring_ready(void *context, int fd, uint32_t events)
{
	struct session_ring *ring = context;
	uint64_t end = now_ns() + PORTION_NS;
	int count;

	do
		count = consume(ring, PORTION);
	while (count == PORTION && !ring->session->signalled && now_ns() < end);
	/* A ring that was full had something to read: no timer is needed. */
	session_tell_lost(ring->session);
	return count < 0 && count != -ECANCELED && count != -EINTR && count != -EAGAIN ? count : 0;
}

int session_check_rings(struct session *session, struct err *err)
{
	size_t i, k;

	for (i = 0; i < hook_program_count(session->half); i++) {
		const struct hook_program *program = hook_program_at(session->half, i);
		struct kern_map_info info;
		struct nearest nearest;
		struct kern_map *map;
		char near[256];

		if (program->kind != HOOK_EVENT)
			continue;
		map = kern_map_find(session->kern, program->parameter);
		if (map) {
			kern_map_get_info(map, &info);
			if (info.type == BPF_MAP_TYPE_RINGBUF ||
			    info.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY)
				continue;
			return err_set(err, -EINVAL,
				       "SEC(\"%s\"): map %s is neither a RING() nor EVENTS()",
				       program->section, program->parameter);
		}
		err_set(err, -ENOENT, "SEC(\"%s\"): the script has no map `%s`", program->section,
			program->parameter);
		nearest_init(&nearest, program->parameter);
		for (k = 0; k < kern_map_count(session->kern); k++)
			nearest_offer(&nearest, kern_map_name(kern_map_at(session->kern, k)));
		nearest_text(&nearest, near, sizeof(near));
		return near[0] ? err_hint(err, -ENOENT, "did you mean %s?", near) : -ENOENT;
	}
	return 0;
}

static int open_ring(struct session *session, const char *name, struct err *err)
{
	struct kern_map *map = kern_map_find(session->kern, name);
	struct session_ring *ring;
	int code;

	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return err_nomem(err);
	ring->session = session;
	ring->map = name;
	ring->next = session->rings;
	session->rings = ring;
	code = kern_ring_open(map, take_record, lose_records, ring, &ring->ring, err);
	if (code)
		return err_prepend(err, code, "SEC(\"user/event/%s\")", name);
	return loop_fd(session->loop, kern_ring_fd(ring->ring), EPOLLIN, ring_ready, ring, NULL,
		       err);
}

int session_open_rings(struct session *session, struct err *err)
{
	const struct session_ring *ring;
	size_t i;
	int code;

	for (i = 0; i < hook_program_count(session->half); i++) {
		const struct hook_program *program = hook_program_at(session->half, i);

		if (program->kind != HOOK_EVENT)
			continue;
		for (ring = session->rings; ring; ring = ring->next) {
			if (!strcmp(ring->map, program->parameter))
				break;
		}
		code = ring ? 0 : open_ring(session, program->parameter, err);
		if (code)
			return code;
	}
	return 0;
}

void session_drain_rings(struct session *session)
{
	struct session_ring *ring;

	session->draining = true;
	for (ring = session->rings; ring; ring = ring->next) {
		while (ring->ring && consume(ring, 0) > 0)
			continue;
	}
}

void session_rings_cpu_went(struct session *session, int cpu)
{
	struct session_ring *ring;

	for (ring = session->rings; ring; ring = ring->next) {
		if (!ring->ring || kern_ring_is_direct(ring->ring))
			continue;
		consume(ring, 0);
		kern_ring_cpu_went(ring->ring, cpu);
	}
}

int session_rings_cpu_came(struct session *session, int cpu)
{
	struct session_ring *ring;
	int first = 0;

	for (ring = session->rings; ring; ring = ring->next) {
		int code = ring->ring ? kern_ring_cpu_came(ring->ring, cpu) : 0;

		first = first ? first : code;
	}
	return first;
}

void session_close_rings(struct session *session)
{
	while (session->rings) {
		struct session_ring *ring = session->rings;

		session->rings = ring->next;
		kern_ring_close(ring->ring);
		free(ring);
	}
	kern_printk_close(session->printk);
}

/* ---- bpf_printk ---------------------------------------------------------------------------- */

/* Does a program of the kernel half call bpf_trace_printk or bpf_trace_vprintk? */
static bool prints(const struct session *session)
{
	uint32_t i;

	for (i = 1; i < obj_section_count(session->obj); i++) {
		const Elf64_Shdr *section = obj_section(session->obj, i);
		const struct bpf_insn *insn, *end;
		size_t size;

		if (!(section->sh_flags & SHF_EXECINSTR) ||
		    !strncmp(obj_section_name(session->obj, i), "user/", 5) ||
		    !strncmp(obj_section_name(session->obj, i), "UBPF", 4))
			continue;
		insn = obj_section_data(session->obj, i, &size);
		for (end = insn + size / sizeof(*insn); insn < end; insn++) {
			if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg &&
			    (insn->imm == BPF_FUNC_trace_printk ||
			     insn->imm == BPF_FUNC_trace_vprintk))
				return true;
		}
	}
	return false;
}

static void take_line(void *context, const char *line, size_t size)
{
	struct session *session = context;
	struct err err;
	int code;

	report_text(session->report, line, size);
	if (!size || line[size - 1] != '\n')
		report_text(session->report, "\n", 1);
	code = report_failed(session->report);
	if (code && !session->failure.code) {
		err_set(&err, code, "output: %s", strerror(-code));
		session_fail(session, &err);
	}
}

static int printk_ready(void *context, int fd, uint32_t events)
{
	struct session *session = context;
	int count = kern_printk_consume(session->printk);

	return count < 0 && count != -EINTR ? count : 0;
}

int session_open_printk(struct session *session, struct err *err)
{
	struct err reason = { 0 };
	int code;

	if (!prints(session))
		return 0;
	code = kern_printk_open(take_line, session, &session->printk, &reason);
	if (code) {
		log_note("bpf_printk() is not shown: %s", reason.text);
		return 0;
	}
	return loop_fd(session->loop, kern_printk_fd(session->printk), EPOLLIN, printk_ready,
		       session, NULL, err);
}

/* ---- iterators ------------------------------------------------------------------------------ */

static int print_iterator(struct session *session, int fd)
{
	char text[16384];
	ssize_t got;

	while ((got = read(fd, text, sizeof(text))) > 0 || (got < 0 && errno == EAGAIN)) {
		if (got > 0 && report_text(session->report, text, got))
			return -EIO; /* told by report_finish() */
	}
	return got < 0 ? -errno : 0;
}

int session_print_iterators(struct session *session, struct err *err)
{
	size_t i;

	for (i = 0; i < kern_program_count(session->kern); i++) {
		struct kern_program *program = kern_program_at(session->kern, i);
		const char *section = kern_program_section(program);
		CLEANUP(close_fd) int fd = -1;
		int code;

		if ((strncmp(section, "iter/", 5) && strncmp(section, "iter.s/", 7)) ||
		    kern_program_state(program) != KERN_PROGRAM_ATTACHED)
			continue;
		fd = kern_program_iter_fd(program);
		code = fd < 0 ? fd : print_iterator(session, fd);
		if (code)
			return err_set(err, code, "%s: SEC(\"%s\"): %s", kern_program_name(program),
				       section, strerror(-code));
	}
	return 0;
}
