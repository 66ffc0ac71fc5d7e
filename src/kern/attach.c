// SPDX-License-Identifier: BSD-2-Clause
/* Attaching and detaching: one function per kind of section, named in section.c's table. */
#include "kern/internal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

int open_tracepoint(int id, int pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = id, .sample_period = 1
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* libbpf's own words when it has any, else what the kernel said. */
static int libbpf_failed(const struct kern_program *program, int code, struct err *err)
{
	const char *reason = program->kern->messages.reason;
	struct err permission;

	if (explain_permission(code, &permission))
		return err_set(err, code, "%s", permission.text);
	return err_set(err, code, "%s", reason[0] ? reason : kern_errno_text(code));
}

static int take_link(struct bpf_link *link, struct kern_link *ret)
{
	if (!link)
		return -errno;
	ret->link = link;
	return 0;
}

/* "vfs_read+0x10" -> "vfs_read", 16. */
static int function_parse(const char *target, char *name, size_t size, unsigned long *offset,
			  struct err *err)
{
	size_t length = strcspn(target, "+");
	char *end = "";

	*offset = 0;
	if (target[length])
		*offset = strtoul(target + length + 1, &end, 0);
	if (!length || length >= size || *end)
		return err_set(err, -EINVAL, "%s: not FUNCTION or FUNCTION+OFFSET", target);
	snprintf(name, size, "%.*s", (int)length, target);
	return 0;
}

/* What bpf_get_attach_cookie() tells a program: 0 where its section says, then 1, 2 ... for each
 * kern_program_attach_at(). */
static uint64_t instance(const struct kern_program *program, const struct kern_link *link)
{
	return link - program->links;
}

/* A cookie of 0 is none: kernels before 5.15 know no others. */
static int attach_event_fd(struct kern_program *program, int fd, struct kern_link *ret)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = instance(program, ret));

	return take_link(bpf_program__attach_perf_event_opts(program->program, fd, &opts), ret);
}

static int attach_kprobe_plain(struct kern_program *program, const char *target, bool returns,
			       struct kern_link *ret, struct err *err)
{
	LIBBPF_OPTS(bpf_kprobe_opts, opts, .retprobe = returns,
		    .bpf_cookie = instance(program, ret));
	unsigned long offset;
	char name[256];
	int code = function_parse(target, name, sizeof(name), &offset, err);

	if (code)
		return code;
	opts.offset = offset;
	code = take_link(bpf_program__attach_kprobe_opts(program->program, name, &opts), ret);
	return code ? explain_function(name, code, false, err) : 0;
}

int attach_kprobe(struct kern_program *program, const char *target, struct kern_link *ret,
		  struct err *err)
{
	return attach_kprobe_plain(program, target, false, ret, err);
}

/*
 * perf's return probes have room for 10 threads (or twice the CPUs) inside the function and drop
 * the returns of all others without a word; through kprobe_events we say how much room there is.
 */
int attach_kretprobe(struct kern_program *program, const char *target, struct kern_link *ret,
		     struct err *err)
{
	struct kern *kern = program->kern;
	struct err why = { 0 };
	int id, fd, code;

	code = tracefs_add_kretprobe(&kern->probes, target, &ret->event, &id, &why);
	if (code == -ENOSYS || code == -EROFS) {
		log_note("program %s: return probe with room for few threads, returns may be "
			 "missed: %s",
			 kern_program_name(program), why.text);
		return attach_kprobe_plain(program, target, true, ret, err);
	}
	if (code)
		return explain_function(target, code, false, err);
	fd = open_tracepoint(id, -1, 0);
	code = fd < 0 ? fd : 0;
	if (!code) {
		code = attach_event_fd(program, fd, ret);
		if (code)
			close(fd);
	}
	if (code) {
		tracefs_remove(kern->probes, ret->event);
		ret->event = 0;
		return libbpf_failed(program, code, err);
	}
	return 0;
}

int attach_kprobe_multi(struct kern_program *program, const char *target, struct kern_link *ret,
			struct err *err)
{
	LIBBPF_OPTS(bpf_kprobe_multi_opts, opts,
		    .retprobe = program->kind->id == KIND_KRETPROBE_MULTI);
	int code;

