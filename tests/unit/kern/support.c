// SPDX-License-Identifier: BSD-2-Clause
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
