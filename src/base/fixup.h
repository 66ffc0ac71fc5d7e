/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single instructions that may fault through nobody's fault: the kernel may forbid them at any
 * moment. Their addresses, and where to go on when one faults, are a table that the linker puts
 * together; whoever handles fault signals asks it first. In the asm of such an instruction:
 *
 *	"1:\trdpmc\n\txor %k2, %k2\n2:\n" FIXUP("1b", "2b")
 *
 * It must leave its outputs as they were. fixup_find(): any thread, also in a signal handler.
 */
#pragma once

#include <stdint.h>

/* Relative to the row's own members, so that nothing is to be relocated. */
struct fixup {
	int32_t at, resume;
};

#define FIXUP(at, resume)                     \
	"\t.pushsection duet_fixups, \"a\"\n" \
	"\t.balign 4\n"                       \
	"\t.long " at " - .\n"                \
	"\t.long " resume " - .\n"            \
	"\t.popsection\n"

/* Named by the linker after the section; both NULL where nothing is in it. */
extern const struct fixup __start_duet_fixups[] __attribute__((weak, visibility("hidden")));
extern const struct fixup __stop_duet_fixups[] __attribute__((weak, visibility("hidden")));

/* Where to go on when the instruction at @pc has faulted; 0: it is none of these. */
static inline uintptr_t fixup_find(uintptr_t pc)
{
	const struct fixup *fixup = __start_duet_fixups;

	for (; (uintptr_t)fixup < (uintptr_t)__stop_duet_fixups; fixup++) {
		if ((uintptr_t)&fixup->at + fixup->at == pc)
			return (uintptr_t)&fixup->resume + fixup->resume;
	}
	return 0;
}
