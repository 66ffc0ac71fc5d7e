// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Run by BPF_PROG_TEST_RUN: the instructions of a kernel function. 0 or -errno. Faster than reading
 * /proc/kallsyms, and possible where there is no /proc/kcore. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "code_request.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Helpers take no memory of the context: hence the copies. */
SEC("syscall") int duet_code(struct code_request *request)
{
	unsigned long long address = 0;
	unsigned long long function[16], code[CODE_BYTES / 8];
	long error;

	__builtin_memcpy(function, request->function, sizeof(function));
	error = bpf_kallsyms_lookup_name((const char *)function, sizeof(function), 0, &address);
	if (error)
		return error;
	error = bpf_probe_read_kernel(code, sizeof(code), (void *)(address + request->offset));
	__builtin_memcpy(request->code, code, sizeof(code));
	return error;
}
