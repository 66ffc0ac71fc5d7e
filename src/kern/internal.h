/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of this folder share. Nothing outside includes it.
 */
#pragma once

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "kern/kern.h"

/* ---- libbpf's messages ------------------------------------------------------ */
/* What libbpf said while it worked for us, so that an error can quote the reason. */
struct messages {
	char reason[400]; /* the last warnings that say something, one line */
	struct buf log;   /* the verifier's log of the program that failed */
	char program[64]; /* its name */
};
void messages_deinit(struct messages *messages);
void messages_clear(struct messages *messages);
/*
 * Makes @messages (or nobody: NULL) the listener of this thread and returns the former one.
 * Every use of libbpf that may warn is wrapped:
 *	LISTEN(&kern->messages);
 */
struct messages *messages_listen(struct messages *messages);
static inline void messages_restore(struct messages **former)
{
	messages_listen(*former);
}
#define LISTEN(to)                                                                        \
	__attribute__((cleanup(messages_restore), unused)) struct messages *__listening = \
		messages_listen(to)

/* strerror() that also knows the kernel's own ENOTSUPP (524). Static text. */
const char *kern_errno_text(int code);

/* ---- section kinds ---------------------------------------------------------- */
enum kind_id {
	KIND_OTHER, /* whatever libbpf attaches by itself, or nobody does */
	KIND_KPROBE,
	KIND_KRETPROBE,
	KIND_KPROBE_MULTI,
	KIND_KRETPROBE_MULTI,
	KIND_KSYSCALL,
	KIND_KRETSYSCALL,
	KIND_UPROBE,
	KIND_URETPROBE,
	KIND_USDT,
	KIND_TRACEPOINT,
	KIND_RAW_TP,
	KIND_TP_BTF,
	KIND_FENTRY,
	KIND_FEXIT,
	KIND_FMOD_RET,
	KIND_LSM,
	KIND_ITER,
	KIND_PERF_EVENT,
	KIND_SYSCALL,
};

struct kern_link;
struct section_kind {
	const char *prefix; /* "kprobe" of "kprobe/vfs_read" */
	enum kind_id id;
	enum bpf_prog_type type;
	bool fixed; /* the target is chosen when the program is loaded (BTF) */
	/* NULL: not attached by us. Fills *ret; on failure says why without naming the program. */
	int (*attach)(struct kern_program *program, const char *target, struct kern_link *ret,
		      struct err *err);
	/* NULL: nothing to check before load. 0, -ENOENT (absent), or another failure. */
	int (*check)(struct kern_program *program, const char *target, struct err *err);
};
/* The row of the section text, and what stands behind the '/' or ':' (NULL: bare). */
const struct section_kind *section_parse(const char *section, const char **target);
/* Kinds that are spelled like that of @section, for a message; "" when none is. */
void section_nearest(const char *section, char *near, size_t size);

/* ---- objects ----------------------------------------------------------------- */
struct kern_link {
	struct bpf_link *link;
	unsigned int event; /* number of our tracefs entry, 0: none */
};

struct kern_program {
	struct kern *kern;
	struct bpf_program *program;
	char *section; /* as in effect: target and kind may have been changed */
	const struct section_kind *kind;
	const char *target; /* inside section, NULL: bare */
	enum kern_program_state state;
	bool optional;
	bool retargeted; /* by kern_program_set_target() */
	int *events;     /* of a perf_event program: our duplicates */
	size_t nevents;
	bool target_set;               /* libbpf knows the attach target (BTF kinds) */
	struct calibrated *calibrated; /* of a throw-away instance, NULL: none (calibrate.c) */
	struct kern_link *links;
	size_t nlinks, links_capacity;
};

struct kern_map {
	struct kern *kern;
	struct bpf_map *map;
	const char *name;
	int fd; /* -1 before load, or not created */
	struct kern_map_info info;
	void *place; /* NULL: not mapped */
	size_t place_size;
	bool place_ours;
	bool unused;
	bool readonly; /* frozen by libbpf at load */
};

struct kern {
	struct bpf_object *object;
	const struct types *types;
	const struct obj *source; /* for source lines, may be NULL */
	char name[64];
	struct kern_program *programs;
	size_t nprograms;
	struct kern_map *maps;
	size_t nmaps;
	struct kern_attach_options options;
	struct messages messages;
	struct totals *totals;         /* NULL: none */
	struct target_tree *tree;      /* NULL: nobody asks */
	int statistics;                /* fd that keeps them on, 0: off */
	struct tracefs_probes *probes; /* our entries in kprobe_events, NULL: none yet */
	struct own *trigger; /* of a throw-away instance, NULL: not yet needed (calibrate.c) */
	bool loaded;
};

