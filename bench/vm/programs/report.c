// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The end of a run: rows are sorted by count and printed. */
#include "program.h"

struct row {
	u64 key, count, total, least;
};

extern void qsort(void *rows, unsigned long count, unsigned long size,
		  int (*compare)(const void *, const void *));
extern u64 bench_print_row(char *line, u64 size, u64 key, u64 count, u64 mean);

CALLED int by_count(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->key < y->key ? -1 : x->key > y->key;
}

PASS(report, struct row *rows)
{
	u64 n = size / sizeof(*rows), sum = 0, i;
	char line[64];

	for (i = 0; i < n; i++) {
		rows[i].key = i;
		rows[i].count = (i ^ seed << 5) * 2654435761U >> 7 & 0xffff;
		rows[i].total = rows[i].count * (i & 255);
		rows[i].least = i & 3;
	}
	qsort(rows, n, sizeof(*rows), by_count);
	for (i = 0; i < n; i++) {
		struct row *row = &rows[i];

		sum += bench_print_row(line, sizeof(line), row->key, row->count,
				       row->count ? row->total / row->count : 0);
		sum = sum * 5 + line[3];
	}
	return sum;
}
