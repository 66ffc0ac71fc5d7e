/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small process that outlives us by a moment: when we are gone, however we went, it removes our
 * entries from tracefs. It ignores the terminal's signals and holds none of our descriptors.
 */
#pragma once

struct watcher {
	int fd; /* our end of a socket pair; its end of file tells either that the other went */
};

/* @root, @owner: see tracefs_remove_owned(). 0 or -errno. */
int watcher_start(struct watcher *watcher, const char *root, const char *owner);
/* Lets it go and waits until it is gone. */
void watcher_stop(struct watcher *watcher);
