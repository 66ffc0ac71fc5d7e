// SPDX-License-Identifier: BSD-2-Clause
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *format, ...)
{
	va_list args;

	if (!err)
		return code;
	err->code = code;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return code;
}

int err_prepend(struct err *err, int code, const char *format, ...)
{
	char old[sizeof(err->text)];
	va_list args;
	size_t used;

	if (!err)
		return code;
	memcpy(old, err->text, sizeof(old));
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, "%s%s", old[0] ? ": " : "", old);
	return err->code ? err->code : code;
}

int err_hint(struct err *err, int code, const char *format, ...)
{
	va_list args;
	size_t used;

	if (!err)
		return code;
	used = strlen(err->text);
	if (used + 2 < sizeof(err->text)) {
		memcpy(err->text + used, ": ", 3);
		va_start(args, format);
		vsnprintf(err->text + used + 2, sizeof(err->text) - used - 2, format, args);
		va_end(args);
	}
	return err->code ? err->code : code;
}

int err_nomem(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory");
}
