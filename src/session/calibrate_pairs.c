// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which programs of a script are a pair. Those at entry and return of one function are. Others are
 * asked: each runs once, and the CALLS() tell whether it begins or ends calls.
 */
#include "session/calibrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum role { ROLE_NONE, ROLE_ENTRY, ROLE_LEAVE };

struct loose {
	size_t index; /* of the program */
	enum role role;
	bool large;    /* needs a tracepoint with a large record */
	char why[200]; /* it could not be asked */
	size_t calls;  /* of which CALLS(): the variable's index */
};

void calibrate_programs(struct calibration *calibration, const struct calibrate_pair *pair,
			struct kern_program **ret)
{
	size_t i;

	for (i = 0; i < pair->count; i++)
		ret[i] = kern_program_at(calibration->kern, pair->index[i]);
	if (pair->asked)
		kern_calibrate_leaves(ret[1]);
}

/* Programs that have nothing to do with calls are left alone: who knows what they do. */
static bool calibrates(struct calibration *calibration, size_t index)
{
	const struct kern_map *totals = kern_map_find(calibration->kern, "__duet_task");
	const struct kern_program *program = kern_program_at(calibration->kern, index);

	return kern_program_target(kern_program_at(calibration->session->kern, index)) &&
	       kern_calibrates(program) && totals && kern_program_uses(program, totals);
}

/* All programs at the target of @index, entries first; the last one is a return if any is. */
static void collect(struct calibration *calibration, size_t index, struct calibrate_pair *ret)
{
	struct kern *real = calibration->session->kern;
	size_t i;
	int returns;

	*ret = (struct calibrate_pair){ .way = KERN_PAIR_CALLS };
	ret->where = kern_program_target(kern_program_at(real, index));
	for (returns = 0; returns < 2; returns++) {
		for (i = 0; i < kern_program_count(real); i++) {
			struct kern_program *program = kern_program_at(real, i);

			if (ret->count < CALIBRATE_PROGRAMS && calibrates(calibration, i) &&
			    kern_program_is_return(program) == returns &&
			    !strcmp(kern_program_target(program), ret->where))
				ret->index[ret->count++] = i;
		}
	}
}

/* Entry and return of one function? */
static bool is_function(struct calibration *calibration, const struct calibrate_pair *pair)
{
	struct kern *real = calibration->session->kern;
	size_t first = pair->index[0], last = pair->index[pair->count - 1];

	return pair->count > 1 && kern_program_is_return(kern_program_at(real, last)) &&
	       kern_pair_of(kern_program_at(real, first), kern_program_at(real, last)) ==
		       KERN_PAIR_CALLS;
}

static int add_pair(struct calibration *calibration, const struct calibrate_pair *pair,
		    struct err *err)
{
	struct calibrate_pairs *pairs = calibration->pairs;
	struct calibrate_pair *new =
		array_grow(&pairs->pair, &pairs->count, &pairs->capacity, sizeof(*new));

	if (!new)
		return err_nomem(err);
	*new = *pair;
	return 0;
}

static void note_role(struct calibration *calibration, struct loose *loose)
{
	const struct user_half *user = calibration->session->split.user;
	char calls[128];
	size_t i;

	for (i = 0; i < user->nvariables && !loose->role; i++) {
		const struct duet_call_stats *stats;

		if (!session_is_overhead(calibration->session, &user->variables[i], calls,
					 sizeof(calls)))
			continue;
		stats = calibrate_stats(calibration, calls);
		if (!stats)
			continue;
		loose->calls = i;
		if (stats->entered)
			loose->role = ROLE_ENTRY;
		else if (stats->left || stats->no_entry)
			loose->role = ROLE_LEAVE;
	}
}

/* What cannot be attached there has no role. */
static int ask(struct calibration *calibration, struct loose *loose, struct err *err)
{
	struct kern_calibrate_run run = {
		.calls = 1,
		.own_process = session_probe_pid(calibration->session) > 0,
	};
	struct kern_program *program = kern_program_at(calibration->kern, loose->index);
	struct err why = { 0 };
	int code = calibrate_clear(calibration, err);

	if (code)
		return code;
	code = kern_calibrate(&program, 1, &run, &why);
	if (code == -EACCES) { /* it reads more than a small record has */
		run.large = loose->large = true;
		code = kern_calibrate(&program, 1, &run, &why);
	}
	if (code) {
		snprintf(loose->why, sizeof(loose->why), "%s", why.text);
		return 0;
	}
	code = calibrate_read_memory(calibration);
	if (!code)
		note_role(calibration, loose);
	return code;
}

