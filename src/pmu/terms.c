// SPDX-License-Identifier: BSD-2-Clause
/* Terms inside slashes: common to all PMUs, and those that sysfs describes. */
#include "pmu/parser.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pmu_parse_number(const char *text, uint64_t *ret)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	char *end;

	if (!isxdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(digits, &end, hex ? 16 : 10); /* perf takes 010 as ten */
	return errno || *end ? -EINVAL : 0;
}

bool pmu_parse_raw(const char *text, uint64_t *ret)
{
	const char *digits = text + 1;

	if (*text != 'r' || !*digits || strlen(digits) > 16 ||
	    digits[strspn(digits, "0123456789abcdefABCDEF")])
		return false;
	*ret = strtoull(digits, NULL, 16);
	return true;
}

static int term_number(const struct pmu_parser *parser, const struct pmu_term *term, uint64_t *ret)
{
	if (!term->has_value)
		return pmu_refuse(parser, -EINVAL, "term '%s' at character %zu needs a value",
				  term->name, term->at + 1);
	if (pmu_parse_number(term->value, ret))
		return pmu_refuse(parser, -EINVAL, "'%s' at character %zu is no number of 64 bits",
				  term->value, term->at + strlen(term->name) + 2);
	return 0;
}

/* Terms that mean the same for every PMU. */
enum common_term {
	TERM_NAME,
	TERM_CONFIG,
	TERM_CONFIG1,
	TERM_CONFIG2,
	TERM_PERIOD,
	TERM_FREQ,
	TERM_LATER, /* known to perf; here options of `duet record` or none at all */
};
static const struct {
	const char *name;
	enum common_term term;
} common_terms[] = {
	{ "name", TERM_NAME },
	{ "config", TERM_CONFIG },
	{ "config1", TERM_CONFIG1 },
	{ "config2", TERM_CONFIG2 },
	{ "period", TERM_PERIOD },
	{ "freq", TERM_FREQ },
	{ "config3", TERM_LATER },
	{ "branch_type", TERM_LATER },
	{ "time", TERM_LATER },
	{ "call-graph", TERM_LATER },
	{ "stack-size", TERM_LATER },
	{ "inherit", TERM_LATER },
	{ "no-inherit", TERM_LATER },
	{ "max-stack", TERM_LATER },
	{ "nr", TERM_LATER },
	{ "overwrite", TERM_LATER },
	{ "no-overwrite", TERM_LATER },
	{ "driver-config", TERM_LATER },
	{ "percore", TERM_LATER },
	{ "aux-output", TERM_LATER },
	{ "aux-sample-size", TERM_LATER },
};

static int apply_common_term(const struct pmu_parser *parser, const struct pmu_term *term,
			     enum common_term kind)
{
	struct pmu_event *event = parser->event;
	uint64_t number = 0;
	int code;

	if (kind == TERM_LATER)
		return pmu_refuse(parser, -EOPNOTSUPP,
				  "term '%s' at character %zu is not supported in an event",
				  term->name, term->at + 1);
	if (kind == TERM_NAME) {
		if (!term->value[0])
			return pmu_refuse(parser, -EINVAL, "name= at character %zu needs a name",
					  term->at + 1);
		snprintf(event->text, sizeof(event->text), "%s", term->value);
		return 0;
	}
	code = term_number(parser, term, &number);
	if (code)
		return code;
	if ((kind == TERM_PERIOD || kind == TERM_FREQ) && !number)
		return pmu_refuse(parser, -EINVAL, "%s=0 at character %zu: must be above 0",
				  term->name, term->at + 1);
	if (kind == TERM_CONFIG)
		event->attr.config = number;
	else if (kind == TERM_CONFIG1)
		event->attr.config1 = number;
	else if (kind == TERM_CONFIG2)
		event->attr.config2 = number;
	else if (kind == TERM_PERIOD)
		event->period = number;
	else
		event->freq = number;
	return 0;
}

static void offer_name(void *context, const char *name)
{
	if (!pmu_sysfs_is_detail(name))
		nearest_offer(context, name);
}

static int unknown_term(const struct pmu_parser *parser, const struct pmu_term *term)
{
	const char *pmu = parser->event->pmu;
	struct nearest nearest;
	char directory[96], near[400];

	if (!*pmu)
		return pmu_refuse(
			parser, -ENOENT,
			"'%s' at character %zu is no term of a generic event: known are name, "
			"config, config1, config2, period, freq",
			term->name, term->at + 1);
	nearest_init(&nearest, term->name);
	snprintf(directory, sizeof(directory), "%s/format", pmu);
	pmu_sysfs_each(parser->system, directory, offer_name, &nearest);
	snprintf(directory, sizeof(directory), "%s/events", pmu);
	pmu_sysfs_each(parser->system, directory, offer_name, &nearest);
	nearest_text(&nearest, near, sizeof(near));
	return pmu_refuse(parser, -ENOENT,
			  "PMU %s has no term or event '%s' (character %zu): %s%s%s", pmu,
			  term->name, term->at + 1,
			  *near ? "did you mean " : "duet list events shows its events", near,
			  *near ? "?" : "");
}

static int apply_terms(const struct pmu_parser *parser, const struct pmu_term *terms, size_t count,
		       const struct pmu_term *users, size_t user_count);

