// SPDX-License-Identifier: BSD-2-Clause
/* The memory of a user half: everything that it points to hangs on one list. */
#include <stdlib.h>
#include <string.h>

#include "obj/splitter.h"

struct piece {
	struct piece *next;
	char bytes[] __attribute__((aligned(16)));
};

struct owned_half {
	struct user_half half; /* first: what the outside has is a pointer to it */
	struct piece *pieces;
};

struct user_half *user_half_create(void)
{
	return calloc(1, sizeof(struct owned_half));
}

void *user_half_copy(struct user_half *user, const void *data, size_t size)
{
	struct owned_half *owned = (struct owned_half *)user;
	struct piece *piece = malloc(sizeof(*piece) + size + 1);

	if (!piece)
		return NULL;
	if (data)
		memcpy(piece->bytes, data, size);
	else
		memset(piece->bytes, 0, size);
	piece->bytes[size] = 0;
	piece->next = owned->pieces;
	owned->pieces = piece;
	return piece->bytes;
}

const char *user_half_string(struct user_half *user, const char *text)
{
	return user_half_copy(user, text, strlen(text));
}

void user_half_free(struct user_half *user)
{
	struct owned_half *owned = (struct owned_half *)user;

	if (!owned)
		return;
	for (size_t i = 0; i < user->ndata; i++)
		free(user->data[i].refs);
	free(user->code);
	free(user->origin);
	free(user->refs);
	free(user->functions);
	free(user->hooks);
	free(user->data);
	free(user->variables);
	free(user->maps);
	free(user->externs);
	free(user->programs);
	free(user->notes);
	while (owned->pieces) {
		struct piece *piece = owned->pieces;

		owned->pieces = piece->next;
		free(piece);
	}
	free(owned);
}
