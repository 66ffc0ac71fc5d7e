/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel as an oracle: loads a program, runs it once with BPF_PROG_TEST_RUN, and shows what it
 * left in the one value of an array map. Plain bpf(2).
 */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

struct kernel {
	int map;
	uint8_t *value; /* the map's value, shared with the kernel */
	size_t value_size;
};

/* 0 or -errno (-EPERM: not allowed here). */
int kernel_open(struct kernel *kernel, size_t value_size);
void kernel_close(struct kernel *kernel);

/* Instructions that load the address of the map's value into @dst (two slots). */
void kernel_load_address(const struct kernel *kernel, uint32_t dst, struct bpf_insn *ret);

/* 0 when it was accepted and has run, -EACCES or -EINVAL when the verifier refused it. With @log,
 * the verifier's last words. */
int kernel_run(const struct kernel *kernel, const struct bpf_insn *code, size_t ncode, char *log,
	       size_t log_size);
