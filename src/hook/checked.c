// SPDX-License-Identifier: BSD-2-Clause
#include "hook/checked.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"

/* ---- regions ----------------------------------------------------------------------------------- */

static int add(struct hook_half *half, const void *address, size_t size, unsigned int flags,
	       struct err *err)
{
	int code = size ? vm_region_add(half->vm, address, size, flags) : 0;

	return code == -ENOMEM ? err_nomem(err) : 0;
}

static int add_streams(struct hook_half *half, struct err *err)
{
	const void *const variables[] = { &half->text, &stdin, &stderr };
	size_t i;
	int code = add(half, &errno, sizeof(errno), VM_REGION_WRITABLE, err);

	for (i = 0; i < sizeof(variables) / sizeof(variables[0]) && !code; i++)
		code = add(half, variables[i], sizeof(FILE *), 0, err);
	return code;
}

int hook_regions_open(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	size_t i;
	int code = 0;

	if (!half->options.checked || !half->vm)
		return 0;
	/* Constants can still be changed: by user/open. */
	for (i = 0; i < user->ndata && !code; i++)
		code = add(half, half->data[i], user->data[i].size, VM_REGION_WRITABLE, err);
	return code ? code : add_streams(half, err);
}

int hook_regions_connect(struct hook_half *half, struct err *err)
{
	const struct user_half *user = half->options.user;
	size_t i;
	int code = 0;

	if (!half->options.checked || !half->vm)
		return 0;
	for (i = 0; i < user->ndata && !code; i++) {
		if (!user->data[i].readonly || !user->data[i].size)
			continue;
		vm_region_remove(half->vm, half->data[i]);
		code = add(half, half->data[i], user->data[i].size, 0, err);
	}
	for (i = 0; i < user->nmaps && !code; i++) {
		const struct hook_map *map = &half->maps[i];

		if (map->memory)
			code = add(half, map->memory, (size_t)map->stride * map->info.max_entries,
				   VM_REGION_WRITABLE, err);
	}
	return code;
}

int hook_regions_begin(struct hook_half *half, const void *argument, uint64_t size, struct err *err)
{
	if (!half->options.checked || !argument)
		return 0;
	half->argument = argument;
	return add(half, argument, size, 0, err);
}

void hook_regions_end(struct hook_half *half)
{
	if (!half->options.checked)
		return;
	if (half->argument)
		vm_region_remove(half->vm, half->argument);
	half->argument = NULL;
	vm_region_clear(half->vm, half->snapshots.readable, half->snapshots.size);
}

void hook_lend_copy(struct hook_half *half, const void *copy, size_t size)
{
	if (vm_region_add(half->vm, copy, size, 0) == -ENOMEM)
		vm_raise(half->vm, "out of memory");
}

/* ---- what functions need --------------------------------------------------------------------- */

void hook_need(struct hook_half *half, uint64_t address, size_t size, bool write)
{
	if (!(write ? vm_may_write(half->vm, address, size) : vm_may_read(half->vm, address, size)))
		vm_raise_argument(half->vm, address, size, write);
}

void hook_need_string(struct hook_half *half, uint64_t address)
{
	if (!vm_may_read_string(half->vm, address))
		vm_raise_string(half->vm, address);
}

void hook_need_text(struct hook_half *half, uint64_t address, size_t limit)
{
	if (limit && vm_region_rest(half->vm, address, false) < limit)
		hook_need_string(half, address);
}

FILE *hook_need_file(struct hook_half *half, uint64_t file)
{
	FILE *stream = (FILE *)file;
	size_t i;

	if (!half->options.checked || stream == half->text || stream == stderr || stream == stdin)
		return stream;
	for (i = 0; i < half->nfiles; i++)
		if (half->files[i] == stream)
			return stream;
	vm_raise(half->vm, "the stream is none that the script opened");
}

/* Other descriptors can be memory: /proc/self/mem, duet's own maps. */
void hook_need_descriptor(struct hook_half *half, int fd)
{
	if (half->options.checked && fd != STDOUT_FILENO && fd != STDERR_FILENO)
		vm_raise(half->vm, "in checked mode scripts may write to descriptors 1 and 2 only");
}

/* One conversion of a format: from behind the '%' to its letter. */
struct conversion {
	char letter;
	bool sized;            /* %ls */
	bool width, precision; /* given by a value */
	int64_t limit;         /* precision as written, -1: none */
};

static size_t size_of(const char *at)
{
	static const char *const sizes[] = { "hh", "ll", "h", "l", "q", "j", "z", "t" };
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (!strncmp(at, sizes[i], strlen(sizes[i])))
			return strlen(sizes[i]);
	return 0;
}