	code = take_link(bpf_program__attach_kprobe_multi_opts(program->program, target, &opts),
			 ret);
	if (code && kern_feature(KERN_FEATURE_KPROBE_MULTI, NULL) == 0)
		return err_set(err, code,
			       "this kernel has no kprobe.multi (CONFIG_FPROBE): use SEC(\"kprobe/"
			       "FUNCTION\")");
	return code ? libbpf_failed(program, code, err) : 0;
}

int attach_ksyscall(struct kern_program *program, const char *target, struct kern_link *ret,
		    struct err *err)
{
	LIBBPF_OPTS(bpf_ksyscall_opts, opts, .retprobe = program->kind->id == KIND_KRETSYSCALL);
	int code = take_link(bpf_program__attach_ksyscall(program->program, target, &opts), ret);

	if (!code)
		return 0;
	if (kern_feature(KERN_FEATURE_KPROBE, NULL) == 0)
		return explain_function(target, code, false, err);
	if (code == -ENOENT || code == -EINVAL)
		return err_set(err, code, "no system call of that name");
	return libbpf_failed(program, code, err);
}

static int probe_pid(const struct kern_program *program)
{
	int pid = program->kern->options.pid;

	return pid > 0 ? pid : -1;
}

int attach_uprobe(struct kern_program *program, const char *target, struct kern_link *ret,
		  struct err *err)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = program->kind->id == KIND_URETPROBE,
		    .bpf_cookie = instance(program, ret));
	struct user_place place;
	int code = user_place_parse(target, &place, err);

	if (code)
		return code;
	if (place.symbol[0])
		opts.func_name = place.symbol;
	code = take_link(bpf_program__attach_uprobe_opts(program->program, probe_pid(program),
							 place.path, place.offset, &opts),
			 ret);
	if (!code)
		return 0;
	if (check_uprobe(program, target, err) < 0)
		return err ? err->code : code;
	if (kern_feature(KERN_FEATURE_UPROBE, NULL) == 0)
		return err_set(err, code, "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)");
	return libbpf_failed(program, code, err);
}

int attach_usdt(struct kern_program *program, const char *target, struct kern_link *ret,
		struct err *err)
{
	LIBBPF_OPTS(bpf_usdt_opts, opts, .usdt_cookie = instance(program, ret));
	struct usdt_place place;
	int code = usdt_place_parse(target, &place, err);

	if (code)
		return code;
	code = take_link(bpf_program__attach_usdt(program->program, probe_pid(program), place.path,
						  place.provider, place.name, &opts),
			 ret);
	if (!code)
		return 0;
	if (check_usdt(program, target, err) < 0)
		return err ? err->code : code;
	return libbpf_failed(program, code, err);
}

int attach_tracepoint(struct kern_program *program, const char *target, struct kern_link *ret,
		      struct err *err)
{
	char category[128], name[128];
	const char *root = kern_tracefs(err);
	int id, fd, code;

	if (!root)
		return err ? err->code : -ENOENT;
	if (sscanf(target, "%127[^:/]%*[:/]%127s", category, name) != 2)
		return err_set(err, -EINVAL, "%s: not CATEGORY/NAME", target);
	id = tracefs_event_id(root, category, name);
	if (id < 0) {
		code = check_tracepoint(program, target, err);
		return code ? code : err_set(err, id, "%s", kern_errno_text(id));
	}
	fd = open_tracepoint(id, -1, 0);
	if (fd < 0)
		return libbpf_failed(program, fd, err);
	code = attach_event_fd(program, fd, ret);
	if (code) {
		close(fd);
		return libbpf_failed(program, code, err);
	}
	return 0;
}

int attach_raw_tp(struct kern_program *program, const char *target, struct kern_link *ret,
		  struct err *err)
{
	int code = take_link(bpf_program__attach_raw_tracepoint(program->program, target), ret);
	struct err why;

	if (code == -ENOENT && check_raw_tp(program, target, &why) < 0)
		return err_set(err, code, "%s", why.text);
	return code ? libbpf_failed(program, code, err) : 0;
}

int attach_trace(struct kern_program *program, const char *target, struct kern_link *ret,
		 struct err *err)
{
	int code;

