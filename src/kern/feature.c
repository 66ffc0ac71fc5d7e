// SPDX-License-Identifier: BSD-2-Clause
/* What this kernel can do: tried, never guessed from its version. */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct bpf_insn return_zero[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static const struct bpf_insn divide[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -6 },
	/* Signed division is offset 1: RFC 9669, section 4.1. */
	{ .code = BPF_ALU64 | BPF_DIV | BPF_K, .dst_reg = BPF_REG_0, .off = 1, .imm = 2 },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* -errno of a refusal as an answer: 0 for what means "no", the code for what means "ask again". */
static int refused(int code, struct err *err)
{
	if (explain_permission(code, err) && geteuid())
		return code;
	err_set(err, code, "%s", kern_errno_text(code));
	return 0;
}

struct probe;
typedef int (*probe_fn)(const struct probe *probe, struct err *err);

/* How a feature is tried: by @run, with what of the rest it takes. */
struct probe {
	probe_fn run;
	const char *path;
	const struct bpf_insn *code;
	size_t count; /* of @code */
};

static int try_file(const struct probe *probe, struct err *err)
{
	if (!access(probe->path, R_OK))
		return 1;
	err_set(err, -errno, "%s: %s", probe->path, strerror(errno));
	return errno == EACCES ? -EACCES : 0;
}

/* Owns the descriptor or -errno that a system call gave. */
static int created(int fd, struct err *err)
{
	if (fd < 0)
		return refused(fd, err);
	close(fd);
	return 1;
}

static int try_program(const struct probe *probe, struct err *err)
{
	LISTEN(NULL);
	return created(bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "GPL", probe->code,
				     probe->count, NULL),
		       err);
}

/* Loading is not enough: arm64 6.1 loads fentry programs and refuses to attach them. */
static int try_fentry(const struct probe *probe, struct err *err)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	int id, fd, link, code;

	LISTEN(NULL);
	id = libbpf_find_vmlinux_btf_id("bpf_fentry_test1", BPF_TRACE_FENTRY);
	if (id <= 0) {
		err_set(err, -ENOENT, "no BTF for a kernel function to try it on");
		return 0;
	}
	opts.attach_btf_id = id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", return_zero,
			   ARRAY_COUNT(return_zero), &opts);
	if (fd < 0)
		return refused(fd, err);
	link = bpf_raw_tracepoint_open(NULL, fd);
	code = link < 0 ? -errno : link;
	close(fd);
	return created(code, err);
}

static int try_kprobe_multi(const struct probe *probe, struct err *err)
{
	LIBBPF_OPTS(bpf_prog_load_opts, load, .expected_attach_type = BPF_TRACE_KPROBE_MULTI);
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	const char *name = "bpf_fentry_test1";
	int fd, link, code;

	LISTEN(NULL);
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", return_zero, ARRAY_COUNT(return_zero),
			   &load);
	if (fd < 0)
		return refused(fd, err);
	opts.kprobe_multi.syms = &name;
	opts.kprobe_multi.cnt = 1;
	link = bpf_link_create(fd, 0, BPF_TRACE_KPROBE_MULTI, &opts);
	code = link < 0 ? -errno : link;
	close(fd);
	return created(code, err);
}

static int try_tracefs(const struct probe *probe, struct err *err)
{
	return kern_tracefs(err) ? 1 : 0;
}

static int try_ringbuf(const struct probe *probe, struct err *err)
{
	LISTEN(NULL);
	return created(
		bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, sysconf(_SC_PAGESIZE), NULL), err);
}

static int try_task_storage(const struct probe *probe, struct err *err)
{
	int code;

	LISTEN(NULL);
	code = libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL);
	if (code == 1)
		return 1;
	return refused(code ? code : -EINVAL, err);
}

