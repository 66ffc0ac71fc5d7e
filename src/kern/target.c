// SPDX-License-Identifier: BSD-2-Clause
/* Does a target exist, and if not: what is near it, or what is in the way. */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/nearest.h"

/* Appends "did you mean A, B?" when something is near. */
static int hint_nearest(const struct nearest *nearest, int code, struct err *err)
{
	char text[3 * 130];

	if (!nearest->count)
		return code;
	return err_hint(err, code, "nearest: %s", nearest_text(nearest, text, sizeof(text)));
}

/* ---- permission ------------------------------------------------------------------------ */

static bool lockdown_mode(char *mode, size_t size)
{
	CLEANUP(buf_deinit)
	struct buf text = { 0 };
	const char *from;

	if (buf_read_file(&text, "/sys/kernel/security/lockdown", NULL))
		return false;
	from = strchr(text.data, '[');
	if (!from || !strncmp(from, "[none]", 6))
		return false;
	snprintf(mode, size, "%.*s", (int)strcspn(from + 1, "]"), from + 1);
	return true;
}

bool may_load(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = { 0 };
	uint64_t effective, needed = 1ULL << CAP_BPF | 1ULL << CAP_PERFMON;

	if (!geteuid() || syscall(SYS_capget, &header, sets))
		return true; /* the kernel decides */
	effective = sets[0].effective | (uint64_t)sets[1].effective << 32;
	return (effective & needed) == needed || (effective & 1ULL << CAP_SYS_ADMIN);
}

int explain_permission(int code, struct err *err)
{
	char mode[32];

	if (code != -EPERM && code != -EACCES)
		return 0;
	if (geteuid())
		return err_set(err, code, "not permitted: run as root");
	if (lockdown_mode(mode, sizeof(mode)))
		return err_set(err, code,
			       "forbidden by kernel lockdown (%s): boot without lockdown= and "
			       "secure boot",
			       mode);
	return 0;
}

/* ---- kernel functions -------------------------------------------------------------------- */

struct symbol_search {
	struct nearest nearest;
	bool found;
	char variant[128]; /* "vfs_read.isra.0" */
};

static void search_symbol(struct symbol_search *search, const char *name)
{
	size_t size = strlen(search->nearest.wanted);

	if (!strcmp(name, search->nearest.wanted))
		search->found = true;
	else if (!strncmp(name, search->nearest.wanted, size) && name[size] == '.')
		snprintf(search->variant, sizeof(search->variant), "%s", name);
	else
		nearest_offer(&search->nearest, name);
}

static int search_kallsyms(struct symbol_search *search)
{
	CLEANUP(buf_deinit)
	struct buf text = { 0 };
	int code = buf_read_file(&text, "/proc/kallsyms", NULL);
	char *line, *rest, *name;

	if (code)
		return code;
	/* "ffffffff81000000 T _text\t[module]" */
	for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *type = strchr(line, ' ');

		if (!type || !strchr("tTwW", type[1]) || type[2] != ' ')
			continue;
		name = type + 3;
		name[strcspn(name, " \t")] = 0;
		search_symbol(search, name);
	}
	return 0;
}

static bool is_blacklisted(const char *function)
{
	CLEANUP(buf_deinit)
	struct buf text = { 0 };
	char *line, *rest;

	if (buf_read_file(&text, "/sys/kernel/debug/kprobes/blacklist", NULL))
		return false;
	for (line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *tab = strchr(line, '\t');

		if (tab && !strcmp(tab + 1, function))
			return true;
	}
	return false;
}

static int explain_missing(const struct symbol_search *search, const char *function, int code,
			   struct err *err)
{
	if (search->variant[0])
		return err_set(err, code, "the compiler made %s of it: probe that, or a caller",
			       search->variant);
	err_set(err, code, "no such function in this kernel (or it is inlined everywhere)");
	return hint_nearest(&search->nearest, code, err);
}

