// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/buf.h"
#include "sym/sym.h"

/* A directory for files that a test makes. */
static int setup(void **state)
{
	static char directory[64];

	strcpy(directory, "/tmp/duet-sym-test-XXXXXX");
	*state = mkdtemp(directory);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", (char *)*state);
	return system(command);
}

static const char *write_file(void **state, const char *name, const void *data, size_t size)
{
	static char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", (char *)*state, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
	return path;
}

static const char kallsyms[] = "0000000000000000 A fixed_percpu_data\n"
			       "ffffffff81000000 t _stext_local\n"
			       "ffffffff81000000 T _stext\n"
			       "ffffffff81000100 t twin\n"
			       "ffffffff81000300 T vfs_read\n"
			       "not a line\n"
			       "ffffffff81000200 t twin\n"
			       "ffffffff81000300 d data_at_code\n"
			       "ffffffffc0000000 t nf_hook\t[nf_tables]\n"
			       "ffffffffc0000010 t bpf_prog_12 [bpf]";

static void kernel_symbols_of_a_file(void **state)
{
	const char *path = write_file(state, "kallsyms", kallsyms, sizeof(kallsyms) - 1);
	CLEANUP(sym_kernel_close_cleanup)
	struct sym_kernel *kernel = NULL;
	const struct sym_kernel_symbol *symbol;
	struct sym_place place;
	char text[128];

	assert_int_equal(sym_kernel_open(path, &kernel, NULL), 0);
	assert_int_equal(sym_kernel_count(kernel), 9);
	assert_false(sym_kernel_hidden(kernel));
	assert_int_equal(sym_kernel_find_address(kernel, 0xffffffff81000305, &place), 0);
	assert_string_equal(place.name, "vfs_read");
	assert_string_equal(sym_place_text(&place, text, sizeof(text)), "vfs_read+0x5");
	assert_int_equal(sym_kernel_find_address(kernel, 0xffffffff81000000, &place), 0);
	assert_string_equal(sym_place_text(&place, text, sizeof(text)), "_stext");
	assert_int_equal(sym_kernel_find_address(kernel, 0xffffffffc000000f, &place), 0);
	assert_string_equal(sym_place_text(&place, text, sizeof(text)), "nf_hook+0xf [nf_tables]");
	assert_int_equal(sym_kernel_find_address(kernel, ~0ULL, &place), 0);
	assert_string_equal(place.name, "bpf_prog_12");
	assert_string_equal(place.module, "bpf");
	assert_int_equal(sym_kernel_find_address(kernel, 0x400000, &place), -ENOENT);
	assert_int_equal(sym_kernel_find_name(kernel, "twin", &symbol), 2);
	assert_int_equal(symbol->address, 0xffffffff81000100);
	assert_int_equal(sym_kernel_find_name(kernel, "nf_hook", &symbol), 1);
	assert_string_equal(symbol->module, "nf_tables");
	assert_int_equal(sym_kernel_find_name(kernel, "twi", NULL), 0);
	assert_int_equal(sym_kernel_find_name(kernel, "", NULL), 0);
}

