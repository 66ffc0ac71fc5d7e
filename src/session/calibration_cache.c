// SPDX-License-Identifier: BSD-2-Clause
#include "session/calibration_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "session/internal.h"

/* FNV-1a, 64 bits: a cache key, not a secret. */
static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *byte = data, *end = byte + size;

	for (; byte < end; byte++)
		hash = (hash ^ *byte) * 0x100000001b3ULL;
	return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return mix(hash, text, strlen(text) + 1);
}

/* Where it lies, and whether it will. */
static uint64_t mix_program(uint64_t hash, const struct kern_program *program)
{
	enum kern_program_state state = kern_program_state(program);

	return mix(mix_text(hash, kern_program_section(program)), &state, sizeof(state));
}

static bool cache_path(struct session *session, char *path, size_t size)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	CLEANUP(buf_deinit) struct buf boot = { 0 };
	uint64_t hash = 0xcbf29ce484222325ULL;
	size_t i;

	if (buf_read_file(&boot, "/proc/sys/kernel/random/boot_id", NULL))
		return false;
	hash = mix(hash, boot.data, boot.size);
	hash = mix(hash, session->options->object, session->options->object_size);
	hash = mix_text(hash, session_probe_pid(session) > 0 ? "one process" : "any");
	for (i = 0; i < session->npmus; i++)
		hash = mix_text(mix_text(hash, session->pmus[i].name), session->pmus[i].event);
	for (i = 0; i < kern_program_count(session->kern); i++)
		hash = mix_program(hash, kern_program_at(session->kern, i));
	if (base && base[0] == '/')
		snprintf(path, size, "%s/duet", base);
	else if (home && home[0] == '/')
		snprintf(path, size, "%s/.cache/duet", home);
	else
		return false;
	*strrchr(path, '/') = 0;
	mkdir(path, 0700);
	strcat(path, "/duet");
	mkdir(path, 0700);
	i = strlen(path);
	snprintf(path + i, size - i, "/calibration-%016llx", (unsigned long long)hash);
	return true;
}

static void *memory_of(struct session *session, const struct user_variable *variable)
{
	return (char *)hook_half_data(session->half, variable->data) + variable->offset;
}

bool calibration_cache_read(struct session *session)
{
	const struct user_half *user = session->split.user;
	CLEANUP(buf_deinit) struct buf file = { 0 };
	size_t i, expected = 0, at = 0;
	char path[4096];

	if (!cache_path(session, path, sizeof(path)) || buf_read_file(&file, path, NULL))
		return false;
	for (i = 0; i < user->nvariables; i++)
		expected += session_is_overhead(session, &user->variables[i], NULL, 0)
				    ? user->variables[i].size
				    : 0;
	if (file.size != expected)
		return false;
	for (i = 0; i < user->nvariables; i++) {
		if (!session_is_overhead(session, &user->variables[i], NULL, 0))
			continue;
		memcpy(memory_of(session, &user->variables[i]), file.data + at,
		       user->variables[i].size);
		at += user->variables[i].size;
	}
	return true;
}

void calibration_cache_write(struct session *session)
{
	const struct user_half *user = session->split.user;
	CLEANUP(buf_deinit) struct buf file = { 0 };
	char path[4096], temporary[4160];
	size_t i;
	int fd;

	if (!cache_path(session, path, sizeof(path)))
		return;
	for (i = 0; i < user->nvariables; i++) {
		if (session_is_overhead(session, &user->variables[i], NULL, 0) &&
		    buf_append(&file, memory_of(session, &user->variables[i]),
			       user->variables[i].size))
			return;
	}
	snprintf(temporary, sizeof(temporary), "%s.%d", path, getpid());
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, file.data, file.size) != (ssize_t)file.size || rename(temporary, path))
		unlink(temporary);
	close(fd);
}
