// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpf_printk() live, by the tracepoint that each call passes: other readers of the trace buffer
 * lose nothing. A program of duet's own puts the lines into a ring, in the order of their making.
 */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kern/own.h"

struct kern_printk {
	kern_line_fn line;
	void *context;
	struct own own;
	struct kern_map lines;
	struct kern_ring *ring;
};

void kern_printk_close(struct kern_printk *printk)
{
	uint32_t zero = 0;
	uint64_t lost = 0;

	if (!printk)
		return;
	if (printk->ring && !bpf_map_lookup_elem(own_map_fd(&printk->own, "lost"), &zero, &lost) &&
	    lost)
		log_note("%llu lines of bpf_printk() were lost", (unsigned long long)lost);
	kern_ring_close(printk->ring);
	own_close(&printk->own);
	free(printk);
}

static int take_line(void *context, const void *record, size_t size)
{
	struct kern_printk *printk = context;

	printk->line(printk->context, record, strnlen(record, size));
	return 0;
}

int kern_printk_open(kern_line_fn line, void *context, struct kern_printk **ret, struct err *err)
{
	CLEANUP(kern_printk_close_cleanup)
	struct kern_printk *printk = calloc(1, sizeof(*printk));
	struct bpf_map *map;
	int code;

	if (!printk)
		return err_nomem(err);
	printk->line = line;
	printk->context = context;
	LISTEN(NULL);
	code = own_open(&printk->own, OWN_PRINTK, err);
	if (!code)
		code = own_load(&printk->own, err);
	if (code)
		return code;
	map = bpf_object__find_map_by_name(printk->own.object, "lines");
	printk->lines = (struct kern_map){ .name = "lines",
					   .fd = bpf_map__fd(map),
					   .info = { .type = BPF_MAP_TYPE_RINGBUF,
						     .max_entries = bpf_map__max_entries(map) } };
	code = kern_ring_open(&printk->lines, take_line, NULL, printk, &printk->ring, err);
	if (!code)
		code = own_attach(&printk->own, "duet_printk", err);
	if (code)
		return code;
	*ret = take_pointer(printk);
	return 0;
}

int kern_printk_fd(const struct kern_printk *printk)
{
	return kern_ring_fd(printk->ring);
}

int kern_printk_consume(struct kern_printk *printk)
{
	return kern_ring_consume(printk->ring, 0);
}
