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

int kernel_open(struct kernel *kernel, size_t value_size)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = 4;
	attr.value_size = value_size;
	attr.max_entries = 1;
	attr.map_flags = BPF_F_MMAPABLE;
	fd = bpf_call(BPF_MAP_CREATE, &attr);
	if (fd < 0)
		return fd;
	kernel->value = mmap(NULL, value_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (kernel->value == MAP_FAILED) {
		close(fd);
		return -errno;
	}
	kernel->map = fd;
	kernel->value_size = value_size;
	return 0;
}

void kernel_close(struct kernel *kernel)
{
	munmap(kernel->value, kernel->value_size);
	close(kernel->map);
}

void kernel_load_address(const struct kernel *kernel, uint32_t dst, struct bpf_insn *ret)
{
	memset(ret, 0, 2 * sizeof(*ret));
	ret->code = BPF_LD | BPF_IMM | BPF_DW;
	ret->dst_reg = dst;
	ret->src_reg = BPF_PSEUDO_MAP_VALUE;
	ret->imm = kernel->map;
}

int kernel_run(const struct kernel *kernel, const struct bpf_insn *code, size_t ncode, char *log,
	       size_t log_size)
{
	union bpf_attr attr;
	int fd, rc;

	(void)kernel;
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
	fd = bpf_call(BPF_PROG_LOAD, &attr);
	if (fd < 0)
		return fd;
	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = fd;
	rc = bpf_call(BPF_PROG_TEST_RUN, &attr);
	close(fd);
	return rc;
}