/* What the C library does not know, it skips or prints: then values would be others than those
 * that are looked at. Arguments by number (%1$s) too. */
static void refuse_format(struct hook_half *half, const char *at)
{
	char text[80];

	snprintf(text, sizeof(text), "printf: `%.20s` does not exist in checked mode", at);
	vm_raise(half->vm, text);
}

static const char *read_conversion(const char *at, struct conversion *ret)
{
	*ret = (struct conversion){ .limit = -1 };
	at += strspn(at, "#0- +'I");
	if (*at == '*') {
		ret->width = true;
		at++;
	}
	at += strspn(at, "0123456789");
	if (*at == '.') {
		ret->limit = strtol(at + 1, NULL, 10);
		at++;
		ret->precision = *at == '*';
		at += ret->precision ? 1 : strspn(at, "-0123456789");
	}
	ret->sized = size_of(at);
	at += size_of(at);
	ret->letter = *at;
	return *at ? at + 1 : at;
}

static uint64_t value_at(const uint64_t *values, size_t count, size_t i)
{
	return i < count ? values[i] : 0;
}

/* A text that would be written over while it is read. */
static void need_apart(struct hook_half *half, const char *buf, size_t size, const char *text,
		       size_t length)
{
	uintptr_t to = (uintptr_t)buf, from = (uintptr_t)text;

	if (from - to < size || (size && to - from <= length))
		vm_raise(half->vm, "printf: a text lies in the buffer that is written");
}

void hook_need_values(struct hook_half *half, const char *buf, size_t size, const char *format,
		      const uint64_t *values, size_t count)
{
	struct conversion conversion;
	size_t next = 0;

	if (!half->options.checked)
		return;
	need_apart(half, buf, size, format, strlen(format));
	while ((format = strchr(format, '%'))) {
		const char *start = format;
		uint64_t value;

		format = read_conversion(format + 1, &conversion);
		if (!conversion.letter || !strchr("diouxXeEfFgGaAcpsm%", conversion.letter) ||
		    (conversion.letter == 's' && conversion.sized))
			refuse_format(half, start);
		next += conversion.width;
		if (conversion.precision)
			conversion.limit = (int32_t)value_at(values, count, next++);
		if (conversion.letter == '%' || conversion.letter == 'm')
			continue;
		value = value_at(values, count, next++);
		if (next > HOOK_MAX_VALUES)
			refuse_format(half, start);
		if (conversion.letter != 's' || !value) /* NULL is printed as (null) */
			continue;
		if (conversion.limit >= 0)
			hook_need_text(half, value, conversion.limit);
		else
			hook_need_string(half, value);
		need_apart(half, buf, size, (const char *)value,
			   strnlen((const char *)value,
				   conversion.limit >= 0 ? (size_t)conversion.limit : SIZE_MAX));
	}
}

/* ---- stand-ins for the C library ---------------------------------------------------------------- */

/* Memory of the C library that stays where it is. */
static uint64_t lend(struct hook_half *half, const void *memory, size_t size, unsigned int flags)
{
	if (memory && vm_region_add(half->vm, memory, size, flags) == -ENOMEM)
		return 0;
	return (uintptr_t)memory;
}

/* Texts that the C library may free at its next call: kept here, until ours. */
static uint64_t lend_text(struct hook_half *half, const char *text)
{
	snprintf(half->lent, sizeof(half->lent), "%s", text ? text : "");
	return lend(half, half->lent, sizeof(half->lent), 0);
}

NATIVE(fn_getenv)
{
	const char *value = getenv((const char *)a1);

	return value ? lend(context, value, strlen(value) + 1, 0) : 0;
}

NATIVE(fn_strerror)
{
	return lend_text(context, strerror((int)a1));
}

NATIVE(fn_strsignal)
{
	return lend_text(context, strsignal((int)a1));
}

NATIVE(fn_localtime)
{
	return lend(context, localtime((const time_t *)a1), sizeof(struct tm), VM_REGION_WRITABLE);
}

NATIVE(fn_gmtime)
{
	return lend(context, gmtime((const time_t *)a1), sizeof(struct tm), VM_REGION_WRITABLE);
}

/* tm_zone is a pointer: the script's own text, or one that the C library put there. */
static const char *zone_of(struct hook_half *half, const struct tm *tm)
{
	static const time_t epoch;
	struct tm utc;

	if (!tm->tm_zone || tm->tm_zone == tzname[0] || tm->tm_zone == tzname[1] ||
	    tm->tm_zone == gmtime_r(&epoch, &utc)->tm_zone)
		return tm->tm_zone;
	return vm_may_read_string(half->vm, (uintptr_t)tm->tm_zone) ? tm->tm_zone : NULL;
}

