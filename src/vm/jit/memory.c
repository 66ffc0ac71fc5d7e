// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signal handlers must find out whose code they interrupted, in any thread: hence a list of the
 * process's live code in static variables, an exception to the rule of the house. Slots are never
 * freed, only used again; a slot's version is odd while it changes, so that readers need no lock.
 */
#include "vm/jit/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REACH      (2ul << 30)   /* of a call on x86-64 */
#define NEAR_REACH (120ul << 20) /* of a branch on arm64, and some room */
#define STEP       (8ul << 20)   /* between the places that are tried */
#define TRIES      14            /* of them: down to NEAR_REACH */
#define FAR        (1ul << 45)   /* from everything else, on purpose */

#define SLOTS  64
#define CHUNKS 4096

struct slot {
	atomic_uint version;
	_Atomic uintptr_t begin, end;
	_Atomic(struct vm *) vm; /* NULL: free */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot first[SLOTS];
static _Atomic(struct slot *) chunks[CHUNKS] = { first };
static atomic_uint used;  /* slots that were ever taken */
static unsigned int hint; /* a slot that may be free; under lock */
static atomic_uint live;

/* ---- the list ------------------------------------------------------------------------ */

static struct slot *slot_at(unsigned int i)
{
	struct slot *chunk = atomic_load(&chunks[i / SLOTS]);

