// SPDX-License-Identifier: BSD-2-Clause
/*
 * The script's text output. Its `stdout` is a stream of our own: what is written there goes
 * through the report, so that it comes in order with tables and fits the format in use.
 */
#include "hook/checked.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

static ssize_t write_text(void *cookie, const char *data, size_t size)
{
	struct hook_half *half = cookie;

	return report_text(half->options.report, data, size) < 0 ? 0 : (ssize_t)size;
}

int hook_open_text(struct hook_half *half, struct err *err)
{
	cookie_io_functions_t functions = { .write = write_text };

	half->text = fopencookie(half, "w", functions);
	if (!half->text)
		return err_nomem(err);
	setvbuf(half->text, NULL, _IOFBF, 65536);
	return 0;
}

void hook_close_text(struct hook_half *half)
{
	/* After a fault inside the C library the stream's lock may be held for ever. */
	if (half->text && !half->dead)
		fclose(half->text);
}

void hook_flush_text(struct hook_half *half)
{
	/* Asked after every hook: fflush() would take the lock and more, for nothing. */
	if (half->text && __fpending(half->text))
		fflush(half->text);
}

/*
 * A va_list whose register areas are used up: every value, integer or double, is then taken from
 * 8-byte slots in memory (System V AMD64 ABI 3.5.7, AAPCS64 appendix B).
 */
static void values_as_arguments(va_list *args, const uint64_t *values)
{
#if defined(__x86_64__)
	(*args)[0].gp_offset = 48;
	(*args)[0].fp_offset = 176;
	(*args)[0].overflow_arg_area = (void *)values;
	(*args)[0].reg_save_area = NULL;
#elif defined(__aarch64__)
	*args = (va_list){ .__stack = (void *)values, .__gr_offs = 0, .__vr_offs = 0 };
#else
#error "tell here how a va_list over memory looks on this architecture"
#endif
}

/* long double is read as 16 bytes: no script can pass one. */
static bool has_long_double(const char *format)
{
	const char *at = format;

	while ((at = strchr(at, '%'))) {
		at++;
		at += strspn(at, "#0- +'123456789.*");
		if (*at == 'L')
			return true;
		if (*at)
			at++;
	}
	return false;
}

/*
 * Nothing of the C library is locked while it reads the script's pointers, so a fault there is
 * harmless. What @values point to is checked here, @format and @values themselves are not.
 */
int hook_format(struct hook_half *half, char *buf, size_t size, const char *format,
		const uint64_t *values, size_t count)
{
	uint64_t slots[HOOK_MAX_VALUES] = { 0 };
	va_list args;

	if (has_long_double(format))
		vm_raise(half->vm, "printf: %L (long double) does not exist in scripts");
	if (count > HOOK_MAX_VALUES)
		count = HOOK_MAX_VALUES;
	if (count)
		memcpy(slots, values, count * sizeof(*slots));
	hook_need_values(half, buf, size, format, slots, count);
	values_as_arguments(&args, slots);
	return vsnprintf(buf, size, format, args);
}

static int print_to(struct hook_half *half, FILE *file, const char *format, const uint64_t *values,
		    size_t count)
{
	char small[512], *text = small;
	int size = hook_format(half, small, sizeof(small), format, values, count);

	if (size < 0)
		return size;
	if ((size_t)size >= sizeof(small)) {
		/* From the script's heap: it goes with the half, whatever happens. */
		text = hook_heap_alloc(half->heap, (size_t)size + 1);
		if (!text)
			return -ENOMEM;
		hook_format(half, text, (size_t)size + 1, format, values, count);
	}
	if (fwrite(text, 1, size, file) != (size_t)size)
		size = -1;
	if (text != small)
		hook_heap_free(half->heap, text);
	return size;
}

int hook_print(struct hook_half *half, const char *format, const uint64_t *values, size_t count)
{
	return print_to(half, half->text, format, values, count);
}

