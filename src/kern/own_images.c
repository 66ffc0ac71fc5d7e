// SPDX-License-Identifier: BSD-2-Clause
/* The images of duet's own BPF programs, from src/kern/bpf/. */
#include "kern/own.h"

#include <stdint.h>

/* Hidden: through the global offset table, arm64's linker gives all local labels one slot. */
/* Global, because a reference through the GOT to a local label loses its offset on arm64; hidden,
 * so that there is no such reference. */
#define EMBED(name)                                                                   \
	extern const char own_##name##_begin[] __attribute__((visibility("hidden"))); \
	extern const char own_##name##_end[] __attribute__((visibility("hidden")));   \
	__asm__(".pushsection .rodata\n"                                              \
		".balign 8\n"                                                         \
		".globl own_" #name "_begin, own_" #name "_end\n"                     \
		".hidden own_" #name "_begin, own_" #name "_end\n"                    \
		"own_" #name "_begin:\n"                                              \
		".incbin \"" OWN_IMAGES_FOLDER "/" #name ".bpf.image\"\n"             \
		"own_" #name "_end:\n"                                                \
		".byte 0\n"                                                           \
		".popsection\n")

EMBED(totals);
EMBED(target);
EMBED(trigger);
EMBED(printk);
EMBED(code);

static struct own_image image_between(const char *begin, const char *end)
{
	return (struct own_image){ begin, (uintptr_t)end - (uintptr_t)begin };
}

struct own_image own_image(enum own_name name)
{
	switch (name) {
	case OWN_TOTALS:
		return image_between(own_totals_begin, own_totals_end);
	case OWN_TARGET:
		return image_between(own_target_begin, own_target_end);
	case OWN_PRINTK:
		return image_between(own_printk_begin, own_printk_end);
	case OWN_CODE:
		return image_between(own_code_begin, own_code_end);
	default:
		return image_between(own_trigger_begin, own_trigger_end);
	}
}