	if (program->kind->id == KIND_LSM)
		code = take_link(bpf_program__attach_lsm(program->program), ret);
	else
		code = take_link(bpf_program__attach_trace(program->program), ret);
	if (!code)
		return 0;
	if (program->kind->id == KIND_TP_BTF || program->kind->id == KIND_LSM)
		return libbpf_failed(program, code, err);
	return explain_function(target, code, true, err);
}

int attach_auto(struct kern_program *program, const char *target, struct kern_link *ret,
		struct err *err)
{
	int code = take_link(bpf_program__attach(program->program), ret);

	if (code == -EOPNOTSUPP) {
		log_note("program %s (%s): loaded, but nobody attaches this kind of program: use "
			 "its own tool (tc, ip, bpftool)",
			 kern_program_name(program), program->section);
		return -EOPNOTSUPP;
	}
	return code ? libbpf_failed(program, code, err) : 0;
}

static void link_release(struct kern *kern, struct kern_link *link)
{
	bpf_link__destroy(link->link);
	if (link->event)
		tracefs_remove(kern->probes, link->event);
	*link = (struct kern_link){ 0 };
}

/* Room for one more first: what was attached cannot then be lost. */
static int attach_one(struct kern_program *program, const struct section_kind *kind,
		      const char *target, struct err *err)
{
	struct kern_link *link;
	int code;

	link = array_grow(&program->links, &program->nlinks, &program->links_capacity,
			  sizeof(*link));
	if (!link)
		return err_nomem(err);
	messages_clear(&program->kern->messages);
	code = kind->attach(program, target, link, err);
	if (code)
		program->nlinks--;
	return code;
}

static int check_attachable(const struct kern_program *program, struct err *err)
{
	const char *name = kern_program_name(program);

	if (!program->kern->loaded)
		return err_set(err, -EINVAL, "program %s: not loaded yet", name);
	if (program->state == KERN_PROGRAM_DISABLED || program->state == KERN_PROGRAM_SKIPPED ||
	    kern_program_fd(program) < 0)
		return err_set(err, -ENOENT, "program %s: not loaded: %s", name,
			       program->state == KERN_PROGRAM_SKIPPED
				       ? "its target is absent"
				       : "it was switched off, or has no target");
	if (!program->kind->attach)
		return err_set(err, -EOPNOTSUPP, "program %s (%s): cannot be attached by name",
			       name, program->section);
	return 0;
}

int kern_program_attach(struct kern_program *program, struct err *err)
{
	struct err why = { 0 };
	int code = check_attachable(program, err);

	if (code)
		return code;
	if (program->nlinks)
		return 0;
	if (!program->target && program->kind->id != KIND_OTHER &&
	    program->kind->id != KIND_PERF_EVENT)
		return err_set(err, -EINVAL, "program %s (%s): no target",
			       kern_program_name(program), program->section);
	LISTEN(&program->kern->messages);
	code = attach_one(program, program->kind, program->target, &why);
	if (!code) {
		program->state = KERN_PROGRAM_ATTACHED;
		return 0;
	}
	if (code == -EOPNOTSUPP && program->kind->id == KIND_OTHER) {
		program->state = KERN_PROGRAM_BARE;
		return 0;
	}
	if (program->optional) {
		program->state = KERN_PROGRAM_SKIPPED;
		log_note("program %s (%s) is skipped: %s", kern_program_name(program),
			 program->section, why.text);
		return 0;
	}
	return err_set(err, code, "program %s (%s): %s", kern_program_name(program),
		       program->section, why.text);
}

int kern_program_attach_at(struct kern_program *program, const char *where, struct err *err)
{
	const struct section_kind *kind;
	struct err why = { 0 };
	const char *target;
	int code = check_attachable(program, err);

	if (code)
		return code;
	kind = section_parse(where, &target);
	if (kind->id == KIND_OTHER || !target) {
		kind = program->kind;
		target = where;
	}
	if (program->kind->fixed || kind->fixed || !kind->attach ||
	    kind->type != program->kind->type)
		return err_set(
			err, -EOPNOTSUPP, "program %s (%s): cannot be attached at %s: %s",
			kern_program_name(program), program->section, where,
			program->kind->fixed
				? "its target is fixed when it is loaded: use prog_target() in "
				  "user/open, or a kprobe"
				: "it is of another kind");
	LISTEN(&program->kern->messages);
	/* The attach functions look at the program's kind for entry or return. */
	const struct section_kind *own = program->kind;
	program->kind = kind;
	code = attach_one(program, kind, target, &why);
	program->kind = own;
	if (code)
		return err_set(err, code, "program %s at %s: %s", kern_program_name(program), where,
			       why.text);
	program->state = KERN_PROGRAM_ATTACHED;
	return 0;
}

