// SPDX-License-Identifier: BSD-2-Clause
/* One script: cache, headers, compiler, message. */
#include "compile/compile.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "compile/internal.h"

/* Part of every key: change it when flags or the meaning of entries change. */
#define SCHEME "1"

/* One call of compile_script(). */
struct job {
	const struct compile_options *options;
	const char *arch;
	const char *name; /* as clang and its messages call the script */
	struct buf source;
	struct headers headers;
	struct workspace workspace;
	struct entry_key key;
	struct compile_compiler compiler;
	struct list flags;
};

static void job_deinit(struct job *job)
{
	buf_deinit(&job->source);
	list_deinit(&job->flags);
	workspace_close(&job->workspace);
}

void compile_result_deinit(struct compile_result *result)
{
	buf_deinit(&result->object);
	buf_deinit(&result->diagnostics);
}

static int read_source(struct job *job, struct err *err)
{
	int code;

	if (strcmp(job->options->path, "-")) {
		job->name = job->options->path;
		return buf_read_file(&job->source, job->options->path, err);
	}
	job->name = "<stdin>";
	code = buf_read_fd(&job->source, STDIN_FILENO);
	return code ? err_set(err, code, "standard input: %s", strerror(-code)) : 0;
}

static int choose_arch(const struct compile_options *options, const char **ret, struct err *err)
{
	const char *arch = options->arch ? options->arch : compile_host_arch();

	if (!arch)
		return err_set(err, -EOPNOTSUPP,
			       "this machine's architecture is not supported: "
			       "x86_64 and arm64 are");
	if (!strcmp(arch, "aarch64"))
		arch = "arm64";
	if (strcmp(arch, "x86_64") && strcmp(arch, "arm64"))
		return err_set(err, -EINVAL, "--arch %s: no such architecture: x86_64 or arm64",
			       arch);
	*ret = arch;
	return 0;
}

/* All that decides about the object, but for the compiler and the files that a script includes. */
static void make_key(struct job *job)
{
	char path[PATH_MAX], folder[PATH_MAX];
	struct hash *hash = &job->key.hash;

	hash_text(hash, SCHEME);
	hash_data(hash, job->source.data, job->source.size);
	hash_text(hash, job->name); /* the object names its source, relative to the folder */
	hash_text(hash, getcwd(folder, sizeof(folder)) ? folder : "");
	hash_text(hash, job->arch);
	hash_text(hash, job->options->cflags);
	hash_text(hash, getenv("DUET_CLANG"));
	hash_data(hash, &job->headers.contents, sizeof(job->headers.contents));
	job->key.compiler = compiler_locate(path, NULL) ? 0 : compiler_identity(path);
}

/* Compiler, flags and headers, ready for use. */
static int prepare(struct job *job, struct err *err)
{
	int code = compile_find_compiler(&job->compiler, err);

	if (!code)
		code = headers_make(&job->workspace, job->options, job->arch, &job->headers, err);
	if (!code)
		code = compiler_flags(&job->compiler, job->arch, job->options->cflags, &job->flags,
				      err);
	if (!code && headers_flags(&job->headers, &job->flags))
		code = err_nomem(err);
	return code;
}

/* The source on a descriptor for `clang -`; -1 when clang reads the file itself. */
static int stdin_copy(const struct job *job, int *ret)
{
	int fd;

	*ret = -1;
	if (strcmp(job->options->path, "-"))
		return 0;
	fd = memfd_create("script", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, job->source.data, job->source.size) != (ssize_t)job->source.size ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		return -EIO;
	}
	*ret = fd;
	return 0;
}

/* Status of clang, or -errno. @pch: NULL or a precompiled header. */
static int run_clang(const struct job *job, const char *pch, const char *object,
		     const char *depfile, struct buf *output)
{
	const char *const tail[] = { "-c",   "-MD", "-MF", depfile,           "-o",
				     object, "-x",  "c",   job->options->path };
	CLEANUP(list_deinit)
	struct list argv = { 0 };
	CLEANUP(close_fd)
	int input = -1;
	size_t i;
	int code;

	code = list_add(&argv, job->compiler.path);
	for (i = 0; i < job->flags.count && !code; i++)
		code = list_add(&argv, job->flags.items[i]);
	if (pch && !code)
		code = list_add(&argv, "-include-pch") || list_add(&argv, pch) ? -ENOMEM : 0;
	for (i = 0; i < sizeof(tail) / sizeof(tail[0]) && !code; i++)
		code = list_add(&argv, tail[i]);
	if (!code)
		code = stdin_copy(job, &input);
	return code ? code : process_run(argv.items, input, output);
}

/* A damaged or outdated precompiled header shows as a complaint about it, or as a crash. */
static bool blames_header(int status, const struct buf *output, const char *pch)
{
	static const char *const words[] = { "precompiled header", "PCH file", "AST file" };
	size_t i;

	if (status <= 0)
		return false;
	if (status >= 70 || !output->size || strstr(output->data, pch))
		return true;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strstr(output->data, words[i]))
			return true;
	}
	return false;
}