	return chunk ? &chunk[i % SLOTS] : NULL;
}

static void set_slot(struct slot *slot, uintptr_t begin, uintptr_t end, struct vm *vm)
{
	atomic_fetch_add(&slot->version, 1);
	atomic_store(&slot->begin, begin);
	atomic_store(&slot->end, end);
	atomic_store(&slot->vm, vm);
	atomic_fetch_add(&slot->version, 1);
}

/* A free slot, under lock; -ENOMEM. */
static int find_slot(void)
{
	unsigned int n = atomic_load(&used), i;
	struct slot *chunk;

	for (i = 0; i < n; i++) {
		unsigned int k = (hint + i) % n;

		if (!atomic_load(&slot_at(k)->vm))
			return k;
	}
	if (n == SLOTS * CHUNKS)
		return -ENOMEM;
	if (!slot_at(n)) {
		chunk = calloc(SLOTS, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		atomic_store(&chunks[n / SLOTS], chunk);
	}
	atomic_store(&used, n + 1);
	return n;
}

static int list_add(struct jit_memory *memory, struct vm *vm)
{
	int i;

	pthread_mutex_lock(&lock);
	i = find_slot();
	if (i >= 0) {
		set_slot(slot_at(i), (uintptr_t)memory->code,
			 (uintptr_t)memory->code + memory->code_size, vm);
		hint = i + 1;
		atomic_fetch_add(&live, 1);
	}
	memory->slot = i;
	pthread_mutex_unlock(&lock);
	return i < 0 ? i : 0;
}

static void list_remove(struct jit_memory *memory)
{
	if (memory->slot < 0)
		return;
	pthread_mutex_lock(&lock);
	set_slot(slot_at(memory->slot), 0, 0, NULL);
	hint = memory->slot;
	atomic_fetch_sub(&live, 1);
	pthread_mutex_unlock(&lock);
}

bool jit_memory_any(void)
{
	return atomic_load_explicit(&live, memory_order_relaxed) != 0;
}

struct vm *jit_memory_owner(uintptr_t pc)
{
	unsigned int n = jit_memory_any() ? atomic_load(&used) : 0;

	for (unsigned int i = 0; i < n; i++) {
		struct slot *slot = slot_at(i);
		unsigned int version = atomic_load(&slot->version);
		uintptr_t begin = atomic_load(&slot->begin);
		uintptr_t end = atomic_load(&slot->end);
		struct vm *vm = atomic_load(&slot->vm);

		if (version & 1 || version != atomic_load(&slot->version))
			continue; /* another vm's, on its way: not what runs here */
		if (pc >= begin && pc < end)
			return vm;
	}
	return NULL;
}

/* ---- memory --------------------------------------------------------------------------- */

/* Is everything in [low, high] less than @reach from every byte of [start, start + size)? */
static bool is_near(uintptr_t start, size_t size, const struct jit_near *near, uintptr_t reach)
{
	uintptr_t end = start + size;
	uintptr_t bottom = near->low < start ? near->low : start;
	uintptr_t top = near->high > end ? near->high : end;

	return top - bottom < reach;
}

static uint8_t *map_at(uintptr_t address, size_t size, int flags)
{
	uint8_t *map = mmap((void *)address, size, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

/* Below a program what is there is free; above it is its heap's. */
static uint8_t *map_below(size_t size, const struct jit_near *near)
{
	for (unsigned int i = 1; i <= TRIES && near->low >= size + i * STEP; i++) {
		uintptr_t address = ((near->low - size) & ~(STEP - 1)) - (i - 1) * STEP;
		uint8_t *map = map_at(address, size, MAP_FIXED_NOREPLACE);

		if (map && is_near((uintptr_t)map, size, near, REACH))
			return map;
		if (map) /* an old kernel took it for a hint */
			munmap(map, size);
	}
	return NULL;
}

/* The kernel puts mappings below the libraries by itself. */
static uint8_t *map_near(size_t size, const struct jit_near *near)
{
	const struct jit_near library = { (uintptr_t)mmap, (uintptr_t)mmap };
	uint8_t *anywhere = NULL, *below;

	if (!near->high)
		return map_at(near->low ? near->low ^ FAR : 0, size, 0);
	if (is_near(near->low, near->high - near->low, &library, REACH)) {
		anywhere = map_at(0, size, 0);
		if (!anywhere || is_near((uintptr_t)anywhere, size, near, NEAR_REACH))
			return anywhere;
	}
	below = map_below(size, near);
	if (!below)
		return anywhere ? anywhere : map_at(0, size, 0);
	if (anywhere)
		munmap(anywhere, size);
	return below;
}

int jit_memory_create(struct jit_memory *memory, size_t code, size_t data,
		      const struct jit_near *near, struct err *err)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *map;

	*memory = (struct jit_memory){ .slot = -1 };
	memory->code_size = (code + page - 1) & ~(page - 1);
	memory->data_size = (data + page - 1) & ~(page - 1);
	memory->map_size = memory->code_size + 2 * page;
	if (memory->data_size)
		memory->map_size += memory->data_size + page;
	map = map_near(memory->map_size, near);
	if (!map)
		return err_nomem(err);
	memory->map = map;
	memory->code = map + page;
	memory->buffer = malloc(memory->code_size);
	if (!memory->buffer)
		return err_nomem(err);
	if (!memory->data_size)
		return 0;
	memory->data = memory->code + memory->code_size + page;
	if (mprotect(memory->data, memory->data_size, PROT_READ | PROT_WRITE))
		return err_nomem(err);
	return 0;
}

int jit_memory_open(const struct jit_memory *memory, bool open)
{
	int protection = open ? PROT_READ | PROT_EXEC : PROT_READ;

	return mprotect(memory->code, memory->code_size, protection) ? -errno : 0;
}

/*
 * The code comes from a file in memory, written by the kernel: its pages are never mapped writable,
 * and no processor must forget that they were, which takes longer than to compile a small program.
 */
static int map_file(const struct jit_memory *memory)
{
	int fd = memfd_create("duet-vm", MFD_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, memory->buffer, memory->code_size);
	void *map = MAP_FAILED;

	if (n == (ssize_t)memory->code_size)
		map = mmap(memory->code, memory->code_size, PROT_READ | PROT_EXEC,
			   MAP_PRIVATE | MAP_FIXED | MAP_POPULATE, fd, 0);
	if (fd >= 0)
		close(fd);
	return map == MAP_FAILED ? -1 : 0;
}

/* Where the system wants no executable files: writable first, executable then. */
static int map_anonymous(const struct jit_memory *memory)
{
	if (mprotect(memory->code, memory->code_size, PROT_READ | PROT_WRITE))
		return -errno;
	memcpy(memory->code, memory->buffer, memory->code_size);
	return jit_memory_open(memory, true);
}

int jit_memory_seal(struct jit_memory *memory, size_t size, struct vm *vm, struct err *err)
{
	size_t page = sysconf(_SC_PAGESIZE);
	int rc = 0;

	memory->code_size = (size + page - 1) & ~(page - 1);
	memset(memory->buffer + size, 0, memory->code_size - size);
	if (map_file(memory))
		rc = map_anonymous(memory);
	free(memory->buffer);
	memory->buffer = NULL;
	if (rc)
		return err_set(err, rc == -ENOMEM ? rc : -ENOTSUP,
			       "code cannot be made executable: %s", strerror(-rc));
	__builtin___clear_cache((char *)memory->code, (char *)memory->code + memory->code_size);
	return list_add(memory, vm) ? err_nomem(err) : 0;
}

void jit_memory_release(struct jit_memory *memory)
{
	if (!memory->map)
		return;
	list_remove(memory);
	free(memory->buffer);
	memory->buffer = NULL;
	munmap(memory->map, memory->map_size);
	memory->map = NULL;
}