NATIVE(fn_strftime)
{
	struct tm tm = *(const struct tm *)a4;

	tm.tm_zone = zone_of(context, &tm);
	return strftime((char *)a1, a2, (const char *)a3, &tm);
}

/* Reading only: a file can be a way to any memory (/proc/self/mem). */
NATIVE(fn_fopen)
{
	struct hook_half *half = context;
	const char *mode = (const char *)a2;
	FILE *file, **slot;

	if (strchr(mode, '+') || mode[0] != 'r')
		vm_raise(half->vm, "fopen(): in checked mode files can be opened for reading only");
	file = fopen((const char *)a1, "re");
	slot = file ? array_grow(&half->files, &half->nfiles, &half->files_capacity, sizeof(*slot))
		    : NULL;
	if (file && !slot) {
		fclose(file);
		return 0;
	}
	if (slot)
		*slot = file;
	return (uintptr_t)file;
}

NATIVE(fn_fclose)
{
	struct hook_half *half = context;
	FILE *file = hook_need_file(half, a1);
	size_t i;

	for (i = 0; i < half->nfiles; i++) {
		if (half->files[i] != file)
			continue;
		half->files[i] = half->files[--half->nfiles];
		RETURN_ERROR(fclose(file));
	}
	vm_raise(half->vm, "fclose() of a stream that fopen() did not return");
}

NATIVE(fn_fgets)
{
	int size = (int)a2;

	hook_need(context, a1, size > 0 ? size : 0, true);
	return (uintptr_t)fgets((char *)a1, size, hook_need_file(context, a3));
}

NATIVE(fn_fgetc)
{
	RETURN_ERROR(fgetc(hook_need_file(context, a1)));
}

NATIVE(fn_fread)
{
	return fread((void *)a1, a2, a3, hook_need_file(context, a4));
}

NATIVE(fn_fwrite)
{
	return fwrite((const void *)a1, a2, a3, hook_need_file(context, a4));
}

NATIVE(fn_write)
{
	struct hook_half *half = context;

	hook_need_descriptor(half, (int)a1);
	return write((int)a1, (const void *)a2, a3);
}

NATIVE(fn_fputs)
{
	RETURN_ERROR(fputs((const char *)a1, hook_need_file(context, a2)));
}

NATIVE(fn_fputc)
{
	RETURN_ERROR(fputc((int)a1, hook_need_file(context, a2)));
}

NATIVE(fn_fflush)
{
	RETURN_ERROR(fflush(a1 ? hook_need_file(context, a1) : NULL));
}

NATIVE(fn_feof)
{
	return feof(hook_need_file(context, a1));
}

NATIVE(fn_ferror)
{
	return ferror(hook_need_file(context, a1));
}

void hook_regions_close(struct hook_half *half)
{
	size_t i;

	for (i = 0; i < half->nfiles && !half->dead; i++)
		fclose(half->files[i]);
	free(half->files);
}

static const struct vm_contract time_in = { .args = { { VM_READ, .bytes = sizeof(time_t) } } };
static const struct vm_contract bytes_in = { .args = { { VM_ANY }, { VM_READ, .count = 3 } } };
static const struct vm_contract elements_in = { .args = { { VM_READ, .count = 2, .times = 3 } } };
static const struct vm_contract elements_out = { .args = { { VM_WRITE, .count = 2, .times = 3 } } };
static const struct vm_contract formats_time = { .args = { { VM_WRITE, .count = 2 },
							   { VM_ANY },
							   { VM_STRING },
							   { VM_READ,
							     .bytes = sizeof(struct tm) } } };

const struct hook_function hook_functions_checked[] = {
	{ "getenv", fn_getenv, &hook_contract_text },
	{ "strerror", fn_strerror, &hook_contract_none },
	{ "strsignal", fn_strsignal, &hook_contract_none },
	{ "localtime", fn_localtime, &time_in },
	{ "gmtime", fn_gmtime, &time_in },
	{ "strftime", fn_strftime, &formats_time },
	{ "fopen", fn_fopen, &hook_contract_two_texts },
	{ "fclose", fn_fclose, &hook_contract_none },
	{ "fgets", fn_fgets, &hook_contract_none },
	{ "fgetc", fn_fgetc, &hook_contract_none },
	{ "fread", fn_fread, &elements_out },
	{ "fwrite", fn_fwrite, &elements_in },
	{ "write", fn_write, &bytes_in },
	{ "fputs", fn_fputs, &hook_contract_text },
	{ "fputc", fn_fputc, &hook_contract_none },
	{ "fflush", fn_fflush, &hook_contract_none },
	{ "feof", fn_feof, &hook_contract_none },
	{ "ferror", fn_ferror, &hook_contract_none },
	{ NULL },
};
