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
#include "duet/shared.h"
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
/* Where verifier messages find source lines: the object that @image was split from. Borrowed until
 * close. Without it only kernels from 6.8 on name lines. */
struct obj;
void kern_set_object(struct kern *kern, const struct obj *object);

/* ---- programs ---------------------------------------------------------- */
size_t kern_program_count(const struct kern *kern);
struct kern_program *kern_program_at(struct kern *kern, size_t index); /* file order */
struct kern_program *kern_program_find(struct kern *kern, const char *name);
const char *kern_program_name(const struct kern_program *program);
/* As in effect: "kprobe/vfs_read", after kern_program_set_target() with the new target. */
const char *kern_program_section(const struct kern_program *program);
/* Behind the kind: "vfs_read"; NULL: bare. Unresolved $NAMEs are still in it. */
const char *kern_program_target(const struct kern_program *program);
/* SEC("perf_event/EVENT@FREQ"): "EVENT@FREQ", for which the session opens the events and calls
 * kern_program_set_events(); NULL for all other programs. */
const char *kern_program_event_text(const struct kern_program *program);
/* Can kern_program_run() run it? (raw_tp and syscall programs.) */
bool kern_program_runnable(const struct kern_program *program);

/* What will become of it at kern_load/kern_attach. */
enum kern_program_state {
	KERN_PROGRAM_PLANNED, /* will be loaded and attached */
	KERN_PROGRAM_BARE, /* no target (bare SEC("raw_tp"), SEC("kprobe")): loaded, not attached */
	KERN_PROGRAM_DISABLED, /* switched off before load: not loaded */
	KERN_PROGRAM_SKIPPED,  /* OPTIONAL() and its target is absent */
	KERN_PROGRAM_ATTACHED,
	KERN_PROGRAM_DETACHED, /* loaded, switched off by probe_disable() */
};
enum kern_program_state kern_program_state(const struct kern_program *program);

/* Another target, or another kind that receives the same arguments, after $NAME substitution (by
 * the session): "vfs_read", "kprobe:vfs_read", "kretprobe/vfs_read", "/bin/x:func",
 * "uprobe:/bin/x:func", "sched/sched_switch". Before load (-EBUSY later). NULL returns to the
 * section's own. -EINVAL: a kind with other arguments. */
int kern_program_set_target(struct kern_program *program, const char *kind_and_target,
			    struct err *err);
int kern_program_set_enabled(struct kern_program *program, bool enabled, struct err *err);
/* OPTIONAL(): absence of the target skips the program instead of failing. Before load. */
void kern_program_set_optional(struct kern_program *program);

/* Before load: OPTIONAL programs whose target is absent become SKIPPED (told by a note). A missing
 * target of any other is one error: which, why, nearest names. What is costly to look up (kernel
 * symbols: 70 ms) is left to kern_attach(), which says the same, unless the program is optional. */
int kern_check_targets(struct kern *kern, struct err *err);
/* The same for all programs, whatever it costs: --dry-run. */
int kern_check_every_target(struct kern *kern, struct err *err);

/* Scope: uprobes and USDT of a -p run attach to that process only. */
struct kern_attach_options {
	int pid; /* uprobe, USDT: this process only; <= 0: all */
};
int kern_attach(struct kern *kern, const struct kern_attach_options *options, struct err *err);
/* Last attached, first detached; return probes leave tracefs. May be attached again. */
void kern_detach(struct kern *kern);
/* SEC("perf_event...") programs run at each overflow of these @count events, from kern_attach() (or
 * kern_program_attach()) on; -1 entries are passed over. Descriptors stay the caller's (they are
 * duplicated); detaching disables the events. Without events such a program is not attached. */
int kern_program_set_events(struct kern_program *program, const int *fds, size_t count,
			    struct err *err);
/* One more, of a CPU that came while the program is attached: it runs there at once. */
int kern_program_add_event(struct kern_program *program, int fd, struct err *err);
/* SEC("iter/...") that is attached: a new descriptor whose reads run the program and give its
 * output; the caller's. -errno. */
