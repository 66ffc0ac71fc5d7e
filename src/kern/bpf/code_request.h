/* SPDX-License-Identifier: BSD-2-Clause */
/* What code.bpf.c is asked, and answers. */
#pragma once

#define CODE_BYTES 64

struct code_request {
	unsigned long long function[16]; /* its name, filled up with zeros */
	unsigned long long offset;
	unsigned long long code[CODE_BYTES / 8]; /* there: the answer */
};
