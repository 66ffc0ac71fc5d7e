// SPDX-License-Identifier: BSD-2-Clause
/*
 * Event text to attr. The grammar is perf's:
 *	NAME[:MODIFIERS]  NAME/TERMS/[MODIFIERS]  PMU/TERMS/[MODIFIERS]  SUBSYSTEM:EVENT[:MODIFIERS]
 *	mem:ADDRESS[/BYTES][:ACCESS][:MODIFIERS]  LIBPFM4-NAME[:UMASK...][:MODIFIERS]
 */
#include "pmu/parser.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int pmu_refuse(const struct pmu_parser *parser, int code, const char *format, ...)
{
	char why[800];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	return err_set(parser->err, code, "event '%s': %s", parser->text, why);
}

static void offer_name(void *context, const char *name)
{
	if (!pmu_sysfs_is_detail(name))
		nearest_offer(context, name);
}

/* Kinds of PMUs that a machine may lack without the text being wrong. */
static const char *const known_pmus[] = {
	"cpu",  "cpu_core", "cpu_atom", "cpu_lowpower", "armv",  "arm_", "apple_",
	"amd_", "uncore_",  "ibs_",     "intel_",       "power", "msr",  "cstate_",
	"i915", "smmuv3_",  "hv_",      "nvidia_",      "hisi_",
};

static bool pmu_is_known(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(known_pmus) / sizeof(known_pmus[0]); i++) {
		size_t size = strlen(known_pmus[i]);
		bool family = known_pmus[i][size - 1] == '_' || !strcmp(known_pmus[i], "armv");

		if (family ? !strncmp(name, known_pmus[i], size) : !strcmp(name, known_pmus[i]))
			return true;
	}
	return false;
}

/* A generic name, a cache event or rHEX: 0, -ENOENT, or -EINVAL with the reason. The canonical
 * name replaces @name (of @size). */
static int parse_generic(const struct pmu_parser *parser, char *name, size_t size)
{
	struct pmu_event *event = parser->event;
	const struct pmu_name *row = pmu_name_find(name, strlen(name));
	struct err why = { 0 };
	uint64_t config;
	int code;

	if (row) {
		event->attr.type = row->type;
		event->attr.config = row->config;
		event->software = row->type == PERF_TYPE_SOFTWARE;
		snprintf(event->unit, sizeof(event->unit), "%s", row->unit);
		snprintf(name, size, "%s", row->name);
		return 0;
	}
	code = pmu_cache_find(name, strlen(name), &config, name, size, &why);
	if (!code) {
		event->attr.type = PERF_TYPE_HW_CACHE;
		event->attr.config = config;
		return 0;
	}
	if (code == -EINVAL)
		return pmu_refuse(parser, code, "%s", why.text);
	if (!pmu_parse_raw(name, &config))
		return -ENOENT;
	event->attr.type = PERF_TYPE_RAW;
	event->attr.config = config;
	return 0;
}

static int parse_tracepoint(const struct pmu_parser *parser, const char *subsystem,
			    const char *name)
{
	struct pmu_event *event = parser->event;
	char text[32], *end;

	if (!pmu_sysfs_name_ok(subsystem) || !pmu_sysfs_name_ok(name) ||
	    pmu_read_file(text, sizeof(text), "%s/events/%s/%s/id", parser->system->tracefs,
			  subsystem, name) < 0)
		return -ENOENT;
	event->attr.type = PERF_TYPE_TRACEPOINT;
	event->attr.config = strtoull(text, &end, 10);
	event->software = true;
	return end == text || *end ? -ENOENT : 0;
}

static void offer_cache(void *context, const char *name)
{
	nearest_offer(context, name);
}

struct offer_events {
	const struct pmu_system *system;
	struct nearest *nearest;
};

static void offer_pmu_events(void *context, const char *pmu)
{
	struct offer_events *offer = context;
	char directory[320];

	snprintf(directory, sizeof(directory), "%s/events", pmu);
	pmu_sysfs_each(offer->system, directory, offer_name, offer->nearest);
}