int kern_program_iter_fd(const struct kern_program *program);
/* One program, while running: probe_enable()/probe_disable(). Detached before kern_attach(), it is not
 * attached by that. 0 when it is so already; -ENOENT: not loaded, or never attached. */
int kern_program_attach(struct kern_program *program, struct err *err);
int kern_program_detach(struct kern_program *program);
/* A further instance at another place ("kprobe:vfs_read", "/bin/x:func" ...): probe_attach(). */
int kern_program_attach_at(struct kern_program *program, const char *where, struct err *err);
/* Once on @cpu, -1: on each online CPU, by BPF_PROG_TEST_RUN: raw_tp programs (arguments all zero)
 * and, on the calling CPU, syscall programs; -EOPNOTSUPP for others, -ENOENT if not loaded, -ENXIO
 * for a CPU that is offline. */
int kern_program_run(struct kern_program *program, int cpu);
int kern_program_fd(const struct kern_program *program);
/* After load: does the program use @map? */
bool kern_program_uses(const struct kern_program *program, const struct kern_map *map);
/* Statistics of the kernel while /proc/sys/kernel/bpf_stats_enabled or BPF_ENABLE_STATS is on;
 * recursion misses as the kernel counts them. */
struct kern_program_info {
	uint64_t run_ns, run_count, recursion_misses;
};
int kern_program_get_info(const struct kern_program *program, struct kern_program_info *ret);
/* run_ns and run_count count from now on, until kern_close(). */
int kern_enable_statistics(struct kern *kern, struct err *err);
/* Each program of the script, and duet's own that run beside it (their names begin with duet_). */
typedef void (*kern_cost_fn)(void *context, const char *name, const char *section,
			     const struct kern_program_info *info);
void kern_visit_costs(struct kern *kern, kern_cost_fn fn, void *context);

/* ---- maps ---------------------------------------------------------------- */
size_t kern_map_count(const struct kern *kern);
struct kern_map *kern_map_at(struct kern *kern, size_t index);
struct kern_map *kern_map_find(struct kern *kern,
			       const char *name); /* also ".bss", ".rodata" ... */
const char *kern_map_name(const struct kern_map *map);

struct kern_map_info {
	uint32_t type; /* BPF_MAP_TYPE_* */
	uint32_t key_size, value_size, max_entries, flags;
	uint32_t key_type, value_type; /* BTF ids in the object's types; 0: unknown */
	bool is_data;                  /* .bss, .data, .rodata ... (value_type is its DATASEC) */
	bool mapped;                   /* live memory in this process */
	bool per_cpu;
};
void kern_map_get_info(const struct kern_map *map, struct kern_map_info *ret);

/* Before load. */
int kern_map_set_max_entries(struct kern_map *map, uint32_t entries, struct err *err);
/* Initial contents of a data map (exactly its size). */
int kern_map_set_initial(struct kern_map *map, const void *data, size_t size, struct err *err);
/* Maps whose name starts with "__duet_" that no kernel program uses are not created: told here. */
int kern_map_set_unused(struct kern_map *map);
/* Makes an array live memory, if the kernel allows that for its values (no lock, timer, kptr ...);
 * -EOPNOTSUPP: it stays as it is. Before load. */
int kern_map_make_mmapable(struct kern_map *map);
/* Bytes that kern_map_place() takes, whole pages; 0: cannot be placed. Element i of an array is at
 * i * round_up(value_size, 8). */
size_t kern_map_place_size(const struct kern_map *map);
/* After load: the kernel's memory of a data map or mmapable array, placed at @address
 * (page-aligned, MAP_FIXED; NULL: anywhere), read-only for frozen maps. Returns in *ret. Memory at
 * @address is the caller's to unmap, other memory goes with kern_close(). */
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
int kern_map_clear(const struct kern_map *map);          /* arrays: to zero */
int64_t kern_map_entries(const struct kern_map *map);    /* in batches where the kernel can */
size_t kern_map_value_bytes(const struct kern_map *map); /* of one lookup: all CPUs' copies */

