// SPDX-License-Identifier: BSD-2-Clause
/*
 * The compiler's code never runs past its buffer: random programs are emitted by both back ends
 * into buffers of every awkward size, with a page that nobody may touch right behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "host.h"
#include "random.h"
#include "vm/jit/jit.h"

#define ROOM   (1u << 20)
#define GROUPS 12
#define BEFORE 64 /* bytes in front of a buffer that are looked at */
#define RANDOM 24 /* sizes anywhere in between */
#define CANARY 0x6b
#define SEED   7000

struct place {
	uint8_t *map, *end; /* of the buffer: the guard page */
	size_t needed;
};

static void make_place(struct place *place)
{
	size_t page = sysconf(_SC_PAGESIZE);

	place->map =
		mmap(NULL, ROOM + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(place->map != MAP_FAILED);
	place->end = place->map + ROOM;
	assert_int_equal(mprotect(place->end, page, PROT_NONE), 0);
}

static void no_stub(void)
{
	abort();
}

static int emit_functions(struct vm *vm, const struct jit_target *target, uint32_t passes,
			  struct jit_code *code, struct jit_function *function)
{
	uint32_t enter;
	int rc = target->begin(code, &enter);

	*function = (struct jit_function){
		.vm = vm, .image = &vm->image, .passes = passes, .target = target
	};
	function->checked = vm->options.checked;
	for (uint32_t i = 0; i < vm->nordered && !rc && !code->full; i++) {
		function->index = vm->order[i];
		function->recursive = i & 1;
		rc = jit_lower(function);
		rc = rc ? rc : jit_optimise(function);
		rc = rc ? rc : target->function(code, function);
	}
	return rc || code->full ? rc : target->finish(code);
}

/* Returns whether it fitted. */
static bool emit(struct place *place, struct vm *vm, const struct jit_target *target,
		 uint32_t passes, size_t capacity)
{
	static struct jit_check_slot checks[HOST_CODE];
	struct jit_runtime runtime = { .vm = vm,
				       .overflow = (void *)no_stub,
				       .callx_target = (void *)no_stub,
				       .has_budget = vm->options.instruction_budget != 0,
				       .budget = (int64_t *)&vm->budget,
				       .spent = (void *)no_stub,
				       .stack = &vm->stack,
				       .stack_low = 4096,
				       .checks = checks,
				       .check_miss = (void *)no_stub,
				       .checked_call = (void *)no_stub };
	uint8_t *start = place->end - capacity;
	struct jit_code code = { .bytes = start,
				 .address = (uintptr_t)place->map,
				 .capacity = capacity,
				 .functions = calloc(vm->nfunctions, sizeof(*code.functions)),
				 .runtime = &runtime };
	struct jit_function function;

	assert_non_null(code.functions);
	memset(start - BEFORE, CANARY, BEFORE);
	assert_int_equal(emit_functions(vm, target, passes, &code, &function), 0);
	jit_release(&function);
	free(code.functions);
	free(code.places);
	free(code.steps);
	free(code.patches);
	for (size_t i = 1; i <= BEFORE; i++)
		assert_int_equal(start[-(ptrdiff_t)i], CANARY);
	if (!code.full)
		place->needed = code.size;
	assert_true(code.full || code.size <= capacity);
	return !code.full;
}

/* How much code there is may depend on how far it could reach: what does not fit for sure is half of
 * it. What the back end asks for must do. */
static void emit_all_sizes(struct place *place, struct random *random, struct vm *vm,
			   const struct jit_target *target, uint32_t passes)
{
	size_t bound = target->bound(2 * vm->image.ncode, vm->nordered), needed;

	assert_true(bound <= ROOM - BEFORE);
	assert_true(emit(place, vm, target, passes, bound));
	needed = place->needed;
	for (size_t capacity = 0; capacity < 80; capacity++)
		assert_false(emit(place, vm, target, passes, capacity));
	for (int i = 0; i < RANDOM; i++)
		assert_false(emit(place, vm, target, passes, random_below(random, needed / 2)));
	for (int i = 0; i < RANDOM; i++)
		emit(place, vm, target, passes, random_below(random, needed));
	for (size_t capacity = needed - 40; capacity < needed + 280; capacity++)
		emit(place, vm, target, passes, capacity);
}

static void fill_host(struct host *host, uint64_t seed)
{
	static struct generated program;

	host_clear(host);
	for (uint64_t i = 0; i < 4; i++) {
		struct random random = { seed + i };

		generate(&random, i & 1, &program);
		if (host_has_room(host, &program))
			host_add(host, &program);
	}
}

static void emit_into_small_buffers(const struct jit_target *target)
{
	static struct place place;
	static struct host host;
	struct random random = { SEED };

	make_place(&place);
	for (uint64_t group = 0; group < GROUPS; group++) {
		struct engine engine = { .kind = VM_ENGINE_INTERPRETER,
					 .checked = group & 1,
					 .budget = group & 2 };
		char why[256];

		fill_host(&host, SEED + 4 * group);
		if (host_create(&host, &engine, why, sizeof(why)))
			fail_msg("%s", why);
		emit_all_sizes(&place, &random, host.vm, target,
			       group % 3 ? VM_PASS_ALL : random_next(&random) & VM_PASS_ALL);
		host_destroy(&host);
	}
	munmap(place.map, ROOM + sysconf(_SC_PAGESIZE));
}

static void x86_stays_in_its_buffer(void **state)
{
	(void)state;
	emit_into_small_buffers(&jit_x86);
}

static void arm64_stays_in_its_buffer(void **state)
{
	(void)state;
	emit_into_small_buffers(&jit_arm64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_stays_in_its_buffer),
		cmocka_unit_test(arm64_stays_in_its_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
