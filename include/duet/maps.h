/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps: declarations for both halves, lookups that count what did not fit, and the map functions
 * of the user half. Part of duet.h.
 *
 * What a lookup gives
 *   kernel half	a pointer into the map, as ever.
 *   user half		arrays and global variables are live memory. Any other map gives a read-only
 *			snapshot that is valid until the hook returns; change it with
 *			bpf_map_update_elem(). Per-CPU maps: bpf_map_lookup_percpu_elem(map, key, cpu).
 */
#pragma once

#define __DUET_MAP(name, kind, n, K, V) \
	struct {                        \
		__uint(type, kind);     \
		__uint(max_entries, n); \
		__type(key, K);         \
		__type(value, V);       \
	} name SEC(".maps")

/* HASH(name, n, K, V): hash table of at most n elements. K must have no padding bytes that are
 * left unset: they are part of the key. */
#define HASH(name, n, K, V) __DUET_MAP(name, BPF_MAP_TYPE_HASH, n, K, V)
/* PERCPU_HASH(name, n, K, V): a value per CPU: no atomics needed; reports add the CPUs up. */
#define PERCPU_HASH(name, n, K, V) __DUET_MAP(name, BPF_MAP_TYPE_PERCPU_HASH, n, K, V)
/* LRU(name, n, K, V): a hash table that drops the least recently used element when it is full. */
#define LRU(name, n, K, V) __DUET_MAP(name, BPF_MAP_TYPE_LRU_HASH, n, K, V)
/* ARRAY(name, n, V): n values, key u32 from 0 on; live memory in the user half. */
#define ARRAY(name, n, V) __DUET_MAP(name, BPF_MAP_TYPE_ARRAY, n, __u32, V)
/* PERCPU_ARRAY(name, n, V): n values per CPU, key u32 from 0 on. */
#define PERCPU_ARRAY(name, n, V) __DUET_MAP(name, BPF_MAP_TYPE_PERCPU_ARRAY, n, __u32, V)
/* PERCPU(name, V): one value per CPU (key u32 0): scratch space and per-CPU state. */
#define PERCPU(name, V) PERCPU_ARRAY(name, 1, V)

/* RING(name, bytes): ring buffer, a power of two of at least a page. Records reach
 * SEC("user/event/NAME"). */
#define RING(name, bytes)                           \
	struct {                                    \
		__uint(type, BPF_MAP_TYPE_RINGBUF); \
		__uint(max_entries, bytes);         \
	} name SEC(".maps")

/* EVENTS(name): per-CPU perf rings for bpf_perf_event_output(); duet sizes it to the CPUs.
 * Records reach SEC("user/event/NAME"). */
#define EVENTS(name)                                         \
	struct {                                             \
		__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY); \
		__uint(key_size, 4);                         \
		__uint(value_size, 4);                       \
	} name SEC(".maps")

#define __DUET_KEYLESS(name, kind, n, V) \
	struct {                         \
		__uint(type, kind);      \
		__uint(max_entries, n);  \
		__type(value, V);        \
	} name SEC(".maps")

/* QUEUE(name, n, V), STACK(name, n, V): bpf_map_push_elem, bpf_map_pop_elem, bpf_map_peek_elem. */
#define QUEUE(name, n, V) __DUET_KEYLESS(name, BPF_MAP_TYPE_QUEUE, n, V)
#define STACK(name, n, V) __DUET_KEYLESS(name, BPF_MAP_TYPE_STACK, n, V)

/* STACKS(name, n): n different call stacks, filled by bpf_get_stackid(ctx, &name, flags). */
#define DUET_STACK_DEPTH 127
#define STACKS(name, n)                                   \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_STACK_TRACE);   \
		__uint(max_entries, n);                   \
		__uint(key_size, 4);                      \
		__uint(value_size, DUET_STACK_DEPTH * 8); \
	} name SEC(".maps")

/* LPM(name, n, K, V): longest prefix match; K starts with `u32 prefixlen` (bits). */
#define LPM(name, n, K, V)                            \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE);  \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__uint(max_entries, n);               \
		__type(key, K);                       \
		__type(value, V);                     \
	} name SEC(".maps")

/* TASK(name, V): a value per thread, freed with it; bpf_task_storage_get(&name, task, 0, flags). */
#define TASK(name, V)                                    \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE); \
		__uint(map_flags, BPF_F_NO_PREALLOC);    \
		__type(key, int);                        \
		__type(value, V);                        \
	} name SEC(".maps")

/*
 * Counts a failure under the name of @map: one record in section .data.duet per place in the
 * source (see struct duet_failure); duet tells the sums at exit. Costs nothing until it happens.
 */
#define __duet_count_failure(why, map)                                        \
	({                                                                    \
		static struct {                                               \
			struct duet_failure head;                             \
			char name[(sizeof(#map) + 7) & ~7UL];                 \
		} __failure SEC(".data.duet") = {                             \
			{ .kind = (why), .size = (sizeof(#map) + 7) & ~7UL }, \
			#map,                                                 \
		};                                                            \
		__sync_fetch_and_add(&__failure.head.failed, 1);              \
	})

/*
 * map_at(&map, &key): the element at key, inserted with a zero value when it is absent. NULL only
 * when the map is full, which is counted and told at exit. Kernel half, hash and LRU maps.
 */
#define map_at(map, key)                                                            \
	({                                                                          \
		const void *__key = (key);                                          \
		typeof(*(map)->value) *__value = bpf_map_lookup_elem((map), __key); \
		if (!__value) {                                                     \
			static const typeof(*(map)->value) __zero;                  \
			bpf_map_update_elem((map), __key, &__zero, BPF_NOEXIST);    \
			__value = bpf_map_lookup_elem((map), __key);                \
			if (!__value)                                               \
				__duet_count_failure(DUET_FAILURE_FULL, map);       \
		}                                                                   \
		__value;                                                            \
	})

/*
 * bpf_ringbuf_reserve(&ring, bytes, 0) and bpf_ringbuf_output(&ring, data, bytes, 0) count the
 * records that found no room (the kernel does not): SEC("user/lost") is told, and so is the exit
 * report. Results as ever: NULL, -EAGAIN or -ENOSPC.
 */
#define bpf_ringbuf_reserve(ring, bytes, flags)                                   \
	({                                                                        \
		void *__record = (bpf_ringbuf_reserve)((ring), (bytes), (flags)); \
		if (!__record)                                                    \
			__duet_count_failure(DUET_FAILURE_RING, ring);            \
		__record;                                                         \
	})
#define bpf_ringbuf_output(ring, data, bytes, flags)                                   \
	({                                                                             \
		long __error = (bpf_ringbuf_output)((ring), (data), (bytes), (flags)); \
		if (__error)                                                           \
			__duet_count_failure(DUET_FAILURE_RING, ring);                 \
		__error;                                                               \
	})

/* ---- user half ------------------------------------------------------------------------------ */

/* map_count: elements that a map holds now. */
extern __u64 map_count(const void *map);
/* map_clear: deletes every element (arrays: sets them to zero). Beware of running probes: counts
 * that arrive meanwhile are lost; the report option `since-last` needs no clearing. */
extern int map_clear(const void *map);
/* map_next_key: the key behind @key (NULL: the first) into @next. 0; -ENOENT at the end. */
extern int map_next_key(const void *map, const void *key, void *next);
