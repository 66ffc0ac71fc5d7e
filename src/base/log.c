// SPDX-License-Identifier: BSD-2-Clause
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum log_level log_level = LOG_NOTE;

void log_set_level(enum log_level level)
{
	log_level = level;
}

enum log_level log_get_level(void)
{
	return log_level;
}

static void log_line(const char *format, va_list args)
{
	char line[4096] = "duet: ";
	size_t size;

	vsnprintf(line + 6, sizeof(line) - 8, format, args);
	size = strlen(line);
	line[size++] = '\n';
	if (write(STDERR_FILENO, line, size) < 0)
		return; /* nobody is left to be told */
}

#define DEFINE_LOG(name, level)            \
	void name(const char *format, ...) \
	{                                  \
		va_list args;              \
                                           \
		if (log_level < (level))   \
			return;            \
		va_start(args, format);    \
		log_line(format, args);    \
		va_end(args);              \
	}

DEFINE_LOG(log_note, LOG_NOTE)
DEFINE_LOG(log_verbose, LOG_VERBOSE)
DEFINE_LOG(log_debug, LOG_DEBUG)
