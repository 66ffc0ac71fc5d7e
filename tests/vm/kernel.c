// SPDX-License-Identifier: BSD-2-Clause
#include "kernel.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf_call(int command, union bpf_attr *attr)
{
	int rc = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return rc < 0 ? -errno : rc;
}

int kernel_add_array(struct kernel *kernel, size_t value_size, size_t entries)
{
	struct kernel_array *array = &kernel->arrays[kernel->n];
	union bpf_attr attr;
	void *data;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = value_size;
	attr.max_entries = entries;
	attr.map_flags = BPF_F_MMAPABLE;
	fd = bpf_call(BPF_MAP_CREATE, &attr);
	if (fd < 0)
		return fd;
	array->size = ((value_size + 7) & ~7ul) * entries;
	data = mmap(NULL, array->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED) {
		close(fd);
		return -errno;
	}
	array->data = data;
	array->map = fd;
	return kernel->n++;
}

void kernel_close(struct kernel *kernel)
{
	while (kernel->n) {
		struct kernel_array *array = &kernel->arrays[--kernel->n];

		munmap(array->data, array->size);
		close(array->map);
	}
}

static void load_pseudo(uint32_t kind, int map, uint32_t offset, uint32_t dst, struct bpf_insn *ret)
{
	memset(ret, 0, 2 * sizeof(*ret));
	ret[0].code = BPF_LD | BPF_IMM | BPF_DW;
	ret[0].dst_reg = dst;
	ret[0].src_reg = kind;
	ret[0].imm = map;
	ret[1].imm = offset;
}

void kernel_load_address(const struct kernel *kernel, size_t array, uint32_t offset, uint32_t dst,
			 struct bpf_insn *ret)
{
	load_pseudo(BPF_PSEUDO_MAP_VALUE, kernel->arrays[array].map, offset, dst, ret);
}

void kernel_load_map(const struct kernel *kernel, size_t array, uint32_t dst, struct bpf_insn *ret)
{
	load_pseudo(BPF_PSEUDO_MAP_FD, kernel->arrays[array].map, 0, dst, ret);
}

int kernel_load(const struct bpf_insn *code, size_t ncode, char *log, size_t log_size)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_SYSCALL; /* the least work around a run */
	attr.prog_flags = BPF_F_SLEEPABLE;
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = ncode;
	attr.license = (uintptr_t) "GPL";
	if (log) {
		log[0] = '\0';
		attr.log_buf = (uintptr_t)log;
		attr.log_size = log_size;
		attr.log_level = 1;
	}
	return bpf_call(BPF_PROG_LOAD, &attr);
}

int kernel_run(int program, uint32_t number)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = program;
	attr.test.ctx_in = (uintptr_t)&number;
	attr.test.ctx_size_in = sizeof(number);
	return bpf_call(BPF_PROG_TEST_RUN, &attr);
}
