// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checked mode: the C functions that scripts may call there, and what each does with the memory
 * that it is given. A function is on the list when that is all the memory it touches: none that
 * keep a script's pointer (strtok, setvbuf), allocate behind the script's back (getline), or reach
 * around the checks (open of /proc/self/mem, system). checked.c has those that need more than a
 * table. The list is part of docs/scripts.md: tests/docs/docs.t compares.
 */
#include "hook/checked.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* How memory is described: @n: number of the argument that holds the bytes. */
#define TEXT                        \
	{                           \
		.demand = VM_STRING \
	}
#define MAYBE_TEXT                                    \
	{                                             \
		.demand = VM_STRING, .optional = true \
	}
#define FROM(n)                                 \
	{                                       \
		.demand = VM_READ, .count = (n) \
	}
#define TO(n)                                    \
	{                                        \
		.demand = VM_WRITE, .count = (n) \
	}
#define FROM_BYTES(size)                           \
	{                                          \
		.demand = VM_READ, .bytes = (size) \
	}
#define TO_BYTES(size)                              \
	{                                           \
		.demand = VM_WRITE, .bytes = (size) \
	}
#define IN_OUT(size)                                 \
	{                                            \
		.demand = VM_CHANGE, .bytes = (size) \
	}
#define MAYBE_TO(size)                                                \
	{                                                             \
		.demand = VM_WRITE, .bytes = (size), .optional = true \
	}
#define ELEMENTS(what, n, size)                                 \
	{                                                       \
		.demand = (what), .count = (n), .times = (size) \
	}
#define CALLBACK                      \
	{                             \
		.demand = VM_CALLBACK \
	}
#define ANY                      \
	{                        \
		.demand = VM_ANY \
	}

const struct vm_contract hook_contract_none,
	hook_contract_text = { .args = { TEXT } },
	hook_contract_second_text = { .args = { ANY, TEXT } },
	hook_contract_maybe_second_text = { .args = { ANY, MAYBE_TEXT } },
	hook_contract_two_texts = { .args = { TEXT, TEXT } },
	hook_contract_callback = { .args = { ANY, CALLBACK } };

/* ---- what the table cannot say ------------------------------------------------------------- */

static bool refuse(uint64_t *ret, uint64_t address)
{
	*ret = address;
	return false;
}

/* Text of at most @limit bytes; the NUL may be missing when there are that many. */
static bool is_bounded(struct vm *vm, uint64_t address, uint64_t limit, uint64_t *bad)
{
	uint64_t rest;

	if (!limit)
		return true;
	rest = vm_region_rest(vm, address, false);
	if (rest >= limit || (rest && memchr((const void *)address, 0, rest)))
		return true;
	return refuse(bad, address);
}

static bool is_room(struct vm *vm, uint64_t address, uint64_t size, uint64_t *bad)
{
	return vm_may_write(vm, address, size) || refuse(bad, address);
}

static size_t length(uint64_t text)
{
	return strlen((const char *)text);
}

static int check_strnlen(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	return is_bounded(vm, args[0], args[1], bad) ? 0 : -1;
}

static int check_strncmp(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	return is_bounded(vm, args[0], args[2], bad) && is_bounded(vm, args[1], args[2], bad) ? 0
											      : -1;
}

static int check_strncpy(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	return is_bounded(vm, args[1], args[2], bad) ? 0 : -1;
}

/* Does a copy of @size bytes leave its source, with the NUL that ends it, as it is? */
static bool is_apart(uint64_t to, uint64_t from, uint64_t size, uint64_t *bad)
{
	return to - from >= size || refuse(bad, to);
}

static int check_strcpy(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	size_t size = length(args[1]) + 1;

	return is_room(vm, args[0], size, bad) && is_apart(args[0], args[1], size, bad) ? 0 : -1;
}

static int check_strcat(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	size_t before = length(args[0]), size = length(args[1]) + 1;

	return is_room(vm, args[0], before + size, bad) &&
			       is_apart(args[0] + before, args[1], size, bad)
		       ? 0
		       : -1;
}

