// SPDX-License-Identifier: BSD-2-Clause
/*
 * The headers that a script sees: duet's own, libbpf's bpf/ folder, the kernel's UAPI folders and
 * vmlinux.h. Not the rest of /usr/include, which clashes with vmlinux.h.
 */
#include "compile/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/cleanup.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

static bool is_folder_of(const char *folder, const char *file)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", folder, file) < (int)sizeof(path) &&
	       !access(path, R_OK);
}

/* Installed: ../share/duet/include beside the program. From the source tree: its own folder. */
static int find_duet(char folder[PATH_MAX], struct err *err)
{
	const char *chosen = getenv("DUET_INCLUDE");
	char program[PATH_MAX];
	ssize_t size;
	char *slash;

	if (chosen && *chosen) {
		if (!is_folder_of(chosen, "duet.h") || !realpath(chosen, folder))
			return err_set(err, -ENOENT,
				       "%s: no duet.h there: DUET_INCLUDE names the "
				       "folder: set it right or unset it",
				       chosen);
		return 0;
	}
	size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (size > 0) {
		program[size] = 0;
		slash = strrchr(program, '/');
		if (slash)
			*slash = 0;
		if (snprintf(folder, PATH_MAX, "%s/../share/duet/include", program) < PATH_MAX &&
		    is_folder_of(folder, "duet.h") && realpath(folder, program)) {
			strcpy(folder, program);
			return 0;
		}
	}
	snprintf(folder, PATH_MAX, "%s", DUET_SOURCE_DIR "/include");
	if (is_folder_of(folder, "duet.h"))
		return 0;
	return err_set(err, -ENOENT,
		       "duet.h: not found in ../share/duet/include beside the program: "
		       "set DUET_INCLUDE to its folder");
}

static int find_libbpf(const char *duet, char folder[PATH_MAX], struct err *err)
{
	static const char *const places[] = { "/usr/include/bpf", "/usr/local/include/bpf" };
	size_t i;

	if (snprintf(folder, PATH_MAX, "%s/bpf", duet) < PATH_MAX &&
	    is_folder_of(folder, "bpf_helpers.h"))
		return 0;
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(folder, PATH_MAX, "%s", places[i]);
		if (is_folder_of(folder, "bpf_helpers.h"))
			return 0;
	}
	return err_set(err, -ENOENT,
		       "bpf/bpf_helpers.h: not found: it comes with libbpf's headers: "
		       "apt-get install libbpf-dev");
}

static void hash_stamp(struct hash *hash, const char *path, const struct stat *status)
{
	hash_text(hash, path);
	hash_word(hash, status->st_size);
	hash_word(hash, status->st_mtim.tv_sec);
	hash_word(hash, status->st_mtim.tv_nsec);
}

static int only_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Adds every file below @folder, in order of name. @contents NULL: the times are enough. */
static int hash_folder(const char *folder, struct hash *contents, struct hash *stamp)
{
	struct dirent **entries;
	int count, i, code = 0;

	count = scandir(folder, &entries, only_visible, alphasort);
	if (count < 0)
		return -errno;
	for (i = 0; i < count; i++) {
		CLEANUP(buf_deinit)
		struct buf text = { 0 };
		char path[PATH_MAX];
		struct stat status;

		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (!code && !stat(path, &status)) {
			if (S_ISDIR(status.st_mode)) {
				code = hash_folder(path, contents, stamp);
			} else {
				hash_stamp(stamp, path, &status);
				hash_text(contents, entries[i]->d_name);
				code = buf_read_file(&text, path, NULL);
				hash_data(contents, text.data, text.size);
			}
		}
		free(entries[i]);
	}
	free(entries);
	return code;
}

/*
 * What names the kernel types. Of this machine's: the kernel's build id, a few bytes, instead of
 * 5 MB of BTF.
 */
static int hash_btf(const char *path, const char *arch, struct hash *ret, struct err *err)
{
	CLEANUP(buf_deinit)
	struct buf text = { 0 };
	struct utsname names = { 0 };
	struct stat status;
	int code;

	hash_text(ret, arch);
	if (path) {
		code = buf_read_file(&text, path, err);
		if (code)
			return err_hint(err, code,
					"--btf wants a BTF file: copy " KERNEL_BTF
					" of the target");
		hash_data(ret, text.data, text.size);
		return 0;
	}
	if (!compile_host_arch() || strcmp(arch, compile_host_arch()))
		return err_set(err, -ENOENT,
			       "--arch %s: no kernel types: this machine is another: "
			       "add --btf FILE, a copy of the target's " KERNEL_BTF,
			       arch);
	if (stat(KERNEL_BTF, &status))
		return err_set(err, -ENOENT,
			       KERNEL_BTF
			       ": not there: this kernel was built without "
			       "CONFIG_DEBUG_INFO_BTF: add --btf FILE with BTF of the same kernel");
	hash_word(ret, status.st_size);
	if (!buf_read_file(&text, "/sys/kernel/notes", NULL))
		hash_data(ret, text.data, text.size);
	uname(&names);
	hash_text(ret, names.release);
	hash_text(ret, names.version);
	return 0;
}