/* All elements at one time, in batches where the kernel can. A table that changes meanwhile shows no
 * key twice. -EOPNOTSUPP for kinds without rows (rings, maps of maps, program arrays, queues).
 * Owned by the caller: kern_rows_deinit(). */
struct kern_rows {
	size_t count;
	uint32_t key_size, value_size; /* bytes of one key and of one value (all CPUs) as stored */
	uint32_t cpus;                 /* copies in a value: 1, or possible CPUs for per-CPU maps */
	uint8_t *keys, *values;
};
int kern_map_read_all(const struct kern_map *map, struct kern_rows *ret);
void kern_rows_deinit(struct kern_rows *rows);

/* ---- rings: records of ring buffers and perf-event arrays ------------------- */
/* <0 ends the consume, which returns it; that record counts as handled. In a perf-event array @size is rounded up
 * by the kernel to a multiple of 8, less 4. */
typedef int (*kern_record_fn)(void *context, const void *record, size_t size);
typedef void (*kern_lost_fn)(void *context, int cpu, uint64_t count);
struct kern_ring;
int kern_ring_open(struct kern_map *map, kern_record_fn record, kern_lost_fn lost, void *context,
		   struct kern_ring **ret, struct err *err);
int kern_ring_fd(const struct kern_ring *ring); /* readable (level) when there is something */
/* Hands out what is there now, at most @limit records (0: all). Count, or what record returned. */
int kern_ring_consume(struct kern_ring *ring, size_t limit);
/*
 * Likewise, for ring buffers alone, but records go straight to @direct->call(), which may be left
 * by siglongjmp(): its record then counts as handed out. @after is called when @call gave other than
 * 0 or *@attention is set; it ends the consume as the ring's own function does.
 */
struct kern_direct {
	uint64_t (*call)(uint64_t record, uint64_t size);
	const uint32_t *attention;
	int (*after)(void *context, uint64_t result);
	void *context;
};
bool kern_ring_is_direct(const struct kern_ring *ring); /* a ring buffer */
int kern_ring_consume_direct(struct kern_ring *ring, size_t limit,
			     const struct kern_direct *direct);
/* A perf-event array's buffer of a CPU ends when the CPU goes offline: consume what is there, then
 * tell. It gets a new one when it comes (back); 0 also for CPUs that it has no room for. Both do
 * nothing for ring buffers. */
void kern_ring_cpu_went(struct kern_ring *ring, int cpu);
int kern_ring_cpu_came(struct kern_ring *ring, int cpu);
void kern_ring_close(struct kern_ring *ring);
DEFINE_CLEANUP(struct kern_ring *, kern_ring_close);

struct duet_task_totals; /* duet/shared.h */

/* ---- task totals: duet's own sched_switch program ----------------------------------- */
/* After load: has the script asked for totals (CALLS(): map __duet_task is there)? */
bool kern_totals_needed(struct kern *kern);
/*
 * After load, before kern_attach(). @fds: [@slots][@ncpus], -1: not open (contributes nothing);
 * @cpus: the CPU ids of the columns. From now on every thread that has a __duet_task is charged
 * what the counters of its CPU gained while it ran. Bit i of __duet_cpu's `valid` says that slot i
 * has a base on that CPU. Counters may be enabled before or after.
 */
int kern_totals_start(struct kern *kern, const int *fds, size_t slots, const int *cpus,
		      size_t ncpus, struct err *err);
/* @cpu came back, or went (all -1), and its counters are others, by slot. What it counted while it had
 * none belongs to nobody. Does nothing where totals were not started. */
int kern_totals_set_cpu(struct kern *kern, int cpu, const int *fds, size_t slots, struct err *err);
/* Charges the running threads up to now, on every CPU: before totals are read at the end. */
int kern_totals_flush(struct kern *kern);
void kern_totals_stop(struct kern *kern); /* also done by kern_detach() */
/*
 * The total of this process's main thread, to compare it with what is known from elsewhere.
 * read: as of its last context switch.
 */