/* After load: fds and sizes. */
void kern_map_refresh(struct kern_map *map);
void kern_map_deinit(struct kern_map *map);

void kern_trigger_close(struct kern *kern); /* accepts none */

int kern_program_check(struct kern_program *program, struct err *err);
int kern_run_on_cpus(int fd, int cpu);

void kern_target_detach(struct kern *kern);

/* verifier.c: makes one line of a failed load. */
int verifier_explain(const struct kern *kern, int code, struct err *err);

/* ---- attach.c ------------------------------------------------------------------ */
int attach_kprobe(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_kretprobe(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_kprobe_multi(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_ksyscall(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_uprobe(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_usdt(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_tracepoint(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_raw_tp(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_trace(struct kern_program *, const char *, struct kern_link *, struct err *);
int attach_auto(struct kern_program *, const char *, struct kern_link *, struct err *);
void program_release_links(struct kern_program *program);
void program_deinit(struct kern_program *program);
int attach_events(struct kern_program *, const char *, struct kern_link *, struct err *);

/* ---- target.c: does it exist, and what is near ------------------------------------ */
int check_kprobe(struct kern_program *, const char *, struct err *);
int check_uprobe(struct kern_program *, const char *, struct err *);
int check_usdt(struct kern_program *, const char *, struct err *);
int check_tracepoint(struct kern_program *, const char *, struct err *);
int check_raw_tp(struct kern_program *, const char *, struct err *);
int check_btf(struct kern_program *, const char *, struct err *);

/* "PATH:SYMBOL" at the last colon; path resolved by PATH or the library folders. */
struct user_place {
	char path[4096];
	char symbol[256];
	uint64_t offset; /* added to the symbol; absolute file offset when symbol is "" */
};
int user_place_parse(const char *text, struct user_place *ret, struct err *err);
struct usdt_place {
	char path[4096];
	char provider[128];
	char name[128];
};
int usdt_place_parse(const char *text, struct usdt_place *ret, struct err *err);
int binary_resolve(const char *name, char *path, size_t size, struct err *err);

/* Why kernel function @function could not be probed; @code is what the kernel said. */
int explain_function(const char *function, int code, bool fentry, struct err *err);
int explain_permission(int code, struct err *err);
/* False: the kernel will refuse every program for want of rights. */
bool may_load(void);

/* ---- elf_names.c: names in a binary, for the nearest ------------------------------ */
typedef void (*elfnames_fn)(void *context, const char *provider, const char *name);
/* Function symbols of symtab and dynsym (provider NULL). 0 or -errno with the reason. */
int elfnames_symbols(const char *path, elfnames_fn fn, void *context, struct err *err);
int elfnames_usdt(const char *path, elfnames_fn fn, void *context, struct err *err);
#define PROBED_BYTES 4 /* they tell how the kernel carries an instruction out */
/* The bytes at @offset in @function ("": in the file). */
int elfnames_code_at(const char *path, const char *function, uint64_t offset, uint8_t *code,
		     struct err *err);

/* ---- tracefs.c --------------------------------------------------------------------- */
struct tracefs_probes;
/* Return probe on @function with room for 4,096 threads; *number names it, *id is its
 * tracepoint id. Starts the watcher with the first one. */
int tracefs_add_kretprobe(struct tracefs_probes **probes, const char *function,
			  unsigned int *number, int *id, struct err *err);
int tracefs_remove(struct tracefs_probes *probes, unsigned int number);
/* Removes what is left and lets the watcher go. Accepts NULL. */
void tracefs_probes_close(struct tracefs_probes *probes);
/* Id of a tracepoint: "sched", "sched_switch". -errno. */
int tracefs_event_id(const char *root, const char *category, const char *name);
/* kern_tracefs_sweep() over any folder: for tests. */
int tracefs_sweep_in(const char *root);
/* Removes the entries of `duet_PID_START_*` from @root's probe files; the number removed. */
int tracefs_remove_owned(const char *root, const char *owner);
int tracefs_count_owned(const char *root, const char *owner);
void tracefs_owner_name(char *text, size_t size, int pid);

/* ---- perf events ----------------------------------------------------------------------------- */
int open_tracepoint(int id, int pid, int cpu);

/* duet's own programs that run beside the script's: NULL when there are none. */
struct own;
const struct own *totals_own(const struct kern *kern);      /* totals.c */
const struct own *target_tree_own(const struct kern *kern); /* target_tree.c */