static void hidden_and_missing_kernel_symbols(void **state)
{
	static const char hidden[] = "0000000000000000 T a\n0000000000000000 T b\n";
	const char *path = write_file(state, "hidden", hidden, sizeof(hidden) - 1);
	struct sym_kernel *kernel;
	struct sym_place place;
	struct err err = { 0 };

	assert_int_equal(sym_kernel_open(path, &kernel, NULL), 0);
	assert_true(sym_kernel_hidden(kernel));
	assert_int_equal(sym_kernel_find_address(kernel, 0xffffffff81000000, &place), -ENOENT);
	assert_int_equal(sym_kernel_find_name(kernel, "b", NULL), 1);
	sym_kernel_close(kernel);
	assert_int_equal(sym_kernel_open("/no/such/file", &kernel, NULL), 0);
	assert_int_equal(sym_kernel_load(kernel, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/no/such/file"));
	assert_int_equal(sym_kernel_count(kernel), 0);
	assert_int_equal(sym_kernel_find_name(kernel, "b", NULL), 0);
	assert_int_equal(sym_kernel_find_address(kernel, 1, &place), -ENOENT);
	sym_kernel_close(kernel);
}

/* Every address of the real list finds a symbol at itself. */
static void kernel_symbols_of_this_machine(void **state)
{
	CLEANUP(sym_kernel_close_cleanup)
	struct sym_kernel *kernel = NULL;
	const struct sym_kernel_symbol *symbol;
	struct sym_place place;
	size_t i, count;

	assert_int_equal(sym_kernel_open(NULL, &kernel, NULL), 0);
	count = sym_kernel_count(kernel);
	assert_true(count > 10000);
	assert_true(sym_kernel_find_name(kernel, "vfs_read", &symbol) >= 1);
	if (sym_kernel_hidden(kernel)) {
		print_message("addresses are hidden here\n");
		return;
	}
	for (i = 0; i < count; i++) {
		symbol = sym_kernel_at(kernel, i);
		if (symbol->address < 1ULL << 32)
			continue;
		assert_int_equal(sym_kernel_find_address(kernel, symbol->address, &place), 0);
		assert_int_equal(place.offset, 0);
	}
}

/* ---- files ------------------------------------------------------------------------------------ */

static const char source[] =
	"int counter = 3;\n"
	"static int hidden(int x) { return x * counter; }\n"
	"__attribute__((noinline)) int exported(int x) { return hidden(x) + 1; }\n"
	"int (*use)(int) = hidden;\n";

/* Compiles @source to a shared library in the test's directory. */
static const char *compile(void **state, const char *name, const char *flags)
{
	static char path[256];
	char command[1024];

	write_file(state, "source.c", source, sizeof(source) - 1);
	snprintf(path, sizeof(path), "%s/%s", (char *)*state, name);
	snprintf(command, sizeof(command), "gcc -O1 -g0 -shared -fPIC %s -o '%s' '%s/source.c'",
		 flags, path, (char *)*state);
	assert_int_equal(system(command), 0);
	return path;
}

static void file_has_its_symbols(void **state)
{
	CLEANUP(sym_file_close_cleanup)
	struct sym_file *file = NULL;
	const struct sym_file_symbol *hidden, *exported, *counter;
	uint64_t offset, address;
	size_t i, times = 0;

	assert_int_equal(sym_file_open(compile(state, "full.so", ""), &file, NULL), 0);
	hidden = sym_file_find_name(file, "hidden");
	exported = sym_file_find_name(file, "exported");
	counter = sym_file_find_name(file, "counter");
	assert_non_null(hidden);
	assert_non_null(exported);
	assert_non_null(counter);
	assert_true(exported->exported && exported->function);
	assert_true(hidden->function && !hidden->exported);
	assert_true(!counter->function && counter->exported);
	assert_int_equal(counter->size, 4);
	assert_null(sym_file_find_name(file, "no_such"));
	assert_ptr_equal(sym_file_find_address(file, exported->address), exported);
	assert_ptr_equal(sym_file_find_address(file, exported->address + exported->size - 1),
			 exported);
	assert_ptr_equal(sym_file_find_address(file, counter->address + 3), counter);
	assert_null(sym_file_find_address(file, 1ULL << 60));
	/* Offsets and addresses, there and back. */
	assert_int_equal(sym_file_offset_of(file, exported->address, &offset), 0);
	assert_int_equal(sym_file_address_of(file, offset, &address), 0);
	assert_int_equal(address, exported->address);
	assert_int_equal(sym_file_offset_of(file, 1ULL << 60, &offset), -ENOENT);
	for (i = 0; i < sym_file_count(file); i++) {
		times += !strcmp(sym_file_at(file, i)->name, "exported");
		if (i)
			assert_true(sym_file_at(file, i - 1)->address <=
				    sym_file_at(file, i)->address);
	}
	assert_int_equal(times, 1); /* although symtab and dynsym hold it */
}

static void stripped_file_keeps_the_dynamic_ones(void **state)
{
	CLEANUP(sym_file_close_cleanup)
	struct sym_file *file = NULL;

	assert_int_equal(sym_file_open(compile(state, "stripped.so", "-s"), &file, NULL), 0);
	assert_non_null(sym_file_find_name(file, "exported"));
	assert_null(sym_file_find_name(file, "hidden"));
}

static void wrong_files_are_refused(void **state)
{
	struct sym_file *file;
	struct err err = { 0 };

	assert_int_equal(sym_file_open("/no/such/file", &file, &err), -ENOENT);
	assert_int_equal(sym_file_open("/etc/passwd", &file, &err), -ENOEXEC);
	assert_string_equal(err.text, "/etc/passwd: no ELF file");
	assert_true(sym_file_open("/tmp", &file, &err) < 0);
	assert_int_equal(sym_file_open("/dev/null", &file, &err), -ENOEXEC);
}

/* Cut at each 64 bytes, each header byte flipped: symbols, or a refusal, and nothing else. */
static void damaged_files_never_crash(void **state)
{
	CLEANUP(buf_deinit)
	struct buf whole = { 0 };
	size_t at, good = 0;

	assert_int_equal(buf_read_file(&whole, compile(state, "damaged.so", ""), NULL), 0);
	for (at = 0; at < whole.size; at += 64) {
		struct sym_file *file = NULL;

		if (!sym_file_open(write_file(state, "cut", whole.data, at), &file, NULL))
			good++;
		sym_file_close(file);
	}
	/* ELF header, program headers, and the section headers at the end. */
	for (at = 0; at < whole.size; at += at < 1024 || at > whole.size - 2048 ? 1 : 61) {
		struct sym_file *file = NULL;
		uint64_t address;

		whole.data[at] ^= 0xa5;
		if (!sym_file_open(write_file(state, "flipped", whole.data, whole.size), &file,
				   NULL)) {
			good++;
			sym_file_find_name(file, "exported");
			sym_file_find_address(file, 0x1100);
			sym_file_address_of(file, 0x1100, &address);
		}
		sym_file_close(file);
		whole.data[at] ^= 0xa5;
	}
	assert_true(good > 100);
}

/* ---- processes ---------------------------------------------------------------------------------- */

/* Found by the test in its own memory. */
__attribute__((noinline, used)) int sym_test_landmark(int x);
int sym_test_landmark(int x)
{
	return x + 1;
}

static void own_addresses_have_names(void **state)
{
	CLEANUP(sym_close_cleanup)
	struct sym *sym = NULL;
	struct sym_place place;
	void *anonymous;

	assert_int_equal(sym_open(&sym, NULL), 0);
	assert_int_equal(sym_process_find(sym, getpid(), (uint64_t)sym_test_landmark + 1, &place),
			 0);
	assert_string_equal(place.name, "sym_test_landmark");
	assert_int_equal(place.offset, 1);
	assert_non_null(strstr(place.module, "sym_test"));
	assert_int_equal(sym_process_find(sym, getpid(), (uint64_t)strtoull, &place), 0);
	assert_non_null(strstr(place.module, "libc"));
	assert_non_null(place.name);
	/* Mapped after the maps were read. */
	anonymous = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_int_equal(sym_process_find(sym, getpid(), (uint64_t)anonymous, &place), 0);
	munmap(anonymous, 4096);
	assert_int_equal(sym_process_find(sym, getpid(), 16, &place), -ENOENT);
	assert_int_equal(sym_process_find(sym, 0x3fffffff, 16, &place), -ESRCH);
	sym_process_forget(sym, getpid());
	sym_process_forget(sym, getpid());
	assert_int_equal(sym_process_find(sym, getpid(), (uint64_t)sym_test_landmark, &place), 0);
	assert_string_equal(place.name, "sym_test_landmark");
}

/* What was noted while it lived has names after its end, its program's file deleted or not. */
static void ended_process_keeps_its_names(void **state)
{
	CLEANUP(sym_close_cleanup)
	struct sym *sym = NULL;
	struct sym_place place;
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(sym_open(&sym, NULL), 0);
	assert_int_equal(sym_process_note(sym, pid), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(sym_process_find(sym, pid, (uint64_t)sym_test_landmark, &place), 0);
	assert_string_equal(place.name, "sym_test_landmark");
	assert_int_equal(sym_process_find(sym, pid, 16, &place), -ENOENT);
	assert_int_equal(sym_process_find(sym, pid, (uint64_t)sym_test_landmark, &place), 0);
	sym_process_forget(sym, pid);
	assert_int_equal(sym_process_find(sym, pid, (uint64_t)sym_test_landmark, &place), -ESRCH);
}

static void deleted_library_is_still_read(void **state)
{
	CLEANUP(sym_close_cleanup)
	struct sym *sym = NULL;
	const char *path = compile(state, "deleted.so", "");
	struct sym_file *file;
	const struct sym_file_symbol *symbol;
	struct sym_place place;
	uint64_t offset;
	char *mapped;
	int fd;

	assert_int_equal(sym_file_open(path, &file, NULL), 0);
	symbol = sym_file_find_name(file, "hidden");
	assert_int_equal(sym_file_offset_of(file, symbol->address, &offset), 0);
	fd = open(path, O_RDONLY);
	mapped = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	unlink(path);
	assert_int_equal(sym_open(&sym, NULL), 0);
	assert_int_equal(sym_process_find(sym, getpid(), (uint64_t)mapped + offset, &place), 0);
	assert_non_null(strstr(place.module, "deleted.so (deleted)"));
	if (geteuid() == 0) /* map_files is for the privileged */
		assert_string_equal(place.name, "hidden");
	munmap(mapped, 65536);
	sym_file_close(file);
}

static void cgroup_ids_have_paths(void **state)
{
	CLEANUP(sym_close_cleanup)
	struct sym *sym = NULL;
	char mount[256], path[320], below[400], other[400];
	struct err err = { 0 };
	struct sym_cgroup_place place = { 0 };
	const char *id = "0123456789abcdef0123456789abcdef";

	assert_int_equal(sym_open(&sym, NULL), 0);
	if (sym_cgroup_mount(mount, sizeof(mount))) {
		assert_null(sym_cgroup_path(sym, 1));
		return;
	}
	assert_int_equal(sym_cgroup_find("/", &place, NULL), 0);
	assert_int_equal(place.level, 0);
	assert_string_equal(place.controller, "");
	assert_string_equal(sym_cgroup_path(sym, place.id), "/");
	assert_null(sym_cgroup_path(sym, 0x123456789abc));
	assert_int_equal(sym_cgroup_find("/no/such", &place, &err), -ENOENT);
	assert_non_null(strstr(err.text, mount));
	assert_int_equal(sym_cgroup_find("cgroup.procs", &place, &err), -ENOTDIR);
	assert_int_equal(sym_cgroup_find("", &place, &err), -EINVAL);
	snprintf(path, sizeof(path), "%s/duet-sym-test-%d", mount, getpid());
	if (mkdir(path, 0755)) {
		print_message("no cgroup can be made here\n");
		return;
	}
	assert_int_equal(sym_cgroup_find(path + strlen(mount), &place, NULL), 0);
	assert_int_equal(place.level, 1);
	assert_string_equal(place.path, path);
	assert_string_equal(sym_cgroup_path(sym, place.id), path + strlen(mount));
	assert_int_equal(sym_cgroup_find(path, &place, NULL), 0); /* whole */
	/* By a container's id, whole or its first digits; two with the same ones are told. */
	snprintf(below, sizeof(below), "%s/docker-%s.scope", path, id);
	assert_int_equal(mkdir(below, 0755), 0);
	assert_int_equal(sym_cgroup_find(id, &place, NULL), 0);
	assert_string_equal(place.path, below);
	assert_int_equal(place.level, 2);
	assert_int_equal(sym_cgroup_find("0123456789ab", &place, NULL), 0);
	assert_int_equal(sym_cgroup_find("123456789abc", &place, NULL), -ENOENT);
	assert_int_equal(sym_cgroup_find("0123456789a", &place, NULL), -ENOENT);
	snprintf(other, sizeof(other), "%s/0123456789abcc", path);
	assert_int_equal(mkdir(other, 0755), 0);
	assert_int_equal(sym_cgroup_find("0123456789ab", &place, &err), -ENOTUNIQ);
	assert_non_null(strstr(err.text, "more digits"));
	assert_int_equal(sym_cgroup_find("0123456789abcd", &place, NULL), 0);
	rmdir(other);
	rmdir(below);
	rmdir(path);
	assert_string_equal(sym_cgroup_path(sym, place.id) ?: "gone", "gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_symbols_of_a_file),
		cmocka_unit_test(hidden_and_missing_kernel_symbols),
		cmocka_unit_test(kernel_symbols_of_this_machine),
		cmocka_unit_test(file_has_its_symbols),
		cmocka_unit_test(stripped_file_keeps_the_dynamic_ones),
		cmocka_unit_test(wrong_files_are_refused),
		cmocka_unit_test(damaged_files_never_crash),
		cmocka_unit_test(own_addresses_have_names),
		cmocka_unit_test(ended_process_keeps_its_names),
		cmocka_unit_test(deleted_library_is_still_read),
		cmocka_unit_test(cgroup_ids_have_paths),
	};

	return cmocka_run_group_tests_name("sym", tests, setup, teardown);
}