static int check_strncat(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	size_t more;

	if (!is_bounded(vm, args[1], args[2], bad))
		return -1;
	more = args[2] ? strnlen((const char *)args[1], args[2]) : 0;
	return is_room(vm, args[0], length(args[0]) + more + 1, bad) &&
			       is_apart(args[0] + length(args[0]), args[1], more + 1, bad)
		       ? 0
		       : -1;
}

/* strtok_r() goes on at *save, strsep() at *text: both write a NUL behind each part. */
static int check_parts(struct vm *vm, uint64_t text, uint64_t *bad)
{
	if (!text)
		return 0;
	if (!vm_may_read_string(vm, text))
		return refuse(bad, text) ? 0 : -1;
	return is_room(vm, text, length(text) + 1, bad) ? 0 : -1;
}

static int check_strtok_r(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	return check_parts(vm, args[0] ? args[0] : *(const uint64_t *)args[2], bad);
}

static int check_strsep(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	return check_parts(vm, *(const uint64_t *)args[0], bad);
}

/* They index a table of the C library: EOF and the values of a char. */
static int check_character(struct vm *vm, const uint64_t *args, uint64_t *bad)
{
	int64_t c = (int32_t)args[0];

	(void)vm;
	return (c >= -128 && c <= 255) || refuse(bad, args[0]) ? 0 : -1;
}

/* ---- the list ---------------------------------------------------------------------------------- */

/*
 * floating: which arguments travel in floating-point registers, a 'd' each: the script's
 * prototype must say the same, or the others are not where the contract looks. NULL: none.
 * NUMBERS: takes no memory, whatever the prototype says.
 */
#define NUMBERS "*"
#define NUMBER(id)            \
	{                     \
#id, NUMBERS, \
		{             \
		}             \
	}

