/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel as an oracle: loads programs, runs them with BPF_PROG_TEST_RUN, and shows what they
 * left in array maps. Plain bpf(2). A struct kernel belongs to one thread.
 */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_ARRAYS 4

struct kernel {
	size_t n;
	struct kernel_array {
		int map;
		uint8_t *data; /* the elements, shared with the kernel, 8-byte aligned each */
		size_t size;
	} arrays[KERNEL_ARRAYS];
};

/* Adds an array map. Its index or -errno (-EPERM: not allowed here). kernel_close() takes a
 * struct of zeroes, and one that is half built. */
int kernel_add_array(struct kernel *kernel, size_t value_size, size_t entries);
void kernel_close(struct kernel *kernel);

/* Instructions that load the address of the first element of an array, plus @offset, into @dst
 * (two slots). */
void kernel_load_address(const struct kernel *kernel, size_t array, uint32_t offset, uint32_t dst,
			 struct bpf_insn *ret);
/* ... that load the map itself, for helpers. */
void kernel_load_map(const struct kernel *kernel, size_t array, uint32_t dst, struct bpf_insn *ret);

/* A descriptor to run, or -errno: -EACCES or -EINVAL when the verifier refused it. With @log, the
 * verifier's last words. */
int kernel_load(const struct bpf_insn *code, size_t ncode, char *log, size_t log_size);
/* Runs it once with a context (r1) of four bytes that hold @number. 0 or -errno. */
int kernel_run(int program, uint32_t number);
