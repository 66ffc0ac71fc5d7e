/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for addresses, addresses for names: the kernel's, ELF files', processes'; and paths for
 * cgroup ids. Everything is read at its first use and kept. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

/* Where an address lies. The texts live as long as what they were asked of. */
struct sym_place {
	const char *name;   /* function or object; NULL: only the module is known */
	uint64_t offset;    /* behind the start of `name`; without one, in the module's file */
	const char *module; /* "" for the kernel itself, "nf_tables", "/usr/lib/...", "[vdso]" */
};

/* ---- the kernel ---------------------------------------------------------------------------- */
struct sym_kernel;
struct sym_kernel_symbol {
	uint64_t address; /* 0 when the kernel hides them (kernel.kptr_restrict) */
	const char *name;
	const char *module; /* "" for the kernel itself */
	char type;          /* as nm(1): t and T are code */
};

/* Cheap: nothing is read yet. @path: NULL for /proc/kallsyms. */
int sym_kernel_open(const char *path, struct sym_kernel **ret, struct err *err);
void sym_kernel_close(struct sym_kernel *kernel);
DEFINE_CLEANUP(struct sym_kernel *, sym_kernel_close);
/* Reads it now: 0, or -errno with the reason. The functions below do so when needed. */
int sym_kernel_load(struct sym_kernel *kernel, struct err *err);
/* Ascending by address; 0 when it cannot be read. */
size_t sym_kernel_count(struct sym_kernel *kernel);
const struct sym_kernel_symbol *sym_kernel_at(struct sym_kernel *kernel, size_t index);
/* Are addresses hidden from this user? Names can still be asked for. */
bool sym_kernel_hidden(struct sym_kernel *kernel);
/* -ENOENT: in front of the first symbol, or hidden. */
int sym_kernel_find_address(struct sym_kernel *kernel, uint64_t address, struct sym_place *ret);
/* The symbols of that name: their number (0: none), the first in *ret (may be NULL). Static
 * functions may share a name. */
size_t sym_kernel_find_name(struct sym_kernel *kernel, const char *name,
			    const struct sym_kernel_symbol **ret);

/* ---- an ELF file ----------------------------------------------------------------------------- */
struct sym_file;
struct sym_file_symbol {
	uint64_t address; /* as linked */
	uint64_t size;    /* bytes, may be 0 */
	const char *name;
	bool function;
	bool exported; /* in the dynamic symbol table */
};
/* Defined functions and objects of symtab and dynsym, of a separate debug file too if there is one
 * for its build id. -ENOEXEC: no ELF file; -EBADMSG: a damaged one. */
int sym_file_open(const char *path, struct sym_file **ret, struct err *err);
void sym_file_close(struct sym_file *file);
DEFINE_CLEANUP(struct sym_file *, sym_file_close);
/* Ascending by address; a symbol that both tables hold is there once. */
size_t sym_file_count(const struct sym_file *file);
const struct sym_file_symbol *sym_file_at(const struct sym_file *file, size_t index);
/* The symbol that covers @address; NULL: none. */
const struct sym_file_symbol *sym_file_find_address(const struct sym_file *file, uint64_t address);
/* A function rather than an object of that name; NULL: none. */
const struct sym_file_symbol *sym_file_find_name(const struct sym_file *file, const char *name);
/* Between offsets in the file (of uprobes and maps) and linked addresses. -ENOENT: not loaded. */
int sym_file_address_of(const struct sym_file *file, uint64_t offset, uint64_t *ret);
int sym_file_offset_of(const struct sym_file *file, uint64_t address, uint64_t *ret);

/* ---- one place for all ------------------------------------------------------------------------ */
struct sym;
int sym_open(struct sym **ret, struct err *err);
void sym_close(struct sym *sym);
DEFINE_CLEANUP(struct sym *, sym_close);
struct sym_kernel *sym_kernel_of(struct sym *sym);
/* "vfs_read+0x1c", "main+0x8 [/usr/bin/x]" with the module unless it is "", or "[/usr/bin/x]+0x123"
 * without a name. Returns @text. */
const char *sym_place_text(const struct sym_place *place, char *text, size_t size);
/*
 * An address in process @pid (thread group id), by its maps, files and their symbols. Maps are read
 * at the first question, and again when an address is in none of them; so ask once while the
 * process lives (sym_process_note()), and its addresses have names after its end too.
 * -ESRCH: gone before anybody asked; -ENOENT: mapped nowhere.
 */
int sym_process_find(struct sym *sym, pid_t pid, uint64_t address, struct sym_place *ret);
int sym_process_note(struct sym *sym, pid_t pid);
/* Forgets the maps of a process that has executed another program, or whose pid was reused. */
void sym_process_forget(struct sym *sym, pid_t pid);

/* "/system.slice/x.service" for the id that bpf_get_current_cgroup_id() gives; "/" for the root.
 * NULL: unknown (removed, or no cgroup2 file system is mounted). Lives until sym_close(). */
const char *sym_cgroup_path(struct sym *sym, uint64_t id);

struct sym_cgroup_place {
	uint64_t id;         /* inode number of its directory: the kernel's own id of it */
	uint32_t level;      /* directories below the root of its hierarchy; 0: the root */
	char controller[32]; /* of a version 1 hierarchy, "" for version 2 */
	char path[4096];
};
/*
 * A cgroup by its path (whole, or below a mount of cgroup2, else of version 1), or by the id of the
 * container that runs in it: at least 12 hexadecimal digits, which begin a part of a directory's
 * name. -ENOENT; -ENOTUNIQ for an id that fits several. Levels count from the mount: in a cgroup
 * namespace, from that namespace's root.
 */
int sym_cgroup_find(const char *text, struct sym_cgroup_place *ret, struct err *err);
/* Mount point of the cgroup2 file system. -ENOENT. */
int sym_cgroup_mount(char *path, size_t size);
