// SPDX-License-Identifier: BSD-2-Clause
#include "kern/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

/* The kernel's ENOTSUPP, which must not reach user space and does (fentry on arm64 6.1). */
#define KERNEL_ENOTSUPP 524

/*
 * libbpf's print function gets no context, so who listens is kept here: per thread, and only for
 * the time of one call of this folder.
 */
static __thread struct messages *listener;

const char *kern_errno_text(int code)
{
	code = code < 0 ? -code : code;
	if (code == KERNEL_ENOTSUPP)
		return "not supported by this kernel";
	return strerror(code);
}

void messages_deinit(struct messages *messages)
{
	buf_deinit(&messages->log);
}

void messages_clear(struct messages *messages)
{
	messages->reason[0] = 0;
	messages->program[0] = 0;
	messages->log.size = 0;
	if (messages->log.data)
		messages->log.data[0] = 0;
}

/* Between "-- BEGIN PROG LOAD LOG --" and "-- END PROG LOAD LOG --". */
static bool keep_verifier_log(struct messages *messages, const char *text)
{
	static const char begin[] = "-- BEGIN PROG LOAD LOG --\n",
			  end[] = "-- END PROG LOAD LOG --";
	const char *from = strstr(text, begin), *to;

	if (!from)
		return false;
	from += sizeof(begin) - 1;
	to = strstr(from, end);
	messages->log.size = 0;
	/* Out of memory: the error then has no reason, which is all that can be done. */
	(void)buf_append(&messages->log, from, to ? (size_t)(to - from) : strlen(from));
	sscanf(text, "prog '%63[^']'", messages->program);
	return true;
}

/* Warnings that say nothing to a user, or only repeat what another one said. */
static bool is_noise(const char *text)
{
	static const char *const noise[] = {
		"skipping",
		"failed to load object",
		"failed to load: -",
		"failed to auto-attach",
		"Error in bpf_object__probe_loading",
	};
	size_t i;

	for (i = 0; i < sizeof(noise) / sizeof(noise[0]); i++) {
		if (strstr(text, noise[i]))
			return true;
	}
	return false;
}

static void keep_reason(struct messages *messages, const char *text)
{
	size_t used = strlen(messages->reason), i;

	if (is_noise(text))
		return;
	if (used > sizeof(messages->reason) / 2)
		used = 0;
	snprintf(messages->reason + used, sizeof(messages->reason) - used, "%s%s", used ? "; " : "",
		 text);
	for (i = 0; messages->reason[i]; i++) {
		if (messages->reason[i] == '\n')
			messages->reason[i] = messages->reason[i + 1] ? ' ' : 0;
	}
}

static int libbpf_said(enum libbpf_print_level level, const char *format, va_list args)
{
	CLEANUP(buf_deinit)
	struct buf line = { 0 };
	const char *text;

	if (level == LIBBPF_DEBUG && log_get_level() < LOG_DEBUG)
		return 0;
	if (buf_vprintf(&line, format, args) || !line.size)
		return 0;
	text = line.data + (strncmp(line.data, "libbpf: ", 8) ? 0 : 8);
	if (level == LIBBPF_WARN && listener && !keep_verifier_log(listener, text))
		keep_reason(listener, text);
	if (log_get_level() >= LOG_DEBUG) {
		if (line.data[line.size - 1] == '\n')
			line.data[line.size - 1] = 0;
		log_debug("libbpf: %s", text);
	}
	return 0;
}

struct messages *messages_listen(struct messages *messages)
{
	struct messages *former = listener;

	libbpf_set_print(libbpf_said);
	listener = messages;
	return former;
}
