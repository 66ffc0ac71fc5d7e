// SPDX-License-Identifier: BSD-2-Clause
#include "support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In guests: arm64 ones have no compiler, and under emulation it takes its time. */
static bool read_prebuilt(const char *source, const char *flags, struct buf *image)
{
	const char *folder = getenv("DUET_TEST_OBJECTS"), *number = strstr(flags, "-DCASE=");
	struct err err = { 0 };
	char path[512];

	if (!folder)
		return false;
	snprintf(path, sizeof(path), "%s/%.*s%s.o", folder, (int)strcspn(source, "."), source,
		 number ? number + 7 : "");
	if (buf_read_file(image, path, &err))
		fail_msg("%s", err.text);
	return true;
}

void compile(const char *source, const char *flags, struct buf *image)
{
	static const char *const compilers[] = { "clang-19", "clang-14", "clang" };
	const char *chosen = getenv("DUET_TEST_CLANG");
	char command[2048], path[] = "/tmp/duet-kern-test-XXXXXX";
	int fd = mkstemp(path), code = -1;
	struct err err = { 0 };
	size_t i;

	assert_true(fd >= 0);
	close(fd);
	if (read_prebuilt(source, flags, image)) {
		unlink(path);
		return;
	}
	for (i = 0; i < 3 && code; i++) {
		snprintf(command, sizeof(command),
			 "%s -target bpf -mcpu=v3 -O2 -g -D__TARGET_ARCH_%s "
			 "-I/usr/include/%s-linux-gnu %s -c %s/%s -o %s 2>&1",
			 chosen ? chosen : compilers[i], TARGET_ARCH, TRIPLET_ARCH, flags,
			 SOURCE_DIR, source, path);
		code = system(command);
		if (chosen)
			break;
	}
	if (code)
		fail_msg("cannot compile: %s", command);
	code = buf_read_file(image, path, &err);
	unlink(path);
	if (code)
		fail_msg("%s", err.text);
}
