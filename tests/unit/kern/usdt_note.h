/* SPDX-License-Identifier: BSD-2-Clause */
/* A USDT probe as <sys/sdt.h> would lay it out, with one signed 8-byte argument. */
#pragma once

#define USDT_PROBE(provider, name, value)                                                        \
	__asm__ volatile("990:	nop\n"                                                            \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                            \
			 ".balign 4\n"                                                           \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                      \
			 "991:	.asciz \"stapsdt\"\n"                                             \
			 "992:	.balign 4\n"                                                      \
			 "993:	.8byte 990b\n"                                                    \
			 ".8byte _.stapsdt.base\n"                                               \
			 ".8byte 0\n"                                                            \
			 ".asciz \"" provider "\"\n"                                             \
			 ".asciz \"" name "\"\n"                                                 \
			 ".asciz \"-8@%0\"\n"                                                    \
			 "994:	.balign 4\n"                                                      \
			 ".popsection\n"                                                         \
			 ".ifndef _.stapsdt.base\n"                                              \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
			 ".weak _.stapsdt.base\n"                                                \
			 ".hidden _.stapsdt.base\n"                                              \
			 "_.stapsdt.base: .space 1\n"                                            \
			 ".size _.stapsdt.base, 1\n"                                             \
			 ".popsection\n"                                                         \
			 ".endif\n"                                                              \
			 :                                                                       \
			 : "nr"((long)(value)))