int explain_function(const char *function, int code, bool fentry, struct err *err)
{
	struct symbol_search search = { 0 };
	char name[256];

	if (!fentry && kern_feature(KERN_FEATURE_KPROBE, NULL) == 0)
		return err_set(err, code,
			       "this kernel has no kprobes (CONFIG_KPROBES): use a tracepoint "
			       "(duet list probes), or another kernel");
	if (explain_permission(code, err))
		return code;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(function, "+"), function);
	nearest_init(&search.nearest, name);
	if (search_kallsyms(&search))
		return err_set(err, code, "%s", kern_errno_text(code));
	if (!search.found)
		return explain_missing(&search, name, code == -EINVAL ? -ENOENT : code, err);
	if (fentry && kern_feature(KERN_FEATURE_FENTRY, NULL) == 0)
		return err_set(err, code,
			       "this kernel cannot attach fentry and fexit programs: use "
			       "SEC(\"kprobe/%s\") or SEC(\"kretprobe/%s\")",
			       function, function);
	if (code == -EADDRNOTAVAIL)
		return err_set(err, code, "several functions have this name");
	if (fentry && (code == -ENOENT || code == -ESRCH))
		return err_set(err, code,
			       "the function exists, but has no BTF: use SEC(\"kprobe/%s\")", name);
	if (is_blacklisted(name) || code == -EINVAL || code == -EOPNOTSUPP)
		return err_set(err, code,
			       "the function exists, but the kernel forbids probes in it (it is "
			       "%s): probe a caller",
			       is_blacklisted(name) ? "on its blacklist" : "notrace or noinstr");
	return err_set(err, code, "%s", kern_errno_text(code));
}

int check_kprobe(struct kern_program *program, const char *target, struct err *err)
{
	struct symbol_search search = { 0 };
	char name[256];

	if (kern_feature(KERN_FEATURE_KPROBE, NULL) == 0)
		return explain_function(target, -ENOENT, false, err);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(target, "+"), target);
	nearest_init(&search.nearest, name);
	if (search_kallsyms(&search) || search.found)
		return 0;
	return explain_missing(&search, name, -ENOENT, err);
}

/* ---- names from the kernel's BTF ------------------------------------------------------------ */

static void btf_free_cleanup(struct btf **btf)
{
	btf__free(*btf);
}

/* Offers the names of @kind that start with @prefix (left out of the name); true: it is there. */
static bool search_btf(struct nearest *nearest, uint32_t kind, const char *prefix, bool *no_btf)
{
	CLEANUP(btf_free_cleanup)
	struct btf *btf = btf__load_vmlinux_btf();
	size_t skip = strlen(prefix);
	bool found = false;
	uint32_t i;

	*no_btf = libbpf_get_error(btf) || !btf;
	if (*no_btf) {
		btf = NULL;
		return false;
	}
	for (i = 1; i < btf__type_cnt(btf); i++) {
		const struct btf_type *type = btf__type_by_id(btf, i);
		const char *name = btf__name_by_offset(btf, type->name_off);

		if (btf_kind(type) != kind || !name || strncmp(name, prefix, skip))
			continue;
		if (!strcmp(name + skip, nearest->wanted))
			found = true;
		nearest_offer(nearest, name + skip);
	}
	return found;
}

/*
 * Does the kernel know the tracepoint? A program that reads the twelfth argument is refused by any
 * tracepoint with fewer (-EINVAL, and nothing was attached), but only after its name was found.
 * 10 us, where a search of the kernel's BTF takes 20 ms. -errno: cannot tell.
 */
static int raw_tp_exists(const char *name)
{
	static const struct bpf_insn read_last_argument[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .src_reg = BPF_REG_1, .off = 88 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	CLEANUP(close_fd) int link = -1;
	CLEANUP(close_fd)
	int fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "GPL", read_last_argument, 3,
			       NULL);

	if (fd < 0)
		return fd;
	link = bpf_raw_tracepoint_open(name, fd);
	return link >= 0 || link == -EINVAL ? 1 : link == -ENOENT ? 0 : link;
}

int check_raw_tp(struct kern_program *program, const char *target, struct err *err)
{
	struct nearest nearest;
	bool no_btf;

	if (raw_tp_exists(target) > 0)
		return 0;
	nearest_init(&nearest, target);
	if (search_btf(&nearest, BTF_KIND_TYPEDEF, "btf_trace_", &no_btf) || no_btf)
		return 0;
	err_set(err, -ENOENT, "no such tracepoint in this kernel");
	return hint_nearest(&nearest, -ENOENT, err);
}

static int explain_btf(const struct kern_program *program, const char *target, int code,
		       struct err *err)
{
	struct nearest nearest;
	bool no_btf;

