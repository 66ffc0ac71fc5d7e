// SPDX-License-Identifier: BSD-2-Clause
/* Places in user programs as text: `BINARY:FUNCTION`, `BINARY:PROVIDER:NAME`. */
#include "kern/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __aarch64__
#define LIBRARY_TRIPLET "aarch64-linux-gnu"
#else
#define LIBRARY_TRIPLET "x86_64-linux-gnu"
#endif

/* The first of the colon-separated folders that has the file. */
static bool find_in(const char *folders, const char *name, int mode, char *path, size_t size)
{
	while (folders && *folders) {
		size_t length = strcspn(folders, ":");

		if (length &&
		    (size_t)snprintf(path, size, "%.*s/%s", (int)length, folders, name) < size &&
		    !access(path, mode))
			return true;
		folders += length + (folders[length] == ':');
	}
	return false;
}

int binary_resolve(const char *name, char *path, size_t size, struct err *err)
{
	static const char libraries[] = "/lib/" LIBRARY_TRIPLET ":/usr/lib/" LIBRARY_TRIPLET
					":/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib";

	if (!name[0])
		return err_set(err, -EINVAL, "no binary named");
	if (strchr(name, '/')) {
		if ((size_t)snprintf(path, size, "%s", name) >= size)
			return err_set(err, -ENAMETOOLONG, "%s: too long", name);
		if (access(path, R_OK))
			return err_set(err, -errno, "%s: %s", path, strerror(errno));
		return 0;
	}
	if (strstr(name, ".so") && (find_in(getenv("LD_LIBRARY_PATH"), name, R_OK, path, size) ||
				    find_in(libraries, name, R_OK, path, size)))
		return 0;
	if (find_in(getenv("PATH"), name, R_OK | X_OK, path, size))
		return 0;
	return err_set(err, -ENOENT,
		       "%s: not found in PATH nor among the libraries: name the "
		       "file with its whole path",
		       name);
}

static int split_binary(const char *text, const char *colon, char *path, size_t size,
			struct err *err)
{
	char name[4096];

	if ((size_t)(colon - text) >= sizeof(name))
		return err_set(err, -ENAMETOOLONG, "%s: too long", text);
	snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
	return binary_resolve(name, path, size, err);
}

int user_place_parse(const char *text, struct user_place *ret, struct err *err)
{
	const char *colon = strrchr(text, ':'), *symbol;
	struct user_place place = { 0 };
	size_t length;
	char *end;
	int code;

	if (!colon || !colon[1])
		return err_set(err, -EINVAL, "%s: not BINARY:FUNCTION or BINARY:OFFSET", text);
	symbol = colon + 1;
	if (symbol[0] >= '0' && symbol[0] <= '9') {
		place.offset = strtoull(symbol, &end, 0);
		length = 0;
	} else {
		length = strcspn(symbol, "+");
		end = "";
		if (symbol[length])
			place.offset = strtoull(symbol + length + 1, &end, 0);
	}
	if (*end || length >= sizeof(place.symbol))
		return err_set(err, -EINVAL, "%s: not BINARY:FUNCTION or BINARY:OFFSET", text);
	snprintf(place.symbol, sizeof(place.symbol), "%.*s", (int)length, symbol);
	code = split_binary(text, colon, place.path, sizeof(place.path), err);
	if (!code)
		*ret = place;
	return code;
}

int usdt_place_parse(const char *text, struct usdt_place *ret, struct err *err)
{
	const char *last = strrchr(text, ':'), *first = last;
	struct usdt_place place = { 0 };
	int code;

	while (first > text && first[-1] != ':')
		first--;
	if (!last || first <= text || !last[1])
		return err_set(err, -EINVAL, "%s: not BINARY:PROVIDER:NAME", text);
	snprintf(place.provider, sizeof(place.provider), "%.*s", (int)(last - first), first);
	snprintf(place.name, sizeof(place.name), "%s", last + 1);
	code = split_binary(text, first - 1, place.path, sizeof(place.path), err);
	if (!code)
		*ret = place;
	return code;
}