/* An alias of events/: its terms stand in for it. `?` there must be given by the user. */
int pmu_apply_alias(const struct pmu_parser *parser, const struct pmu_term *alias,
		    const struct pmu_term *users, size_t user_count)
{
	struct pmu_term terms[PMU_TERMS_MAX];
	char body[512];
	size_t count, i, j;
	int code = pmu_sysfs_alias(parser->system, parser->event->pmu, alias->name, body,
				   sizeof(body), parser->event);

	if (code < 0)
		return code == -ENOENT
			       ? unknown_term(parser, alias)
			       : pmu_refuse(parser, code, "events/%s of PMU %s: %s", alias->name,
					    parser->event->pmu, strerror(-code));
	code = pmu_split_terms(parser, body, strlen(body), alias->at, terms, &count);
	for (i = 0; !code && i < count; i++) {
		terms[i].at = alias->at;
		if (strcmp(terms[i].value, "?"))
			continue;
		for (j = 0; j < user_count && strcmp(users[j].name, terms[i].name); j++)
			;
		if (j == user_count)
			return pmu_refuse(parser, -EINVAL, "%s needs a value for %s: add %s=NUMBER",
					  alias->name, terms[i].name, terms[i].name);
		terms[i] = users[j];
	}
	return code ? code : apply_terms(parser, terms, count, NULL, 0);
}

/* A term of the PMU itself: a format, an alias, or rHEX. */
static int apply_pmu_term(const struct pmu_parser *parser, const struct pmu_term *term,
			  const struct pmu_term *users, size_t user_count)
{
	struct pmu_event *event = parser->event;
	uint64_t value = 1, max;
	int code;

	if (term->has_value) {
		code = term_number(parser, term, &value);
		if (code)
			return code;
	}
	if (*event->missing)
		return 0; /* nobody can tell its terms here */
	code = pmu_sysfs_set_term(parser->system, event->pmu, term->name, value, &event->attr,
				  &max);
	switch (code) {
	case 0:
		return 0;
	case -ENOENT:
		break;
	case -ERANGE:
		return pmu_refuse(parser, -EINVAL,
				  "%s=%s at character %zu is too large: at most %#llx", term->name,
				  term->value, term->at + 1, (unsigned long long)max);
	default:
		return pmu_refuse(parser, code, "format/%s of PMU %s: %s", term->name, event->pmu,
				  code == -EBADMSG ? "not understood" : strerror(-code));
	}
	if (term->has_value)
		return unknown_term(parser, term);
	if (!users) /* aliases do not nest */
		return unknown_term(parser, term);
	if (!pmu_generic_of(parser->system, event->pmu, term->name, &event->attr))
		return 0;
	code = pmu_apply_alias(parser, term, users, user_count);
	if (code == -ENOENT && pmu_parse_raw(term->name, &value)) {
		event->attr.config = value;
		return 0;
	}
	return code;
}

static int apply_terms(const struct pmu_parser *parser, const struct pmu_term *terms, size_t count,
		       const struct pmu_term *users, size_t user_count)
{
	const size_t commons = sizeof(common_terms) / sizeof(common_terms[0]);
	size_t i, j;
	int code;

	for (i = 0; i < count; i++) {
		for (j = 0; j < commons && strcmp(common_terms[j].name, terms[i].name); j++)
			;
		if (j < commons)
			code = apply_common_term(parser, &terms[i], common_terms[j].term);
		else if (*parser->event->pmu)
			code = apply_pmu_term(parser, &terms[i], users, user_count);
		else
			code = unknown_term(parser, &terms[i]);
		if (code)
			return code;
	}
	return 0;
}

static bool value_character(char c)
{
	return isalnum((unsigned char)c) || strchr("_-.?", c);
}

int pmu_split_terms(const struct pmu_parser *parser, const char *body, size_t size, size_t at,
		    struct pmu_term *terms, size_t *count)
{
	size_t start = 0;

	*count = 0;
	while (size) {
		struct pmu_term *term = &terms[*count];
		const char *comma = memchr(body + start, ',', size - start);
		size_t end = comma ? (size_t)(comma - body) : size, i = start, n = 0;

		if (*count == PMU_TERMS_MAX)
			return pmu_refuse(parser, -EINVAL, "more than %d terms", PMU_TERMS_MAX);
		*term = (struct pmu_term){ .at = at + start };
		while (i < end && value_character(body[i]) && body[i] != '?' &&
		       n < sizeof(term->name) - 1)
			term->name[n++] = body[i++];
		if (i < end && body[i] == '=' && n) {
			term->has_value = true;
			for (i++, n = 0;
			     i < end && value_character(body[i]) && n < sizeof(term->value) - 1;)
				term->value[n++] = body[i++];
		}
		if (!n)
			return pmu_refuse(parser, -EINVAL, "a term%s is missing at character %zu",
					  term->has_value ? "'s value" : "", at + i + 1);
		if (i < end)
			return pmu_refuse(parser, -EINVAL, "unexpected '%c' at character %zu",
					  body[i], at + i + 1);
		(*count)++;
		if (!comma)
			return 0;
		start = end + 1;
	}
	return 0;
}

int pmu_apply_terms(const struct pmu_parser *parser, const struct pmu_term *terms, size_t count)
{
	return apply_terms(parser, terms, count, terms, count);
}