	if (program->kind->id == KIND_TP_BTF && check_raw_tp((void *)program, target, err) < 0)
		return -ENOENT;
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return err_set(err, code,
			       "this kernel has no BTF (/sys/kernel/btf/vmlinux): use kprobe and "
			       "raw_tp programs");
	nearest_init(&nearest, target);
	if (search_btf(&nearest, BTF_KIND_FUNC, "", &no_btf))
		return err_set(err, code, "%s", kern_errno_text(code));
	explain_function(target, code, true, err);
	/* Names with BTF are better than those of all symbols. */
	if (err && strstr(err->text, "no such function")) {
		err_set(err, -ENOENT, "no such function in this kernel's BTF");
		return hint_nearest(&nearest, -ENOENT, err);
	}
	return -ENOENT;
}

/* Chooses the target at the same time: libbpf asks the kernel's BTF for it. */
int check_btf(struct kern_program *program, const char *target, struct err *err)
{
	int code;

	if (program->target_set)
		return 0;
	code = bpf_program__set_attach_target(program->program, 0, target);
	if (code)
		return explain_btf(program, target, code, err);
	program->target_set = true;
	return 0;
}

/* ---- tracepoints ------------------------------------------------------------------------------ */

static void offer_folder(struct nearest *nearest, const char *path, const char *prefix)
{
	char name[300];
	struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s%s", prefix, entry->d_name);
		nearest_offer(nearest, name);
	}
	if (dir)
		closedir(dir);
}

int check_tracepoint(struct kern_program *program, const char *target, struct err *err)
{
	char category[128], name[128], path[512], wanted[260], prefix[130];
	const char *root = kern_tracefs(err);
	struct nearest nearest;

	if (!root)
		return err && err->code ? err->code : -ENOSYS;
	if (sscanf(target, "%127[^:/]%*[:/]%127s", category, name) != 2)
		return err_set(err, -EINVAL, "%s: not CATEGORY/NAME", target);
	if (tracefs_event_id(root, category, name) > 0)
		return 0;
	snprintf(path, sizeof(path), "%s/events/%s", root, category);
	if (access(path, F_OK)) {
		nearest_init(&nearest, category);
		snprintf(path, sizeof(path), "%s/events", root);
		offer_folder(&nearest, path, "");
		err_set(err, -ENOENT, "no tracepoints of category %s", category);
		return hint_nearest(&nearest, -ENOENT, err);
	}
	snprintf(wanted, sizeof(wanted), "%s/%s", category, name);
	snprintf(prefix, sizeof(prefix), "%s/", category);
	nearest_init(&nearest, wanted);
	offer_folder(&nearest, path, prefix);
	err_set(err, -ENOENT, "no such tracepoint in this kernel");
	return hint_nearest(&nearest, -ENOENT, err);
}

/* ---- user programs ------------------------------------------------------------------------------ */

struct name_search {
	struct nearest nearest;
	bool found, any;
};

static void search_name(void *context, const char *provider, const char *name)
{
	struct name_search *search = context;
	char whole[260];

	search->any = true;
	snprintf(whole, sizeof(whole), "%s%s%s", provider ? provider : "", provider ? ":" : "",
		 name);
	if (!strcmp(whole, search->nearest.wanted))
		search->found = true;
	nearest_offer(&search->nearest, whole);
}

/* "malloc@GLIBC_2.2" names the symbol malloc. */
int check_uprobe(struct kern_program *program, const char *target, struct err *err)
{
	struct name_search search = { 0 };
	struct user_place place;
	int code = user_place_parse(target, &place, err);

	if (code || !place.symbol[0])
		return code;
	place.symbol[strcspn(place.symbol, "@")] = 0;
	nearest_init(&search.nearest, place.symbol);
	code = elfnames_symbols(place.path, search_name, &search, err);
	if (code || search.found)
		return code;
	if (!search.any)
		return err_set(err, -ENOENT,
			       "%s has no symbols: it is stripped: name a file offset", place.path);
	err_set(err, -ENOENT, "%s has no function %s", place.path, place.symbol);
	return hint_nearest(&search.nearest, -ENOENT, err);
}

int check_usdt(struct kern_program *program, const char *target, struct err *err)
{
	struct name_search search = { 0 };
	struct usdt_place place;
	char wanted[260];
	int code = usdt_place_parse(target, &place, err);

	if (code)
		return code;
	snprintf(wanted, sizeof(wanted), "%s:%s", place.provider, place.name);
	nearest_init(&search.nearest, wanted);
	code = elfnames_usdt(place.path, search_name, &search, err);
	if (code || search.found)
		return code;
	if (!search.any)
		return err_set(err, -ENOENT, "%s has no USDT probes", place.path);
	err_set(err, -ENOENT, "%s has no USDT probe %s", place.path, wanted);
	return hint_nearest(&search.nearest, -ENOENT, err);
}
