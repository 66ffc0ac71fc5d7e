// SPDX-License-Identifier: BSD-2-Clause
/* A database as dbmiss.c sees one: three queries, between a USDT each, of 10, 20 and 30 calls. */
#include "usdt_note.h"

__attribute__((noinline)) int get_row(int row)
{
	__asm__ volatile("" : "+r"(row));
	return row;
}

int main(void)
{
	int query, row;

	for (query = 0; query < 3; query++) {
		USDT_PROBE("postgresql", "query__execute__start", 40 + query);
		for (row = 0; row < 10 * (query + 1); row++)
			get_row(row);
		USDT_PROBE("postgresql", "query__execute__done", 0);
	}
	get_row(0);
	return 0;
}
