// SPDX-License-Identifier: BSD-2-Clause
/*
 * The order of the blocks. Edges are taken by how often they are likely to be gone: deeper loops
 * first, jumps before branches, so that what a loop does at its end comes before the test at its
 * start and the jump back disappears (loops are tested at the bottom). An edge joins two chains of
 * blocks when it goes from the end of one to the start of the other. Then the chains follow each
 * other, each time the one that the most frequent edge leads to. Linear: edges are sorted into
 * buckets.
 */
#include "vm/jit/passes.h"

#include <string.h>

#define CLASSES   8
#define MAX_DEPTH 15
#define BUCKETS   (CLASSES * (MAX_DEPTH + 1))

#define SHORT_TEST 4 /* instructions of a header */

/* How likely a way is, within its loop. */
enum { COLD, LEAVES, UNLIKELY = 3, LIKELY = 5, STAYS, ALWAYS };

struct edge {
	uint32_t from, to;
	uint32_t next; /* edge in the same bucket */
};

struct layout {
	struct jit_function *function;
	const struct jit_graph *graph;
	struct edge *edges;
	uint32_t nedges;
	uint32_t buckets[BUCKETS]; /* first edge */
	uint32_t *after, *before;  /* neighbour in its chain */
	uint32_t *chain;           /* union-find */
	uint32_t *place;           /* in order; JIT_NOWHERE: not yet */
	uint8_t (*keys)[2];        /* of the ways to `next` and `taken` */
};

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static bool is_cold(const struct jit_function *function, uint32_t block)
{
	return jit_end_of(function, block)->op == JIT_TRAP;
}

/* Equality is the rarer case, above all with zero: pointers, results, ends of strings. */
static bool likely_taken(const struct jit_insn *branch)
{
	return branch->sub == JIT_NE;
}

/*
 * Is it the header of a loop that may be left there, by a short test? (Behind a long one the jump to
 * it costs more than it gains.)
 */
static bool tests_at_start(const struct layout *l, uint32_t at)
{
	const struct jit_function *function = l->function;
	const struct jit_block *blocks = function->blocks, *block = &blocks[at];
	uint32_t n = 0;

	if (!l->graph->header[at] || jit_end_of(function, at)->op != JIT_BRANCH ||
	    (blocks[block->next].depth < block->depth) ==
		    (blocks[block->taken].depth < block->depth) ||
	    block->next == at || block->taken == at)
		return false;
	for (uint32_t i = 0; i < block->count && n <= SHORT_TEST; i++)
		n += function->insns[block->first + i].op != JIT_NOP;
	return n <= SHORT_TEST;
}

/*
 * A loop is cut where it is tested at its start: that test becomes its end, and the way back falls
 * through to it. Else at the way back.
 */
static bool is_cut(const struct layout *l, uint32_t from, uint32_t to)
{
	if (l->graph->place[to] <= l->graph->place[from])
		return !tests_at_start(l, to);
	return tests_at_start(l, from);
}

static unsigned int class_of(const struct layout *l, uint32_t from, uint32_t to)
{
	const struct jit_function *function = l->function;
	const struct jit_block *block = &function->blocks[from];
	const struct jit_insn *end = jit_end_of(function, from);
	unsigned int class;
	uint32_t other;

	if (is_cold(function, to))
		return COLD;
	if (end->op == JIT_JUMP)
		return ALWAYS;
	if (end->op == JIT_SWITCH)
		return UNLIKELY;
	other = to == block->taken ? block->next : block->taken;
	if (function->blocks[to].depth < block->depth &&
	    function->blocks[other].depth >= block->depth)
		class = LEAVES;
	else if (function->blocks[other].depth < block->depth || is_cold(function, other))
		class = STAYS;
	else
		class = (to == block->taken) == likely_taken(end) ? LIKELY : UNLIKELY;
	return class - (class != LEAVES && is_cut(l, from, to));
}

static unsigned int find_key(const struct layout *l, uint32_t from, uint32_t to)
{
	const struct jit_block *blocks = l->function->blocks;
	unsigned int class = class_of(l, from, to);
	uint32_t depth = least(least(blocks[from].depth, blocks[to].depth), MAX_DEPTH);

	return class == COLD ? 0 : depth * CLASSES + class;
}

/* Of the way to successor @i. */
static unsigned int key_of(const struct layout *l, uint32_t from, uint32_t i)
{
	return i < 2 && jit_end_of(l->function, from)->op != JIT_SWITCH
		       ? l->keys[from][i]
		       : find_key(l, from, *jit_successor(l->function, from, i));
}

/* Each bucket is filled from its end, so that earlier blocks come first. */
static void sort_edges(struct layout *l)
{
	memset(l->buckets, 0xff, sizeof(l->buckets)); /* JIT_NOWHERE */
	for (uint32_t k = l->graph->nblocks; k-- > 0;) {
		uint32_t from = l->graph->forward[k], n = jit_nsuccessors(l->function, from);

		for (uint32_t i = n; i-- > 0;) {
			uint32_t to = *jit_successor(l->function, from, i);
			unsigned int key = find_key(l, from, to);
			uint32_t *bucket = &l->buckets[key];

			l->edges[l->nedges] = (struct edge){ from, to, *bucket };
			*bucket = l->nedges++;
			if (i < 2)
				l->keys[from][i] = key;
		}
	}
}

static uint32_t find(struct layout *l, uint32_t block)
{
	while (l->chain[block] != block) {
		l->chain[block] = l->chain[l->chain[block]];
		block = l->chain[block];
	}
	return block;
}