int kern_totals_follow_self(struct kern *kern, struct err *err);
int kern_totals_read_self(struct kern *kern, struct duet_task_totals *ret);
void kern_totals_forget_self(struct kern *kern); /* also done by kern_totals_stop() */
/* What duet's own program costs at each context switch, by slot (DUET_PMU_MAX of them), while this
 * process is followed; @cpu: where this thread runs. 0 for a counter that is not open there. */
int kern_totals_own_cost(struct kern *kern, int cpu, int64_t *ret);
/* What a context switch adds that is not the thread's, by slot (DUET_PMU_MAX of them): subtracted
 * from now on. */
int kern_totals_set_cost(struct kern *kern, const int64_t *cost);

/* Where a task's cgroup of version 1 lies in this kernel, for the hierarchy of @controller ("cpu",
 * "perf_event"). -ENOENT: no such controller, or no BTF. */
int kern_cgroup_layout(const char *controller, struct duet_cgroup_layout *ret, struct err *err);

/* ---- the target: keeps in_target() true -------------------------------------------------- */
/* @what: "fork", "exec", "exit". < 0 ends the consume, which returns it. */
typedef int (*kern_child_fn)(void *context, const char *what, const struct duet_child *child);
struct kern_target_options {
	kern_child_fn child; /* may be NULL unless want_children */
	void *context;
	bool want_children; /* processes of the tree are told (user/child/...) */
};
/* After load, before threads are added. Loads nothing when nobody asks: no __duet_tasks in the
 * script and no want_children; the functions below then do nothing. */
int kern_target_start(struct kern *kern, const struct kern_target_options *options,
		      struct err *err);
/* All its threads, so that none slips through. -ESRCH: none. */
int kern_target_add_process(struct kern *kern, int pid, struct err *err);
int kern_target_add_thread(struct kern *kern, int tid, struct err *err);
int kern_target_fd(struct kern *kern); /* readable when there is something; -1: no events */
int kern_target_consume(struct kern *kern);
/* kern_detach() only stops following: events that are there can still be consumed. */
void kern_target_stop(struct kern *kern);

/* ---- calibration: what a pair of probes costs ------------------------------------------------ */
/*
 * On a second, throw-away kern of the same image (so that the script's maps stay clean):
 *	kern_open, set the same constants, kern_calibrate_prepare, kern_load, kern_totals_start,
 *	kern_calibrate for each pair, read its maps, kern_close.
 * prepare points the programs that are on in @real, and whose kind can be calibrated, at places where
 * nothing happens (functions of the kernel and of this process that do nothing, USDT probes of ours, a
 * tracepoint, a system call), and disables the others. A fentry or tp_btf program that reads arguments
 * may not load there: load then fails, and nothing is known about its cost. tp_btf programs can be left
 * out, because such a one may have nothing to do with calls.
 */
int kern_calibrate_prepare(struct kern *kern, struct kern *real, bool with_tp_btf, struct err *err);
/* Is it of a kind that can be calibrated? */
bool kern_calibrates(const struct kern_program *program);
bool kern_program_is_return(const struct kern_program *program); /* kretprobe, fexit, uretprobe */
/* How two programs of the real instance, which begin and end a call, are calibrated as a pair. */
enum kern_pair {
	KERN_PAIR_NONE,     /* not at all: of kinds that differ too much */
	KERN_PAIR_CALLS,    /* the two places are passed one right after the other */
	KERN_PAIR_SYSCALLS, /* sys_enter_X and sys_exit_X: so, but a system call lies in between */
	KERN_PAIR_ROUNDS,   /* both at one tracepoint: from one passing of it to the next */
};
enum kern_pair kern_pair_of(const struct kern_program *entry, const struct kern_program *leave);
/* raw_syscalls:sys_enter and sys_exit, or these as raw tracepoints. */
bool kern_pair_is_of_all_syscalls(const struct kern_program *entry,
				  const struct kern_program *leave);