/* Ends what the questions began: only then a call is alone. */
static int end_calls(struct calibration *calibration, const struct calibrate_pair *pair,
		     size_t count, struct err *err)
{
	const struct kern_calibrate_run run = {
		.calls = count,
		.large = pair->large,
		.own_process = session_probe_pid(calibration->session) > 0,
	};
	struct kern_program *programs[CALIBRATE_PROGRAMS];

	calibrate_programs(calibration, pair, programs);
	return kern_calibrate(&programs[1], 1, &run, err);
}

/* No pair is known for the CALLS() of @loose, or it is not even known which one it uses. */
static void tell_unknown(struct calibration *calibration, const struct loose *loose)
{
	struct kern_program *program = kern_program_at(calibration->session->kern, loose->index);
	const char *why = "no program of the same kind is its counterpart";

	if (loose->why[0])
		why = loose->why;
	else if (!loose->role)
		why = "it counts no call where it is tried";
	log_note("program %s (%s): the cost of its probe is not known and not subtracted: %s",
		 kern_program_name(program), kern_program_section(program), why);
}

static bool is_taken(const struct calibrate_pairs *pairs, size_t from, size_t index)
{
	for (; from < pairs->count; from++) {
		if (pairs->pair[from].index[0] == index || pairs->pair[from].index[1] == index)
			return true;
	}
	return false;
}

/* The first entry and the first return of each CALLS() that agree. */
static int match(struct calibration *calibration, const struct loose *loose, size_t count,
		 struct err *err)
{
	struct kern *real = calibration->session->kern;
	size_t i, k, from = calibration->pairs->count;
	int code = 0;

	for (i = 0; i < count * count && !code; i++) {
		const struct loose *entry = &loose[i / count], *leave = &loose[i % count];
		struct calibrate_pair pair = { .index = { entry->index, leave->index },
					       .count = 2,
					       .asked = true };

		if (entry->role != ROLE_ENTRY || leave->role != ROLE_LEAVE ||
		    entry->calls != leave->calls ||
		    is_taken(calibration->pairs, from, entry->index) ||
		    is_taken(calibration->pairs, from, leave->index))
			continue;
		pair.way = kern_pair_of(kern_program_at(real, entry->index),
					kern_program_at(real, leave->index));
		pair.where = kern_program_target(kern_program_at(real, entry->index));
		pair.large = entry->large || leave->large ||
			     kern_program_has_large_record(kern_program_at(real, leave->index));
		pair.raw_syscalls = kern_pair_is_of_all_syscalls(
			kern_program_at(real, entry->index), kern_program_at(real, leave->index));
		if (pair.way)
			code = add_pair(calibration, &pair, err);
	}
	for (i = 0; i < count && !code; i++) {
		if (!is_taken(calibration->pairs, from, loose[i].index))
			tell_unknown(calibration, &loose[i]);
	}
	for (k = from; k < calibration->pairs->count && !code; k++)
		code = end_calls(calibration, &calibration->pairs->pair[k], count, err);
	return code;
}

int calibrate_find_pairs(struct calibration *calibration, struct err *err)
{
	size_t count = kern_program_count(calibration->session->kern), i, nloose = 0;
	CLEANUP(free_pointer) struct loose *loose = calloc(count + 1, sizeof(*loose));
	struct calibrate_pair pair;
	int code = 0;

	if (!loose)
		return err_nomem(err);
	for (i = 0; i < count && !code; i++) {
		if (!calibrates(calibration, i))
			continue;
		collect(calibration, i, &pair);
		if (!is_function(calibration, &pair))
			loose[nloose++].index = i;
		else if (pair.index[0] == i)
			code = add_pair(calibration, &pair, err);
	}
	for (i = 0; i < nloose && !code; i++)
		code = ask(calibration, &loose[i], err);
	return code ? code : match(calibration, loose, nloose, err);
}