static int try_batch(const struct probe *probe, struct err *err)
{
	uint32_t key, out, count = 1;
	uint64_t value;
	int code, fd;

	LISTEN(NULL);
	fd = bpf_map_create(BPF_MAP_TYPE_HASH, NULL, sizeof(key), sizeof(value), 1, NULL);
	if (fd < 0)
		return refused(fd, err);
	code = bpf_map_lookup_batch(fd, NULL, &out, &key, &value, &count, NULL);
	close(fd);
	if (code && code != -ENOENT)
		return refused(code, err);
	return 1;
}

#define FILE_AT(name)                           \
	{                                       \
		.run = try_file, .path = (name) \
	}
#define PROGRAM(insns)                                                           \
	{                                                                        \
		.run = try_program, .code = (insns), .count = ARRAY_COUNT(insns) \
	}

static const struct {
	struct kern_feature_row row;
	struct probe probe;
} features[KERN_FEATURE_COUNT] = {
	[KERN_FEATURE_BTF] = { { "BTF", "types of this kernel: CO-RE, fentry, tp_btf",
				 "a kernel with CONFIG_DEBUG_INFO_BTF=y (all of Debian's)" },
			       FILE_AT("/sys/kernel/btf/vmlinux") },
	[KERN_FEATURE_KPROBE] = { { "kprobes", "SEC(\"kprobe/...\") and SEC(\"kretprobe/...\")",
				    "a kernel with CONFIG_KPROBES=y and CONFIG_KPROBE_EVENTS=y" },
				  FILE_AT("/sys/bus/event_source/devices/kprobe/type") },
	[KERN_FEATURE_FENTRY] = { { "fentry", "SEC(\"fentry/...\") and SEC(\"fexit/...\")",
				    "use kprobe and kretprobe programs (arm64 needs Linux 6.4)" },
				  { try_fentry } },
	[KERN_FEATURE_KPROBE_MULTI] = { { "kprobe.multi", "SEC(\"kprobe.multi/PATTERN\")",
					  "a kernel with CONFIG_FPROBE=y; or one kprobe for each "
					  "function" },
					{ try_kprobe_multi } },
	[KERN_FEATURE_UPROBE] = { { "uprobes", "SEC(\"uprobe/...\") and SEC(\"usdt/...\")",
				    "a kernel with CONFIG_UPROBE_EVENTS=y" },
				  FILE_AT("/sys/bus/event_source/devices/uprobe/type") },
	[KERN_FEATURE_TRACEFS] = { { "tracefs",
				     "tracepoints by name, return probes that do not "
				     "miss, bpf_printk",
				     "mount -t tracefs tracefs /sys/kernel/tracing" },
				   { try_tracefs } },
	[KERN_FEATURE_RAW_TRACEPOINT] = { { "raw tracepoints", "SEC(\"raw_tp/...\")",
					    "run as root (or with CAP_BPF and CAP_PERFMON)" },
					  PROGRAM(return_zero) },
	[KERN_FEATURE_RINGBUF] = { { "ring buffer", "RING() maps and user/event",
				     "Linux 5.8; or a perf-event array" },
				   { try_ringbuf } },
	[KERN_FEATURE_TASK_STORAGE] = { { "task storage", "counters of one call or one task",
					  "Linux 5.11 with CONFIG_BPF_LSM or CONFIG_BPF_SYSCALL" },
					{ try_task_storage } },
	[KERN_FEATURE_CPU_V4] = { { "signed division", "signed / and % in kernel programs",
				    "Linux 6.6; or divide unsigned values" },
				  PROGRAM(divide) },
	[KERN_FEATURE_BATCH] = { { "map batches", "reading large maps fast", "Linux 5.6" },
				 { try_batch } },
};

const struct kern_feature_row *kern_feature_row(enum kern_feature feature)
{
	return (unsigned int)feature < KERN_FEATURE_COUNT ? &features[feature].row : NULL;
}

int kern_feature(enum kern_feature feature, struct err *err)
{
	if ((unsigned int)feature >= KERN_FEATURE_COUNT)
		return err_set(err, -EINVAL, "no such feature");
	return features[feature].probe.run(&features[feature].probe, err);
}