int kern_program_set_events(struct kern_program *program, const int *fds, size_t count,
			    struct err *err)
{
	size_t i;

	if (program->kind->id != KIND_PERF_EVENT)
		return err_set(err, -EINVAL, "program %s (%s): not a perf_event program",
			       kern_program_name(program), program->section);
	if (program->nevents || program->nlinks)
		return err_set(err, -EBUSY, "program %s: has its events already",
			       kern_program_name(program));
	program->events = calloc(count ? count : 1, sizeof(*program->events));
	if (!program->events)
		return err_nomem(err);
	for (i = 0; i < count; i++) {
		int fd = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 3);

		if (fds[i] >= 0 && fd < 0)
			return err_set(err, -errno, "program %s: events: %s",
				       kern_program_name(program), strerror(errno));
		if (fd >= 0)
			program->events[program->nevents++] = fd;
	}
	return 0;
}

static int attach_event(struct kern_program *program, int event, struct kern_link *ret)
{
	/* The link closes its descriptor; ours is for the next time. */
	int fd = fcntl(event, F_DUPFD_CLOEXEC, 3), code;

	if (fd < 0)
		return -errno;
	code = take_link(bpf_program__attach_perf_event(program->program, fd), ret);
	if (code)
		close(fd);
	return code;
}

int kern_program_add_event(struct kern_program *program, int fd, struct err *err)
{
	struct kern_link *link;
	int code;

	if (program->kind->id != KIND_PERF_EVENT || program->state != KERN_PROGRAM_ATTACHED)
		return 0;
	LISTEN(&program->kern->messages);
	link = array_grow(&program->links, &program->nlinks, &program->links_capacity,
			  sizeof(*link));
	if (!link)
		return err_nomem(err);
	code = attach_event(program, fd, link);
	if (!code)
		return 0;
	program->nlinks--;
	return libbpf_failed(program, code, err);
}

/* One link for each event: @ret is the first, the others follow it. */
int attach_events(struct kern_program *program, const char *target, struct kern_link *ret,
		  struct err *err)
{
	size_t i, first = ret - program->links;
	int code = 0;

	if (!program->nevents)
		return err_set(err, -ENOENT, "no event is open for it");
	for (i = 0; i < program->nevents && !code; i++) {
		struct kern_link *link = &program->links[first];

		if (i)
			link = array_grow(&program->links, &program->nlinks,
					  &program->links_capacity, sizeof(*link));
		if (!link)
			code = -ENOMEM;
		else
			code = attach_event(program, program->events[i], link);
	}
	if (!code)
		return 0;
	/* The caller gives up the first. */
	while (program->nlinks > first + 1)
		link_release(program->kern, &program->links[--program->nlinks]);
	link_release(program->kern, &program->links[first]);
	return libbpf_failed(program, code, err);
}

void program_release_links(struct kern_program *program)
{
	LISTEN(&program->kern->messages);
	while (program->nlinks)
		link_release(program->kern, &program->links[--program->nlinks]);
}

int kern_program_detach(struct kern_program *program)
{
	if (program->state != KERN_PROGRAM_ATTACHED && program->state != KERN_PROGRAM_PLANNED)
		return program->state == KERN_PROGRAM_DETACHED ? 0 : -ENOENT;
	program_release_links(program);
	program->state = KERN_PROGRAM_DETACHED;
	return 0;
}

int kern_program_iter_fd(const struct kern_program *program)
{
	int fd;

	if (program->kind->id != KIND_ITER || !program->nlinks)
		return -EINVAL;
	fd = bpf_iter_create(bpf_link__fd(program->links[0].link));
	return fd;
}