/* With the precompiled header when there may be one; without when clang does not like it. */
static int run_with_header(const struct job *job, const char *object, const char *depfile,
			   struct buf *output)
{
	char script[PATH_MAX], pch[PATH_MAX];
	enum pch_kind kind;
	int code;

	snprintf(script, sizeof(script), "%s", job->options->path);
	kind = pch_wanted(job->source.data ? job->source.data : "", job->source.size,
			  dirname(script));
	if (!pch_make(&job->workspace, &job->compiler, &job->flags, &job->headers, kind, pch))
		return run_clang(job, NULL, object, depfile, output);
	code = run_clang(job, pch, object, depfile, output);
	if (blames_header(code, output, pch)) {
		buf_deinit(output);
		code = run_clang(job, NULL, object, depfile, output);
		if (code < 70) /* else it is the script that makes clang crash */
			unlink(pch);
	}
	return code;
}

static int explain(const struct job *job, int status, struct compile_result *ret, struct err *err)
{
	const char *output = ret->diagnostics.data ? ret->diagnostics.data : "";
	char text[900];
	bool complete;

	complete = message_from_clang(output, job->name, status, &job->compiler, job->headers.duet,
				      text, sizeof(text));
	if (complete && !job->options->verbose)
		buf_deinit(&ret->diagnostics);
	return err_set(err, -EINVAL, "%s", text);
}

/* Was the file edited while clang read it? Then the object is what the user wants, not the cache. */
static bool source_unchanged(const struct job *job)
{
	CLEANUP(buf_deinit)
	struct buf now = { 0 };

	if (!strcmp(job->options->path, "-"))
		return true;
	return !buf_read_file(&now, job->options->path, NULL) && now.size == job->source.size &&
	       !memcmp(now.data ? now.data : "", job->source.data ? job->source.data : "",
		       now.size);
}

static int compile(struct job *job, struct compile_result *ret, struct err *err)
{
	const char *const skip[] = { job->headers.duet, job->workspace.path, NULL };
	char base[PATH_MAX], object[PATH_MAX + 2], depfile[PATH_MAX + 2];
	int code;

	workspace_temporary(&job->workspace, base);
	snprintf(object, sizeof(object), "%s.o", base);
	snprintf(depfile, sizeof(depfile), "%s.d", base);
	code = run_with_header(job, object, depfile, &ret->diagnostics);
	if (code < 0)
		code = err_set(err, code, "%s: cannot be started: %s", job->compiler.path,
			       strerror(-code));
	else if (code > 0)
		code = explain(job, code, ret, err);
	else
		code = buf_read_file(&ret->object, object, err);
	if (!code && source_unchanged(job)) {
		entry_store(&job->workspace, &job->key, depfile, job->name, skip, ret);
		workspace_trim(&job->workspace);
	}
	unlink(object);
	unlink(depfile);
	return code;
}

static int load_or_compile(struct job *job, struct compile_result *ret, struct err *err)
{
	int code = workspace_open(&job->workspace, err);

	if (code || !entry_load(&job->workspace, &job->key, ret))
		return code;
	code = prepare(job, err);
	if (code == -ENOSPC || code == -EDQUOT)
		return err_set(err, code,
			       "cache folder %s: %s: make room, or set XDG_CACHE_HOME to another",
			       job->workspace.path, strerror(-code));
	return code ? code : compile(job, ret, err);
}

int compile_script(const struct compile_options *options, struct compile_result *ret,
		   struct err *err)
{
	CLEANUP(job_deinit)
	struct job job = { .options = options };
	sigset_t signals;
	int code;

	code = read_source(&job, err);
	if (!code)
		code = choose_arch(options, &job.arch, err);
	if (!code)
		code = headers_find(options, job.arch, &job.headers, err);
	if (code)
		return code;
	make_key(&job);
	process_hold_signals(&signals);
	code = load_or_compile(&job, ret, err);
	workspace_close(&job.workspace);
	if (!process_release_signals(&signals))
		return code;
	compile_result_deinit(ret);
	return err_set(err, -EINTR, "%s: interrupted while it was compiled", job.name);
}

int compile_write_object(const struct buf *object, const char *output, struct err *err)
{
	return write_by_rename(output, object->data, object->size, err);
}

int compile_cflags(const struct compile_options *options, struct buf *ret, struct err *err)
{
	CLEANUP(job_deinit)
	struct job job = { .options = options };
	size_t i;
	int code;

	code = choose_arch(options, &job.arch, err);
	if (!code)
		code = headers_find(options, job.arch, &job.headers, err);
	if (!code)
		code = workspace_open(&job.workspace, err);
	if (code)
		return code;
	if (job.workspace.temporary)
		return err_set(err, -EROFS,
			       "cflags: no cache folder can be written, so vmlinux.h has "
			       "no lasting place: set XDG_CACHE_HOME");
	code = prepare(&job, err);
	for (i = 0; i < job.flags.count && !code; i++)
		code = buf_printf(ret, "%s%s", i ? " " : "", job.flags.items[i]);
	return code;
}