/* A tracepoint whose record has texts or arrays: the kernel copies them before a program runs. */
bool kern_program_has_large_record(const struct kern_program *program);
/* After prepare: @program ends calls. Return probes do anyhow, all others are taken to begin them. */
void kern_calibrate_leaves(struct kern_program *program);
struct kern_calibrate_run {
	unsigned int calls;
	enum kern_pair way; /* KERN_PAIR_NONE: one program, whatever it does; or entry and return */
	bool raw_syscalls;  /* at the tracepoints that all system calls pass */
	bool bare;          /* nothing is attached: what the calls cost without probes */
	bool large;         /* tracepoint programs: where the kernel writes a large record */
	unsigned int passes; /* of the places in each call; 0: one */
	bool nested;         /* inside another call that is probed alike */
	bool own_process; /* uprobes of one process only, which the kernel asks about at each hit */
	/* Around each call, on this thread; may be NULL. */
	void (*before)(void *context);
	void (*after)(void *context);
	void *context;
};
/* Attaches @programs (those first that begin calls), passes their places on this thread, detaches. */
int kern_calibrate(struct kern_program *const *programs, size_t count,
		   const struct kern_calibrate_run *run, struct err *err);

/* ---- bpf_printk() ------------------------------------------------------------------------------ */
/* @line ends without a newline (unless the script printed one), with a zero behind @size. */
typedef void (*kern_line_fn)(void *context, const char *line, size_t size);
struct kern_printk;
/* Lines of all BPF programs of this machine from now on: the kernel does not say whose they are. */
int kern_printk_open(kern_line_fn line, void *context, struct kern_printk **ret, struct err *err);
int kern_printk_fd(const struct kern_printk *printk); /* readable when there is something */
int kern_printk_consume(struct kern_printk *printk);  /* count or -errno */
void kern_printk_close(struct kern_printk *printk);   /* accepts NULL */
DEFINE_CLEANUP(struct kern_printk *, kern_printk_close);

/* ---- this kernel ----------------------------------------------------------- */
/* The feature table: asked, never a version number. Each row is probed once, on demand. */
enum kern_feature {
	KERN_FEATURE_BTF, /* /sys/kernel/btf/vmlinux */
	KERN_FEATURE_KPROBE,
	KERN_FEATURE_FENTRY,
	KERN_FEATURE_KPROBE_MULTI,
	KERN_FEATURE_UPROBE,
	KERN_FEATURE_TRACEFS,
	KERN_FEATURE_RAW_TRACEPOINT,
	KERN_FEATURE_RINGBUF,
	KERN_FEATURE_TASK_STORAGE,
	KERN_FEATURE_CPU_V4, /* sdiv, movsx ... in kernel programs */
	KERN_FEATURE_BATCH,  /* map batch operations */
	KERN_FEATURE_COUNT,
};
struct kern_feature_row {
	const char *name;    /* "kprobes" */
	const char *purpose; /* "SEC(\"kprobe/...\") programs" */
	const char *remedy;  /* how to get it */
};
const struct kern_feature_row *kern_feature_row(enum kern_feature feature);
/* 1 yes, 0 no (reason in err->text), -errno could not be told. Takes up to 10 ms: not kept. */
int kern_feature(enum kern_feature feature, struct err *err);

/* tracefs: found or mounted (at /sys/kernel/tracing) for us. A literal; NULL with the reason. */
const char *kern_tracefs(struct err *err);
/* Left-over duet_PID_* entries of dead processes are removed, those of living ones never; the
 * number removed. */
int kern_tracefs_sweep(void);

/* vmlinux.h of this machine (NULL) or of a BTF or ELF file as C text. */
int kern_write_vmlinux_header(const char *btf_path, int fd, struct err *err);

int kern_possible_cpus(void);
