// SPDX-License-Identifier: BSD-2-Clause
/* Helpers by the kernel's numbers (include/uapi/linux/bpf.h), as far as they mean something here. */
#include "hook/maps.h"

#include "hook/checked.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <duet/shared.h>

#define HELPER_NAME(name) [BPF_FUNC_##name] = #name
static const char *const helper_names[__BPF_FUNC_MAX_ID] = { __BPF_FUNC_MAPPER(HELPER_NAME) };

const char *hook_helper_name(int32_t number)
{
	return number > 0 && number < __BPF_FUNC_MAX_ID ? helper_names[number] : NULL;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

NATIVE(fn_ktime)
{
	return clock_ns(CLOCK_MONOTONIC);
}

NATIVE(fn_ktime_coarse)
{
	return clock_ns(CLOCK_MONOTONIC_COARSE);
}

NATIVE(fn_ktime_boot)
{
	return clock_ns(CLOCK_BOOTTIME);
}

NATIVE(fn_ktime_tai)
{
	return clock_ns(CLOCK_TAI);
}

NATIVE(fn_random)
{
	return (uint32_t)arc4random();
}

NATIVE(fn_cpu)
{
	return sched_getcpu();
}

NATIVE(fn_pid_tgid)
{
	return (uint64_t)getpid() << 32 | (uint32_t)gettid();
}

NATIVE(fn_uid_gid)
{
	return (uint64_t)getgid() << 32 | getuid();
}

NATIVE(fn_comm)
{
	char comm[16] = "";

	size_t size = a2 < sizeof(comm) ? a2 : sizeof(comm);

	if (!size)
		RETURN_ERROR(-EINVAL);
	hook_need(context, a1, size, true);
	prctl(PR_GET_NAME, comm);
	memcpy((char *)a1, comm, size);
	((char *)a1)[size - 1] = 0;
	return 0;
}

/* The text arrives with its size, not always terminated. */
static void print_values(struct hook_half *half, uint64_t format, uint32_t size,
			 const uint64_t *values, size_t count)
{
	char text[512];

	hook_need_text(half, format, (int)size < 0 ? SIZE_MAX : size);
	snprintf(text, sizeof(text), "%.*s", (int)size, (const char *)format);
	hook_print(half, text, values, count);
}

NATIVE(fn_trace_printk)
{
	uint64_t values[] = { a3, a4, a5 };

	print_values(context, a1, a2, values, 3);
	return 0;
}

NATIVE(fn_trace_vprintk)
{
	hook_need(context, a3, (uint32_t)a4 & ~7U, false);
	print_values(context, a1, a2, (const uint64_t *)a3, (uint32_t)a4 / 8);
	return 0;
}

NATIVE(fn_snprintf)
{
	hook_need(context, a1, a2, true);
	hook_need(context, a4, (uint32_t)a5 & ~7U, false);
	RETURN_ERROR(hook_format(context, (char *)a1, a2, (const char *)a3, (const uint64_t *)a4,
				 (uint32_t)a5 / 8) +
		     1);
}

/* The kernel's count includes the terminating zero; so does ours. */
NATIVE(fn_strncmp)
{
	hook_need_text(context, a1, a2);
	hook_need_text(context, a3, a2);
	RETURN_ERROR(strncmp((const char *)a1, (const char *)a3, a2));
}

static uint64_t parse_number(const char *text, size_t size, uint64_t flags, int is_signed,
			     void *result)
{
	char copy[64], *end;
	uint64_t value;

	snprintf(copy, sizeof(copy), "%.*s", (int)(size < 63 ? size : 63), text);
	errno = 0;
	value = is_signed ? (uint64_t)strtoll(copy, &end, flags & 31)
			  : strtoull(copy, &end, flags & 31);
	if (end == copy)
		RETURN_ERROR(-EINVAL);
	if (errno)
		RETURN_ERROR(-ERANGE);
	memcpy(result, &value, sizeof(value));
	return end - copy;
}

NATIVE(fn_strtol)
{
	hook_need_text(context, a1, a2);
	return parse_number((const char *)a1, a2, a3, 1, (void *)a4);
}

NATIVE(fn_strtoul)
{
	hook_need_text(context, a1, a2);
	return parse_number((const char *)a1, a2, a3, 0, (void *)a4);
}

/* callback(index, ctx): 0 goes on, 1 stops. Returns the loops done. */
NATIVE(fn_loop)
{
	long (*callback)(uint64_t, uint64_t) = (void *)a2;
	uint32_t i;

	if (a1 > 1 << 23)
		RETURN_ERROR(-E2BIG);
	for (i = 0; i < (uint32_t)a1; i++) {
		if (callback(i, a3))
			return i + 1;
	}
	return i;
}

/* flags: a CPU number; BPF_F_CURRENT_CPU is the CPU that duet happens to run on. */
NATIVE(fn_read_value)
{
	struct hook_half *half = context;
	struct hook_map *map = hook_map_argument(half, a1);
	uint64_t index = a2 & BPF_F_INDEX_MASK;
	int cpu = index == BPF_F_CURRENT_CPU ? sched_getcpu() : (int)index;

	if (a4 != sizeof(struct pmu_sum))
		RETURN_ERROR(-EINVAL);
	hook_need(half, a3, a4, true);
	memset((void *)a3, 0, a4);
	RETURN_ERROR(
		half->options.ops->pmu_read(half->options.run, map->name, cpu, (uint64_t *)a3));
}

static const struct vm_contract third_text = { .args = { { VM_ANY }, { VM_ANY }, { VM_STRING } } };
static const struct vm_contract number_out = {
	.args = { { VM_ANY }, { VM_ANY }, { VM_ANY }, { VM_WRITE, .bytes = 8 } }
};

/* A row of a helper's own, or one of maps.c. */
#define HELPER(id, function, contract)                                                      \
	case BPF_FUNC_##id: {                                                               \
		static const struct hook_function row = { "bpf_" #id, function, contract }; \
		return &row;                                                                \
	}
#define MAP_HELPER(id, member) \
	case BPF_FUNC_##id:    \
		return &hook_map_natives.member;

const struct hook_function *hook_helper(int32_t number)
{
	switch (number) {
		MAP_HELPER(map_lookup_elem, lookup)
		MAP_HELPER(map_update_elem, update)
		MAP_HELPER(map_delete_elem, delete)
		MAP_HELPER(map_push_elem, push)
		MAP_HELPER(map_pop_elem, pop)
		MAP_HELPER(map_peek_elem, peek)
		MAP_HELPER(for_each_map_elem, for_each)
		MAP_HELPER(map_lookup_percpu_elem, percpu)
		HELPER(ktime_get_ns, fn_ktime, &hook_contract_none)
		HELPER(ktime_get_coarse_ns, fn_ktime_coarse, &hook_contract_none)
		HELPER(ktime_get_boot_ns, fn_ktime_boot, &hook_contract_none)
		HELPER(ktime_get_tai_ns, fn_ktime_tai, &hook_contract_none)
		HELPER(get_prandom_u32, fn_random, &hook_contract_none)
		HELPER(get_smp_processor_id, fn_cpu, &hook_contract_none)
		HELPER(get_current_pid_tgid, fn_pid_tgid, &hook_contract_none)
		HELPER(get_current_uid_gid, fn_uid_gid, &hook_contract_none)
		HELPER(get_current_comm, fn_comm, &hook_contract_none)
		HELPER(trace_printk, fn_trace_printk, &hook_contract_none)
		HELPER(trace_vprintk, fn_trace_vprintk, &hook_contract_none)
		HELPER(snprintf, fn_snprintf, &third_text)
		HELPER(strncmp, fn_strncmp, &hook_contract_none)
		HELPER(strtol, fn_strtol, &number_out)
		HELPER(strtoul, fn_strtoul, &number_out)
		HELPER(loop, fn_loop, &hook_contract_callback)
		HELPER(perf_event_read_value, fn_read_value, &hook_contract_none)
	default:
		return NULL;
	}
}

/* ---- the numbered helpers of `UBPF;` programs --------------------------------------- */
NATIVE(fn_ubpf_memcmp)
{
	RETURN_ERROR(memcmp((void *)a1, (void *)a2, a3));
}

NATIVE(fn_ubpf_memcpy)
{
	return (uintptr_t)memcpy((void *)a1, (void *)a2, a3);
}

NATIVE(fn_ubpf_strcmp)
{
	RETURN_ERROR(strcmp((const char *)a1, (const char *)a2));
}

NATIVE(fn_ubpf_printf)
{
	uint64_t values[] = { a2, a3, a4, a5 };

	RETURN_ERROR(hook_print(context, (const char *)a1, values, 4));
}

NATIVE(fn_ubpf_lookup)
{
	struct hook_map *map = hook_map_argument(context, a1);
	uint64_t found = hook_map_natives.lookup.function(a1, a2, 0, 0, 0, context);

	if (!found)
		RETURN_ERROR(-ENOENT);
	hook_need(context, a3, map->info.value_size, true);
	memcpy((void *)a3, (void *)found, map->info.value_size);
	return 0;
}

NATIVE(fn_ubpf_update)
{
	return hook_map_natives.update.function(a1, a2, a3, BPF_ANY, 0, context);
}

NATIVE(fn_ubpf_next_key)
{
	return hook_map_natives.next_key.function(a1, a2, a3, 0, 0, context);
}

static const struct vm_contract two_in = { .args = { { VM_READ, .count = 3 },
						     { VM_READ, .count = 3 } } };
static const struct vm_contract out_and_in = { .args = { { VM_WRITE, .count = 3 },
							 { VM_READ, .count = 3 } } };

/* Row index is the number. */
static const struct hook_function ubpf_helpers[] = {
	{ NULL },
	{ "ubpf_memcmp", fn_ubpf_memcmp, &two_in },
	{ "ubpf_memcpy", fn_ubpf_memcpy, &out_and_in },
	{ "ubpf_strcmp", fn_ubpf_strcmp, &hook_contract_two_texts },
	{ "ubpf_printf", fn_ubpf_printf, &hook_contract_text },
	{ "ubpf_map_lookup_elem", fn_ubpf_lookup, &hook_contract_none },
	{ "ubpf_map_update_elem", fn_ubpf_update, &hook_contract_none },
	{ "ubpf_map_get_next_key", fn_ubpf_next_key, &hook_contract_none },
};

const struct hook_function *hook_ubpf_helper(int32_t number)
{
	if (number < 1 || number >= (int32_t)(sizeof(ubpf_helpers) / sizeof(ubpf_helpers[0])))
		return NULL;
	return &ubpf_helpers[number];
}