/* The values that a script's macro packed. */
static const uint64_t *packed(struct hook_half *half, uint64_t address, uint32_t count)
{
	hook_need(half, address, (size_t)count * sizeof(uint64_t), false);
	return (const uint64_t *)address;
}

NATIVE(fn_printf_n)
{
	struct hook_half *half = context;

	RETURN_ERROR(print_to(half, half->text, (const char *)a1, packed(half, a2, a3), a3));
}

NATIVE(fn_fprintf_n)
{
	struct hook_half *half = context;
	FILE *file = hook_need_file(half, a1);
	int size;

	/* stderr is unbuffered and not ours: keep the order on a terminal. */
	if (file == stderr)
		hook_flush_text(half);
	size = print_to(half, file, (const char *)a2, packed(half, a3, a4), (uint32_t)a4);
	RETURN_ERROR(size);
}

NATIVE(fn_dprintf_n)
{
	struct hook_half *half = context;
	char text[4096];
	int size;

	hook_need_descriptor(half, (int)a1);
	size = hook_format(half, text, sizeof(text), (const char *)a2, packed(half, a3, a4),
			   (uint32_t)a4);
	if (size > 0)
		size = write((int)a1, text,
			     (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1);
	RETURN_ERROR(size);
}

NATIVE(fn_snprintf_n)
{
	hook_need(context, a1, a2, true);
	RETURN_ERROR(hook_format(context, (char *)a1, a2, (const char *)a3, packed(context, a4, a5),
				 (uint32_t)a5));
}

/* Called as variadic functions, with what fits into five registers. */
NATIVE(fn_printf)
{
	uint64_t values[] = { a2, a3, a4, a5 };
	struct hook_half *half = context;

	RETURN_ERROR(print_to(half, half->text, (const char *)a1, values, 4));
}

NATIVE(fn_fprintf)
{
	uint64_t values[] = { a3, a4, a5 };

	RETURN_ERROR(print_to(context, hook_need_file(context, a1), (const char *)a2, values, 3));
}

NATIVE(fn_sprintf)
{
	uint64_t values[] = { a3, a4, a5 };
	struct hook_half *half = context;
	size_t room = vm_region_rest(half->vm, a1, true);
	int size;

	hook_need(half, a1, 1, true);
	size = hook_format(half, (char *)a1, room < INT32_MAX ? room : INT32_MAX, (const char *)a2,
			   values, 3);
	if (size > 0 && (size_t)size >= room)
		hook_need(half, a1, (size_t)size + 1, true);
	RETURN_ERROR(size);
}

NATIVE(fn_snprintf)
{
	uint64_t values[] = { a4, a5 };

	hook_need(context, a1, a2, true);
	RETURN_ERROR(hook_format(context, (char *)a1, a2, (const char *)a3, values, 2));
}

NATIVE(fn_puts)
{
	struct hook_half *half = context;
	size_t size = strlen((const char *)a1);

	RETURN_ERROR(fwrite((const char *)a1, 1, size, half->text) == size ? fputc('\n', half->text)
									   : EOF);
}

NATIVE(fn_putchar)
{
	struct hook_half *half = context;

	RETURN_ERROR(fputc((int)a1, half->text));
}

static const struct vm_contract third_text = { .args = { { VM_ANY }, { VM_ANY }, { VM_STRING } } };

const struct hook_function hook_functions_text[] = {
	{ "__printf_n", fn_printf_n, &hook_contract_text },
	{ "__fprintf_n", fn_fprintf_n, &hook_contract_second_text },
	{ "__snprintf_n", fn_snprintf_n, &third_text },
	{ "__dprintf_n", fn_dprintf_n, &hook_contract_second_text },
	{ "printf", fn_printf, &hook_contract_text },
	{ "fprintf", fn_fprintf, &hook_contract_second_text },
	{ "sprintf", fn_sprintf, &hook_contract_second_text },
	{ "snprintf", fn_snprintf, &third_text },
	{ "puts", fn_puts, &hook_contract_text },
	{ "putchar", fn_putchar, &hook_contract_none },
	{ NULL },
};