int headers_find(const struct compile_options *options, const char *arch, struct headers *ret,
		 struct err *err)
{
	int code;

	memset(ret, 0, sizeof(*ret));
	code = find_duet(ret->duet, err);
	if (code)
		return code;
	if (snprintf(ret->libc, sizeof(ret->libc), "%s/duet/libc", ret->duet) >= PATH_MAX)
		return err_set(err, -ENAMETOOLONG, "%s: the name is too long", ret->duet);
	code = find_libbpf(ret->duet, ret->libbpf_dir, err);
	if (code)
		return code;
	code = hash_btf(options->btf_path, arch, &ret->btf, err);
	if (code)
		return code;
	ret->contents = ret->btf;
	hash_text(&ret->contents, ret->duet);
	code = hash_folder(ret->duet, &ret->contents, &ret->stamp);
	if (!code)
		code = hash_folder(ret->libbpf_dir, &ret->contents, &ret->stamp);
	if (code)
		return err_set(err, code, "%s: cannot be read: %s", ret->duet, strerror(-code));
	hash_data(&ret->stamp, &ret->contents, sizeof(ret->contents));
	return 0;
}

/* Renames a finished folder into place; another process may have been first. */
static int put_folder(const char *temporary, const char *path)
{
	if (!rename(temporary, path))
		return 0;
	remove_tree(temporary);
	return access(path, R_OK) ? -EIO : 0;
}

static int make_vmlinux(const struct workspace *workspace, const struct compile_options *options,
			const char *path, struct err *err)
{
	char temporary[PATH_MAX], file[PATH_MAX + 16];
	int fd, code;

	workspace_temporary(workspace, temporary);
	if (mkdir(temporary, 0700))
		return err_set(err, -errno, "%s: %s", temporary, strerror(errno));
	snprintf(file, sizeof(file), "%s/vmlinux.h", temporary);
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	code = fd < 0 ? -errno : 0;
	if (fd >= 0) {
		code = options->write_vmlinux(options->context, options->btf_path, fd, err);
		if (close(fd) && !code)
			code = -errno;
		else if (code)
			err_prepend(err && err->text[0] ? err : NULL, code, "vmlinux.h");
	}
	if (!code && put_folder(temporary, path))
		code = -EIO;
	if (code) {
		remove_tree(temporary);
		if (err && !err->text[0])
			err_set(err, code, "%s/vmlinux.h: cannot be written: %s", path,
				strerror(-code));
	}
	return code;
}

/* <bpf/...>, <linux/...> and <asm/...> without the rest of /usr/include. */
static int make_links(const struct workspace *workspace, const char *arch,
		      const struct headers *headers, const char *path, struct err *err)
{
	bool arm64 = !strcmp(arch, "arm64");
	const char *const links[][2] = {
		{ "bpf", headers->libbpf_dir },
		{ "linux", "/usr/include/linux" },
		{ "asm-generic", "/usr/include/asm-generic" },
		{ "asm", arm64 ? "/usr/include/aarch64-linux-gnu/asm"
			       : "/usr/include/x86_64-linux-gnu/asm" },
		{ "asm", arm64 ? "/usr/aarch64-linux-gnu/include/asm" : "/usr/include/asm" },
	};
	char temporary[PATH_MAX], link[PATH_MAX + 16];
	size_t i;

	workspace_temporary(workspace, temporary);
	if (mkdir(temporary, 0700))
		return err_set(err, -errno, "%s: %s", temporary, strerror(errno));
	for (i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		snprintf(link, sizeof(link), "%s/%s", temporary, links[i][0]);
		if (!access(links[i][1], R_OK) && symlink(links[i][1], link) && errno != EEXIST) {
			err_set(err, -errno, "%s: %s", link, strerror(errno));
			remove_tree(temporary);
			return err->code;
		}
	}
	if (put_folder(temporary, path))
		return err_set(err, -EIO, "%s: cannot be made", path);
	return 0;
}

int headers_make(const struct workspace *workspace, const struct compile_options *options,
		 const char *arch, struct headers *headers, struct err *err)
{
	struct hash hash = { 0 };
	char name[HASH_TEXT_SIZE];
	int code = 0;

	hash_name(&headers->btf, name);
	snprintf(headers->vmlinux, PATH_MAX, "%s/btf-%s", workspace->path, name);
	if (access(headers->vmlinux, R_OK))
		code = make_vmlinux(workspace, options, headers->vmlinux, err);
	else
		workspace_touch(headers->vmlinux);
	if (code)
		return code;
	hash_text(&hash, headers->libbpf_dir);
	hash_text(&hash, arch);
	hash_name(&hash, name);
	snprintf(headers->bpf, PATH_MAX, "%s/include-%s", workspace->path, name);
	if (access(headers->bpf, R_OK))
		code = make_links(workspace, arch, headers, headers->bpf, err);
	else
		workspace_touch(headers->bpf);
	return code;
}

int headers_flags(const struct headers *headers, struct list *ret)
{
	const char *const folders[] = { headers->duet, headers->libc, headers->bpf,
					headers->vmlinux };
	size_t i;

	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (list_add(ret, "-isystem") || list_add(ret, folders[i]))
			return -ENOMEM;
	}
	return 0;
}
