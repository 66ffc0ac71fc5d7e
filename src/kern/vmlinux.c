// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's types as a C header: vmlinux.h. */
#include "kern/internal.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

struct header {
	struct buf text;
	int code; /* of the first failure */
};

static void append(void *context, const char *format, va_list args)
{
	struct header *header = context;

	if (!header->code)
		header->code = buf_vprintf(&header->text, format, args);
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t wrote = write(fd, data, size);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		data += wrote;
		size -= wrote;
	}
	return 0;
}

static int dump_types(struct btf *btf, struct header *header)
{
	struct btf_dump *dump = btf_dump__new(btf, append, header, NULL);
	uint32_t i, count = btf__type_cnt(btf);
	int code = libbpf_get_error(dump);

	if (code)
		return code;
	for (i = 1; i < count && !code; i++)
		code = btf_dump__dump_type(dump, i);
	btf_dump__free(dump);
	return code ? code : header->code;
}

int kern_write_vmlinux_header(const char *btf_path, int fd, struct err *err)
{
	static const char head[] = "#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n"
				   "#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n"
				   "#pragma clang attribute push "
				   "(__attribute__((preserve_access_index)), apply_to = record)\n"
				   "#endif\n\n";
	static const char tail[] = "\n#ifndef BPF_NO_PRESERVE_ACCESS_INDEX\n"
				   "#pragma clang attribute pop\n#endif\n#endif\n";
	const char *path = btf_path ? btf_path : "/sys/kernel/btf/vmlinux";
	struct header header = { 0 };
	struct btf *btf;
	int code;

	LISTEN(NULL);
	btf = btf__parse(path, NULL);
	code = libbpf_get_error(btf);
	if (code)
		return err_set(err, code, "%s: no kernel types: %s", path, kern_errno_text(code));
	code = buf_puts(&header.text, head);
	if (!code)
		code = dump_types(btf, &header);
	if (!code)
		code = buf_puts(&header.text, tail);
	if (!code)
		code = write_all(fd, header.text.data, header.text.size);
	btf__free(btf);
	buf_deinit(&header.text);
	if (code)
		return err_set(err, code, "vmlinux.h: %s", kern_errno_text(code));
	return 0;
}