static int unknown_name(const struct pmu_parser *parser, const char *name)
{
	const struct pmu_name *row;
	struct nearest nearest;
	struct offer_events offer = { parser->system, &nearest };
	char near[400];

	nearest_init(&nearest, name);
	for (row = pmu_names; row->name; row++) {
		nearest_offer(&nearest, row->name);
		if (row->alias)
			nearest_offer(&nearest, row->alias);
	}
	pmu_cache_each(offer_cache, &nearest);
	pmu_sysfs_each(parser->system, "", offer_pmu_events, &offer);
	nearest_text(&nearest, near, sizeof(near));
	return pmu_refuse(parser, -ENOENT, "there is no such event: %s%s%s",
			  *near ? "did you mean " : "duet list events shows them", near,
			  *near ? "?" : "");
}

static int unknown_pmu(const struct pmu_parser *parser, const char *name)
{
	struct nearest nearest;
	char near[400];

	nearest_init(&nearest, name);
	pmu_sysfs_each(parser->system, "", offer_name, &nearest);
	nearest_text(&nearest, near, sizeof(near));
	return pmu_refuse(parser, -ENOENT, "there is no PMU '%s': %s%s%s", name,
			  *near ? "did you mean " : "see /sys/bus/event_source/devices", near,
			  *near ? "?" : "");
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* An event of some PMU's events/ by its bare name, as `perf list` shows those of the CPU. */
static int parse_bare_alias(const struct pmu_parser *parser, const char *name)
{
	struct pmu_term alias = { .at = 0 };
	char pmu[sizeof(parser->event->pmu)];
	int code;

	if (strlen(name) >= sizeof(alias.name))
		return -ENOENT;
	code = pmu_sysfs_find_alias(parser->system, name, pmu, sizeof(pmu));
	if (!code)
		code = pmu_sysfs_init(parser->system, pmu, parser->event);
	if (code)
		return code;
	memcpy(alias.name, name, strlen(name) + 1);
	return pmu_apply_alias(parser, &alias, &alias, 1);
}

/* Cuts @name out of the text, up to @end. */
static void take_name(const struct pmu_parser *parser, const char *end, char *name, size_t size)
{
	snprintf(name, size, "%.*s", (int)(end - parser->text), parser->text);
}

/* SUBSYSTEM:EVENT[:MODIFIERS]; *end is behind EVENT. */
static int parse_two_words(const struct pmu_parser *parser, const char *colon, const char **end)
{
	char subsystem[sizeof(parser->event->text)], name[sizeof(parser->event->text)];

	if (!*colon || pmu_is_modifiers(colon + 1))
		return -ENOENT;
	*end = strchrnul(colon + 1, ':');
	take_name(parser, colon, subsystem, sizeof(subsystem));
	snprintf(name, sizeof(name), "%.*s", (int)(*end - colon - 1), colon + 1);
	return parse_tracepoint(parser, subsystem, name);
}

/* What follows the last colon may be modifiers; the rest, unit masks and all, is libpfm4's. */
static int parse_other_name(const struct pmu_parser *parser, const char **end)
{
	const char *last = strrchr(parser->text, ':');
	char name[sizeof(parser->event->text)];
	struct err why = { 0 };
	int code;

	if (!last || !last[1] || !pmu_is_modifiers(last + 1) || last[-1] == ':')
		last = strchr(parser->text, 0);
	take_name(parser, last, name, sizeof(name));
	*end = last;
	code = pmu_parse_pfm(parser, name, &why);
	return code == -EINVAL ? pmu_refuse(parser, code, "%s", why.text) : code;
}

/* All names without slashes. */
static int parse_plain(const struct pmu_parser *parser)
{
	struct pmu_event *event = parser->event;
	const char *colon = strchrnul(parser->text, ':'), *end = colon;
	char name[sizeof(event->text)];
	int code;

	take_name(parser, colon, name, sizeof(name));
	if (!*name)
		return pmu_refuse(parser, -EINVAL, "a name is missing");
	code = parse_generic(parser, name, sizeof(name));
	if (code == -ENOENT)
		code = parse_bare_alias(parser, name);
	if (code == -ENOENT) {
		code = parse_two_words(parser, colon, &end);
		if (code == -ENOENT)
			code = parse_other_name(parser, &end);
		if (!code)
			take_name(parser, end, name, sizeof(name));
	}
	if (code == -ENOENT && *colon && !pmu_is_modifiers(colon + 1))
		return pmu_refuse(parser, -ENOENT,
				  "there is no tracepoint of this name in %s, and no such event",
				  parser->system->tracefs);
	if (code == -ENOENT)
		return unknown_name(parser, name);
	if (code)
		return code;
	end += *end == ':';
	code = pmu_parse_modifiers(parser, end);
	if (!code && snprintf(event->text, sizeof(event->text), "%s%s%s", name, *end ? ":" : "",
			      end) >= (int)sizeof(event->text))
		return pmu_refuse(parser, -EINVAL, "its full name is too long");
	return code;
}

/* NAME/TERMS/[MODIFIERS] */
static int parse_slashes(const struct pmu_parser *parser, const char *slash)
{
	struct pmu_event *event = parser->event;
	const char *body = slash + 1, *close = strchr(body, '/');
	struct pmu_term terms[PMU_TERMS_MAX];
	char name[sizeof(event->text)];
	size_t count;
	int code;

	snprintf(name, sizeof(name), "%.*s", (int)(slash - parser->text), parser->text);
	if (!close)
		return pmu_refuse(parser, -EINVAL, "the '/' at character %zu is not closed",
				  slash - parser->text + 1);
	if (!*name)
		return pmu_refuse(parser, -EINVAL, "a PMU's name is missing in front of '/'");
	code = pmu_split_terms(parser, body, close - body, body - parser->text, terms, &count);
	if (code)
		return code;
	snprintf(event->text, sizeof(event->text), "%s", parser->text);
	code = parse_generic(parser, name, sizeof(name));
	if (code == -ENOENT && strlen(name) < sizeof(event->pmu)) {
		code = pmu_sysfs_init(parser->system, name, event);
		if (code && pmu_sysfs_name_ok(name) && pmu_is_known(name)) {
			snprintf(event->missing, sizeof(event->missing), "there is no PMU %s here",
				 name);
			memcpy(event->pmu, name, strlen(name) + 1);
			code = 0;
		}
	}
	if (code)
		return code == -EINVAL ? code : unknown_pmu(parser, name);
	code = pmu_apply_terms(parser, terms, count);
	return code ? code : pmu_parse_modifiers(parser, close + 1);
}

int pmu_parse_on(const struct pmu_system *system, const char *text, struct pmu_event *ret,
		 struct err *err)
{
	struct pmu_event event = { .scale = 1, .attr.size = sizeof(event.attr) };
	struct pmu_parser parser = { pmu_system_or_this(system), text, &event, err };
	const char *at, *slash = strchr(text, '/');
	int code;

	if (!*text)
		return err_set(err, -EINVAL, "event: the name is empty");
	if (strlen(text) >= sizeof(event.text))
		return err_set(err, -EINVAL, "event '%.60s...': longer than %zu characters", text,
			       sizeof(event.text) - 1);
	for (at = text; *at; at++) {
		if (!isgraph((unsigned char)*at))
			return err_set(
				err, -EINVAL,
				"event: character %zu is a blank or not printable: one event "
				"is one word",
				at - text + 1);
	}
	if (*text == '{')
		return pmu_refuse(&parser, -EOPNOTSUPP,
				  "groups in braces are not supported here: "
				  "use PMU_GROUP()");
	if (pmu_is_breakpoint(text))
		code = pmu_parse_breakpoint(&parser);
	else
		code = slash ? parse_slashes(&parser, slash) : parse_plain(&parser);
	if (!code)
		*ret = event;
	return code;
}

int pmu_parse(const char *text, struct pmu_event *ret, struct err *err)
{
	return pmu_parse_on(NULL, text, ret, err);
}

int pmu_parse_sampling(const char *text, struct pmu_event *event, struct pmu_rate *rate,
		       struct err *err)
{
	const char *sign = strchrnul(text, '@');
	struct pmu_event parsed;
	char name[512];
	uint64_t freq = 0;
	int code;

	if (*sign && (pmu_parse_number(sign + 1, &freq) || !freq))
		return err_set(err, -EINVAL,
			       "event '%s': '%s' at character %zu is no frequency: EVENT@HZ", text,
			       sign + 1, sign - text + 2);
	if (sign - text >= (ptrdiff_t)sizeof(name))
		return err_set(err, -EINVAL, "event '%.60s...': too long", text);
	snprintf(name, sizeof(name), "%.*s", (int)(sign - text), text);
	code = pmu_parse(name, &parsed, err);
	if (code)
		return code;
	*rate = (struct pmu_rate){ 0 };
	if (freq)
		rate->freq = freq;
	else if (parsed.period)
		rate->period = parsed.period;
	else
		rate->freq = parsed.freq ? parsed.freq : PMU_DEFAULT_FREQ;
	*event = parsed;
	return 0;
}
