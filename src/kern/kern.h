/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel half of a run: the only folder that includes libbpf. Opens the kernel-only image,
 * loads and attaches its programs, gives access to its maps. One thread.
 *
 * Life: kern_open -> (programs and maps may be changed) -> kern_load -> kern_attach -> kern_detach
 * -> kern_close. Every function that fails leaves nothing attached that it attached itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "obj/types.h"

struct kern;
struct kern_program; /* owned by its kern */
struct kern_map;     /* owned by its kern */

/* @image is borrowed until kern_load() is over. @types: the object's BTF, borrowed until close. */
int kern_open(const void *image, size_t size, const char *name, const struct types *types,
	      struct kern **ret, struct err *err);
void kern_close(struct kern *kern); /* detaches first; accepts NULL */
DEFINE_CLEANUP(struct kern *, kern_close);

/*
 * Source position for verifier messages: "file:line: text" of instruction @insn of program @name
 * is found by libbpf's log itself (BTF.ext); the message becomes `FILE:LINE: program NAME: why:
 * hint`; with log level LOG_VERBOSE the whole log is printed.
 */
int kern_load(struct kern *kern, struct err *err);

/* ---- programs ---------------------------------------------------------- */
size_t kern_program_count(const struct kern *kern);
struct kern_program *kern_program_at(struct kern *kern, size_t index); /* file order */
struct kern_program *kern_program_find(struct kern *kern, const char *name);
const char *kern_program_name(const struct kern_program *program);
const char *kern_program_section(const struct kern_program *program);

/* What will become of it at kern_load/kern_attach. */
enum kern_program_state {
	KERN_PROGRAM_PLANNED,  /* will be loaded and attached */
	KERN_PROGRAM_BARE,     /* no target (bare SEC("raw_tp"), SEC("kprobe")): loaded, not attached */
	KERN_PROGRAM_DISABLED, /* switched off before load: not loaded */
	KERN_PROGRAM_SKIPPED,  /* OPTIONAL() and its target is absent */
	KERN_PROGRAM_ATTACHED,
	KERN_PROGRAM_DETACHED, /* loaded, switched off by probe_disable() */
};
enum kern_program_state kern_program_state(const struct kern_program *program);

/* Target text behind the section's kind after $NAME substitution (by the session), e.g.
 * "vfs_read", "/bin/x:func", "sys:event". Before load. NULL returns to the section's own. */
int kern_program_set_target(struct kern_program *program, const char *kind_and_target,
			    struct err *err);
int kern_program_set_enabled(struct kern_program *program, bool enabled, struct err *err);
/* OPTIONAL(): absence of the target skips the program instead of failing. Before load. */
void kern_program_set_optional(struct kern_program *program);

/* Checks every target before load; marks OPTIONAL ones as skipped (*skipped names them, for a
 * note). A missing target is one error: which, why, nearest names. */
int kern_check_targets(struct kern *kern, struct err *err);

/* What a probe of @pid/@cpu scope attaches to: uprobes and USDT of a -p run attach to that
 * process only; 0 = everybody. */
struct kern_attach_options {
	int pid; /* uprobe, USDT; -1: all */
};
int kern_attach(struct kern *kern, const struct kern_attach_options *options, struct err *err);
void kern_detach(struct kern *kern);
/* One program, while running: probe_enable()/probe_disable(). */
int kern_program_attach(struct kern_program *program, struct err *err);
int kern_program_detach(struct kern_program *program);
/* A further instance at another place ("kprobe:vfs_read", "/bin/x:func" ...): probe_attach(). */
int kern_program_attach_at(struct kern_program *program, const char *where, struct err *err);
/* BPF_PROG_TEST_RUN once on @cpu (raw_tp kinds only: -EOPNOTSUPP otherwise); -1: on each online CPU. */
int kern_program_run(struct kern_program *program, int cpu);
int kern_program_fd(const struct kern_program *program);
/* Statistics of the kernel while /proc/sys/kernel/bpf_stats_enabled or BPF_ENABLE_STATS is on;
 * recursion misses as the kernel counts them. */
struct kern_program_info {
	uint64_t run_ns, run_count, recursion_misses;
};
int kern_program_get_info(const struct kern_program *program, struct kern_program_info *ret);

/* ---- maps ---------------------------------------------------------------- */
size_t kern_map_count(const struct kern *kern);
struct kern_map *kern_map_at(struct kern *kern, size_t index);
struct kern_map *kern_map_find(struct kern *kern, const char *name); /* also ".bss", ".rodata" ... */
const char *kern_map_name(const struct kern_map *map);

struct kern_map_info {
	uint32_t type; /* BPF_MAP_TYPE_* */
	uint32_t key_size, value_size, max_entries, flags;
	uint32_t key_type, value_type; /* BTF ids in the object's types; 0: unknown */
	bool is_data;	  /* .bss, .data, .rodata ... */
	bool mapped;	  /* live memory in this process */
	bool per_cpu;
};
void kern_map_get_info(const struct kern_map *map, struct kern_map_info *ret);