static void join_chains(struct layout *l)
{
	for (uint32_t key = BUCKETS; key-- > 0;) {
		for (uint32_t i = l->buckets[key]; i != JIT_NOWHERE; i = l->edges[i].next) {
			uint32_t from = l->edges[i].from, to = l->edges[i].to;

			if (!to || l->after[from] != JIT_NOWHERE || l->before[to] != JIT_NOWHERE ||
			    find(l, from) == find(l, to))
				continue;
			l->after[from] = to;
			l->before[to] = from;
			l->chain[find(l, to)] = find(l, from);
		}
	}
}

/* Edges out of what stands already, by key; a bit a bucket that is not empty. */
struct queue {
	uint32_t buckets[BUCKETS];
	uint64_t filled[BUCKETS / 64];
};

/* Appends the chain that @block belongs to. */
static void append_chain(struct layout *l, uint32_t block, struct queue *queue)
{
	struct jit_function *function = l->function;

	while (l->before[block] != JIT_NOWHERE)
		block = l->before[block];
	for (; block != JIT_NOWHERE; block = l->after[block]) {
		uint32_t n = jit_nsuccessors(function, block);

		l->place[block] = function->norder;
		function->order[function->norder++] = block;
		for (uint32_t i = 0; i < n; i++) {
			uint32_t to = *jit_successor(function, block, i);
			unsigned int key;

			if (l->place[to] != JIT_NOWHERE)
				continue;
			key = key_of(l, block, i);
			l->edges[l->nedges] = (struct edge){ block, to, queue->buckets[key] };
			queue->buckets[key] = l->nedges++;
			queue->filled[key / 64] |= 1ull << key % 64;
		}
	}
}

static bool take_next(struct queue *queue, const struct edge *edges, uint32_t *to)
{
	for (unsigned int i = BUCKETS / 64; i-- > 0;) {
		unsigned int key;

		if (!queue->filled[i])
			continue;
		key = 64 * i + 63 - __builtin_clzll(queue->filled[i]);
		*to = edges[queue->buckets[key]].to;
		queue->buckets[key] = edges[queue->buckets[key]].next;
		if (queue->buckets[key] == JIT_NOWHERE)
			queue->filled[i] &= ~(1ull << key % 64);
		return true;
	}
	return false;
}

static void order_chains(struct layout *l)
{
	struct queue queue = { 0 };
	uint32_t block = 0;

	memset(queue.buckets, 0xff, sizeof(queue.buckets)); /* JIT_NOWHERE */
	l->nedges = 0;
	l->function->norder = 0;
	do {
		if (l->place[block] == JIT_NOWHERE)
			append_chain(l, block, &queue);
	} while (take_next(&queue, l->edges, &block));
}

/* a sub b -> !(a sub b) */
static uint8_t opposite(uint8_t condition)
{
	static const uint8_t opposites[] = {
		[JIT_EQ] = JIT_NE,   [JIT_NE] = JIT_EQ,   [JIT_SET] = JIT_CLEAR,
		[JIT_GT] = JIT_LE,   [JIT_GE] = JIT_LT,   [JIT_LT] = JIT_GE,
		[JIT_LE] = JIT_GT,   [JIT_SGT] = JIT_SLE, [JIT_SGE] = JIT_SLT,
		[JIT_SLT] = JIT_SGE, [JIT_SLE] = JIT_SGT, [JIT_CLEAR] = JIT_SET,
	};

	return opposites[condition];
}

/* Branches go to what does not follow; where neither follows, to what is likelier. */
static void turn_branches(struct layout *l)
{
	struct jit_function *function = l->function;

	for (uint32_t i = 0; i < function->norder; i++) {
		uint32_t at = function->order[i], taken;
		struct jit_block *block = &function->blocks[at];
		struct jit_insn *end = jit_end_of(function, at);

		if (end->op != JIT_BRANCH || l->place[block->next] == i + 1)
			continue;
		if (l->place[block->taken] != i + 1 && key_of(l, at, 1) >= key_of(l, at, 0))
			continue;
		taken = block->taken;
		block->taken = block->next;
		block->next = taken;
		end->sub = opposite(end->sub);
	}
}

size_t jit_layout_size(const struct jit_function *function)
{
	size_t n = function->nblocks + 1, edges = 2 * n + function->ntargets;

	return 4 * n * sizeof(uint32_t) + 2 * n + 2 * edges * sizeof(struct edge) + 64;
}

void jit_lay_out(struct jit_function *function, const struct jit_graph *graph,
		 struct jit_arena arena)
{
	uint32_t n = function->nblocks;
	struct layout l = { .function = function, .graph = graph };

	l.edges = jit_take(&arena, 2 * (size_t)n + function->ntargets + 1, sizeof(*l.edges));
	l.after = jit_take(&arena, n, sizeof(uint32_t));
	l.before = jit_take(&arena, n, sizeof(uint32_t));
	l.chain = jit_take(&arena, n, sizeof(uint32_t));
	l.place = jit_take(&arena, n, sizeof(uint32_t));
	l.keys = jit_take(&arena, n, sizeof(*l.keys));
	memset(l.after, 0xff, n * sizeof(uint32_t));
	memset(l.before, 0xff, n * sizeof(uint32_t));
	memset(l.place, 0xff, n * sizeof(uint32_t));
	for (uint32_t i = 0; i < n; i++)
		l.chain[i] = i;
	sort_edges(&l);
	join_chains(&l);
	order_chains(&l);
	turn_branches(&l);
}