static const struct safe {
	const char *name, *floating;
	struct vm_contract contract;
} safe[] = {
	/* <string.h>, <strings.h> */
	{ "memcpy", NULL, { .args = { TO(3), FROM(3) } } },
	{ "mempcpy", NULL, { .args = { TO(3), FROM(3) } } },
	{ "memmove", NULL, { .args = { TO(3), FROM(3) } } },
	{ "memset", NULL, { .args = { TO(3) } } },
	{ "bzero", NULL, { .args = { TO(2) } } },
	{ "memcmp", NULL, { .args = { FROM(3), FROM(3) } } },
	{ "memchr", NULL, { .args = { FROM(3) } } },
	{ "memrchr", NULL, { .args = { FROM(3) } } },
	{ "memmem", NULL, { .args = { FROM(2), ANY, FROM(4) } } },
	{ "strlen", NULL, { .args = { TEXT } } },
	{ "strnlen", NULL, { .check = check_strnlen } },
	{ "strcmp", NULL, { .args = { TEXT, TEXT } } },
	{ "strncmp", NULL, { .check = check_strncmp } },
	{ "strcasecmp", NULL, { .args = { TEXT, TEXT } } },
	{ "strncasecmp", NULL, { .check = check_strncmp } },
	{ "strverscmp", NULL, { .args = { TEXT, TEXT } } },
	{ "strcpy", NULL, { .args = { ANY, TEXT }, .check = check_strcpy } },
	{ "stpcpy", NULL, { .args = { ANY, TEXT }, .check = check_strcpy } },
	{ "strncpy", NULL, { .args = { TO(3) }, .check = check_strncpy } },
	{ "strcat", NULL, { .args = { TEXT, TEXT }, .check = check_strcat } },
	{ "strncat", NULL, { .args = { TEXT }, .check = check_strncat } },
	{ "strchr", NULL, { .args = { TEXT } } },
	{ "strrchr", NULL, { .args = { TEXT } } },
	{ "strchrnul", NULL, { .args = { TEXT } } },
	{ "strstr", NULL, { .args = { TEXT, TEXT } } },
	{ "strcasestr", NULL, { .args = { TEXT, TEXT } } },
	{ "strspn", NULL, { .args = { TEXT, TEXT } } },
	{ "strcspn", NULL, { .args = { TEXT, TEXT } } },
	{ "strpbrk", NULL, { .args = { TEXT, TEXT } } },
	{ "strtok_r", NULL, { .args = { MAYBE_TEXT, TEXT, IN_OUT(8) }, .check = check_strtok_r } },
	{ "strsep", NULL, { .args = { IN_OUT(8), TEXT }, .check = check_strsep } },
	{ "basename", NULL, { .args = { TEXT } } },
	/* <ctype.h> */
	{ "isalpha", NULL, { .check = check_character } },
	{ "isdigit", NULL, { .check = check_character } },
	{ "isalnum", NULL, { .check = check_character } },
	{ "isspace", NULL, { .check = check_character } },
	{ "isupper", NULL, { .check = check_character } },
	{ "islower", NULL, { .check = check_character } },
	{ "ispunct", NULL, { .check = check_character } },
	{ "isprint", NULL, { .check = check_character } },
	{ "iscntrl", NULL, { .check = check_character } },
	{ "isxdigit", NULL, { .check = check_character } },
	NUMBER(toupper),
	NUMBER(tolower),
	/* <stdlib.h> */
	{ "qsort", NULL, { .args = { ELEMENTS(VM_CHANGE, 2, 3), ANY, ANY, CALLBACK } } },
	{ "bsearch", NULL, { .args = { ANY, ELEMENTS(VM_READ, 3, 4), ANY, ANY, CALLBACK } } },
	{ "atoi", NULL, { .args = { TEXT } } },
	{ "atol", NULL, { .args = { TEXT } } },
	{ "atoll", NULL, { .args = { TEXT } } },
	{ "atof", NULL, { .args = { TEXT } } },
	{ "strtol", NULL, { .args = { TEXT, MAYBE_TO(8) } } },
	{ "strtoll", NULL, { .args = { TEXT, MAYBE_TO(8) } } },
	{ "strtoul", NULL, { .args = { TEXT, MAYBE_TO(8) } } },
	{ "strtoull", NULL, { .args = { TEXT, MAYBE_TO(8) } } },
	{ "strtod", NULL, { .args = { TEXT, MAYBE_TO(8) } } },
	NUMBER(abs),
	NUMBER(labs),
	NUMBER(llabs),
	NUMBER(rand),
	NUMBER(srand),
	NUMBER(random),
	NUMBER(srandom),
	/* <time.h>, <sys/time.h> */
	{ "time", NULL, { .args = { MAYBE_TO(sizeof(time_t)) } } },
	NUMBER(clock),
	{ "clock_gettime", NULL, { .args = { ANY, TO_BYTES(sizeof(struct timespec)) } } },
	{ "clock_getres", NULL, { .args = { ANY, MAYBE_TO(sizeof(struct timespec)) } } },
	{ "gettimeofday", NULL, { .args = { TO_BYTES(16), MAYBE_TO(8) } } },
	{ "localtime_r",
	  NULL,
	  { .args = { FROM_BYTES(sizeof(time_t)), TO_BYTES(sizeof(struct tm)) } } },
	{ "gmtime_r",
	  NULL,
	  { .args = { FROM_BYTES(sizeof(time_t)), TO_BYTES(sizeof(struct tm)) } } },
	{ "mktime", NULL, { .args = { IN_OUT(sizeof(struct tm)) } } },
	{ "timegm", NULL, { .args = { IN_OUT(sizeof(struct tm)) } } },
	{ "nanosleep",
	  NULL,
	  { .args = { FROM_BYTES(sizeof(struct timespec)), MAYBE_TO(sizeof(struct timespec)) } } },
	NUMBER(usleep),
	NUMBER(sleep),
	/* <unistd.h>, <sys/stat.h>, <stdio.h>, <signal.h>, <errno.h>: what names and asks */
	NUMBER(__errno_location),
	NUMBER(getpid),
	NUMBER(getppid),
	NUMBER(getuid),
	NUMBER(getgid),
	NUMBER(sched_getcpu),
	NUMBER(isatty),
	NUMBER(sysconf),
	NUMBER(kill),
	{ "gethostname", NULL, { .args = { TO(2) } } },
	{ "getcwd", NULL, { .args = { TO(2) } } },
	{ "readlink", NULL, { .args = { TEXT, TO(3) } } },
	{ "access", NULL, { .args = { TEXT } } },
	{ "stat", NULL, { .args = { TEXT, TO_BYTES(sizeof(struct stat)) } } },
	{ "lstat", NULL, { .args = { TEXT, TO_BYTES(sizeof(struct stat)) } } },
	{ "unlink", NULL, { .args = { TEXT } } },
	{ "mkdir", NULL, { .args = { TEXT } } },
	{ "rmdir", NULL, { .args = { TEXT } } },
	{ "remove", NULL, { .args = { TEXT } } },
	{ "rename", NULL, { .args = { TEXT, TEXT } } },
	{ "perror", NULL, { .args = { MAYBE_TEXT } } },
	/* <math.h> */
	NUMBER(sqrt),
	NUMBER(cbrt),
	NUMBER(exp),
	NUMBER(exp2),
	NUMBER(expm1),
	NUMBER(log),
	NUMBER(log2),
	NUMBER(log10),
	NUMBER(log1p),
	NUMBER(sin),
	NUMBER(cos),
	NUMBER(tan),
	NUMBER(asin),
	NUMBER(acos),
	NUMBER(atan),
	NUMBER(sinh),
	NUMBER(cosh),
	NUMBER(tanh),
	NUMBER(erf),
	NUMBER(erfc),
	NUMBER(tgamma),
	NUMBER(lgamma),
	NUMBER(floor),
	NUMBER(ceil),
	NUMBER(trunc),
	NUMBER(round),
	NUMBER(rint),
	NUMBER(fabs),
	NUMBER(pow),
	NUMBER(fmod),
	NUMBER(hypot),
	NUMBER(atan2),
	NUMBER(fmin),
	NUMBER(fmax),
	NUMBER(fdim),
	NUMBER(copysign),
	NUMBER(fma),
	NUMBER(ldexp),
	{ "frexp", "d", { .args = { ANY, TO_BYTES(sizeof(int)) } } },
	{ "modf", "d", { .args = { ANY, TO_BYTES(sizeof(double)) } } },
	NUMBER(lround),
	NUMBER(llround),
};