/* Before load. */
int kern_map_set_max_entries(struct kern_map *map, uint32_t entries, struct err *err);
/* Initial contents of a data map (exactly its size). */
int kern_map_set_initial(struct kern_map *map, const void *data, size_t size, struct err *err);
/* Maps whose name starts with "__duet_" that no kernel program uses are not created: told here. */
int kern_map_set_unused(struct kern_map *map);
/* After load: the kernel's memory of a data map or mmapable array, placed at @address
 * (page-aligned, MAP_FIXED; NULL: anywhere), read-only for frozen maps. Returns in *ret. */
int kern_map_place(struct kern_map *map, void *address, void **ret, struct err *err);
int kern_map_fd(const struct kern_map *map); /* -1 before load */
bool kern_map_created(const struct kern_map *map);

/* Element access for the user half; -errno as bpf(2). Value buffers hold value_size bytes, for
 * per-CPU maps round_up(value_size, 8) * possible CPUs. */
int kern_map_lookup(const struct kern_map *map, const void *key, void *value);
int kern_map_update(const struct kern_map *map, const void *key, const void *value, uint64_t flags);
int kern_map_delete(const struct kern_map *map, const void *key);
int kern_map_next_key(const struct kern_map *map, const void *key, void *next);
int kern_map_push(const struct kern_map *map, const void *value, uint64_t flags);
int kern_map_pop(const struct kern_map *map, void *value);
int kern_map_peek(const struct kern_map *map, void *value);
int kern_map_clear(const struct kern_map *map);
int64_t kern_map_entries(const struct kern_map *map); /* in batches where the kernel can */

/* All elements at one time, in batches where the kernel can. Owned by the caller: free both. */
struct kern_rows {
	size_t count;
	uint32_t key_size, value_size; /* bytes of one key and of one value (all CPUs) as stored */
	uint32_t cpus;		       /* copies in a value: 1, or possible CPUs for per-CPU maps */
	uint8_t *keys, *values;
};
int kern_map_read_all(const struct kern_map *map, struct kern_rows *ret);
void kern_rows_deinit(struct kern_rows *rows);

/* ---- rings: records of ring buffers and perf-event arrays ------------------- */
typedef int (*kern_record_fn)(void *context, const void *record, size_t size); /* <0 ends the poll */
typedef void (*kern_lost_fn)(void *context, int cpu, uint64_t count);
struct kern_ring;
int kern_ring_open(struct kern_map *map, kern_record_fn record, kern_lost_fn lost, void *context,
		   struct kern_ring **ret, struct err *err);
int kern_ring_fd(const struct kern_ring *ring);	 /* readable when there is something (epoll fd) */
/* Hands out what is there now, at most @limit records (0: all). Count, or what record returned. */
int kern_ring_consume(struct kern_ring *ring, size_t limit);
void kern_ring_close(struct kern_ring *ring);

/* ---- this kernel ----------------------------------------------------------- */
/* The feature table: asked, never a version number. Each row is probed once, on demand. */
enum kern_feature {
	KERN_FEATURE_BTF,	   /* /sys/kernel/btf/vmlinux */
	KERN_FEATURE_KPROBE,
	KERN_FEATURE_FENTRY,
	KERN_FEATURE_KPROBE_MULTI,
	KERN_FEATURE_UPROBE,
	KERN_FEATURE_TRACEFS,
	KERN_FEATURE_RAW_TRACEPOINT,
	KERN_FEATURE_RINGBUF,
	KERN_FEATURE_TASK_STORAGE,
	KERN_FEATURE_CPU_V4,	   /* sdiv, movsx ... in kernel programs */
	KERN_FEATURE_BATCH,	   /* map batch operations */
	KERN_FEATURE_COUNT,
};
struct kern_feature_row {
	const char *name;	 /* "kprobes" */
	const char *purpose;	 /* "SEC(\"kprobe/...\") programs" */
	const char *remedy;	 /* how to get it */
};
const struct kern_feature_row *kern_feature_row(enum kern_feature feature);
/* 1 yes, 0 no (reason in err->text), -errno could not be told. */
int kern_feature(enum kern_feature feature, struct err *err);

/* tracefs: found or mounted (at /sys/kernel/tracing) for us. */
const char *kern_tracefs(struct err *err); /* NULL with the reason */
/* Left-over duet_PID_* entries of dead processes are removed; count or -errno. */
int kern_tracefs_sweep(void);

/* vmlinux.h of this machine (or of a BTF file) as C text. */
int kern_write_vmlinux_header(const char *btf_path, int fd, struct err *err);

int kern_possible_cpus(void);
