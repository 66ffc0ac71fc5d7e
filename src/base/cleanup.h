/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cleanup attributes: a variable releases what it owns when it goes out of scope.
 *
 *	CLEANUP(free_pointer) char *name = strdup(text);
 *	CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
 *	...
 *	return take_pointer(name);	// gives the ownership away
 *
 * Never mix with `goto out` in one function.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

static inline void free_pointer(void *pointer)
{
	free(*(void **)pointer);
}

static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* Returns the value and leaves NULL (or -1) behind, so that the cleanup does nothing. */
#define take_pointer(pointer)                            \
	({                                               \
		__typeof__(pointer) __taken = (pointer); \
		(pointer) = NULL;                        \
		__taken;                                 \
	})
#define take_fd(fd)                 \
	({                          \
		int __taken = (fd); \
		(fd) = -1;          \
		__taken;            \
	})

/* Defines `NAME_cleanup(T *)`, which calls @release on the pointer; @release accepts NULL. */
#define DEFINE_CLEANUP(type, release)                       \
	static inline void release##_cleanup(type *pointer) \
	{                                                   \
		release(*pointer);                          \
	}                                                   \
	struct __swallow_semicolon