/* Do the prototype's floating-point arguments stand where the function's do? */
static bool agrees(const struct safe *row, const struct vm_native *native)
{
	size_t floating = row->floating ? strlen(row->floating) : 0, i;

	if (row->floating && !strcmp(row->floating, NUMBERS))
		return true;
	if (native->nargs < floating)
		return false;
	for (i = 0; i < native->nargs; i++) {
		enum vm_class want = i < floating ? VM_DOUBLE : VM_VOID;
		bool is_floating = native->args[i] == VM_FLOAT || native->args[i] == VM_DOUBLE;

		if (want == VM_DOUBLE ? native->args[i] != VM_DOUBLE : is_floating)
			return false;
	}
	return true;
}

int hook_contract_find(struct vm_native *native, struct err *err)
{
	size_t i;

	for (i = 0; i < sizeof(safe) / sizeof(safe[0]); i++) {
		if (strcmp(safe[i].name, native->name))
			continue;
		if (!agrees(&safe[i], native))
			return err_set(err, -EINVAL,
				       "%s(): the script declares it with other types than the C "
				       "library: checked mode needs its prototype: include the "
				       "header that declares it",
				       native->name);
		native->contract = &safe[i].contract;
		return 0;
	}
	return err_set(err, -EPERM,
		       "%s() cannot be called in checked mode: what it does with memory is not "
		       "known there: use a function of `duet list functions --checked`, or run "
		       "without --checked",
		       native->name);
}

void hook_contract_list(hook_function_fn fn, void *context)
{
	size_t i;

	for (i = 0; i < sizeof(safe) / sizeof(safe[0]); i++)
		fn(context, safe[i].name, "the C library, checked");
}
