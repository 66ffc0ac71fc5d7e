// SPDX-License-Identifier: BSD-2-Clause
#include "report/emit.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The output formats, in the order of enum report_format. */
static const struct emit_ops *const emitters[] = {
	[REPORT_TEXT] = &emit_text,
	[REPORT_JSON] = &emit_json,
	[REPORT_CSV] = &emit_csv,
};

int report_create(const struct report_options *options, struct report **ret, struct err *err)
{
	CLEANUP(report_destroy_cleanup)
	struct report *report = NULL;
	int code;

	if ((size_t)options->format >= sizeof(emitters) / sizeof(emitters[0]))
		return err_set(err, -EINVAL, "report: no format %d", options->format);
	if (options->separator && strchr("\"\r\n", options->separator))
		return err_set(err, -EINVAL,
			       "-x: a quote or a line break cannot separate columns: try -x,");
	report = calloc(1, sizeof(*report));
	if (!report)
		return err_nomem(err);
	report->options = *options;
	if (!report->options.separator)
		report->options.separator = ',';
	report->ops = emitters[options->format];
	code = report->ops->open(report);
	if (code)
		return err_nomem(err);
	*ret = take_pointer(report);
	return 0;
}

void report_destroy(struct report *report)
{
	if (!report)
		return;
	if (report->ops)
		report->ops->close(report);
	out_deinit(&report->out);
	value_deinit(&report->value);
	free(report);
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN) {
			struct pollfd ready = { .fd = fd, .events = POLLOUT };

			poll(&ready, 1, -1);
			continue;
		}
		if (done < 0)
			return -errno;
		data += done;
		size -= done;
	}
	return 0;
}

/*
 * Past stdio, whose buffer would hide which bytes reached a full disk. What a failed write left
 * behind on a regular file is cut off again: half a JSON line is worse than none.
 */
static int write_document(FILE *file, const char *data, size_t size)
{
	struct stat before, after;
	int fd = fileno(file), code;

	if (fflush(file))
		return -errno;
	if (fd < 0) { /* a memory stream */
		if (fwrite(data, 1, size, file) != size || fflush(file))
			return errno ? -errno : -EIO;
		return 0;
	}
	if (fstat(fd, &before))
		return -errno;
	code = write_all(fd, data, size);
	if (code && S_ISREG(before.st_mode) && !fstat(fd, &after) &&
	    after.st_size > before.st_size && !ftruncate(fd, before.st_size))
		lseek(fd, before.st_size, SEEK_SET);
	return code;
}

int report_commit(struct report *report, struct err *err)
{
	int code = report->out.error;

	if (code)
		err_nomem(err);
	else if (report->out.buf.size) {
		code = write_document(report->options.out, out_text(&report->out),
				      report->out.buf.size);
		if (code)
			err_set(err, code, "output: %s", strerror(-code));
		if (!report->failed)
			report->failed = code;
	}
	out_clear(&report->out);
	return code;
}

void report_limit_rows(struct report *report, size_t rows)
{
	report->most_rows = rows;
}

static const struct report_counter *counter_named(const struct report_counter *counters,
						  size_t ncounters, const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t i;

	if (dot)
		name = dot + 1;
	for (i = 0; i < ncounters; i++) {
		if (counters[i].member && !strcmp(counters[i].member, name))
			return &counters[i];
	}
	return NULL;
}

bool counter_unsupported(const struct report_counter *counters, size_t ncounters, const char *name)
{
	const struct report_counter *counter = counter_named(counters, ncounters, name);

	return counter && !counter->supported;
}

void counter_mark(struct place *place, const struct report_counter *counters, size_t ncounters,
		  const char *name)
{
	const struct report_counter *counter = counter_named(counters, ncounters, name);

	if (!counter)
		return;
	place->unsupported |= !counter->supported;
	place->window = counter->window;
}

int report_value_print(struct report *report, const char *name, const struct types *types,
		       uint32_t type, const void *data, size_t size, struct err *err)
{
	struct source source = { .data = data, .size = size, .stride = size, .cpus = 1 };
	struct place place = { .class = PLACE_BYTES, .bits = size * 8 };

	if (types && type && types_get(types, type))
		place = place_of(types, type, 0, 0);
	/* Too few bytes for the type, or a type without values: the bytes themselves. */
	if (place.class == PLACE_NOTHING || (place.bits + 7) / 8 > size)
		place = (struct place){ .class = PLACE_BYTES, .bits = size * 8 };
	counter_mark(&place, report->options.counters, report->options.ncounters, name);
	report->hist_unit = UNIT_COUNT;
	report->ops->value_begin(report, name);
	emit_place(report, types, &place, &source);
	report->ops->value_end(report);
	return report_commit(report, err);
}

int report_note(struct report *report, const char *text)
{
	report->ops->note(report, text);
	return report_commit(report, NULL);
}

int report_text(struct report *report, const char *data, size_t size)
{
	report->ops->text(report, data, size);
	return report_commit(report, NULL);
}

void report_set_live(struct report *report, bool live)
{
	report->live = live;
}

int report_failed(const struct report *report)
{
	return report->failed;
}

int report_finish(struct report *report, struct err *err)
{
	int code;

	report->ops->finish(report);
	code = report_commit(report, err);
	if (code)
		return code;
	if (fflush(report->options.out))
		return err_set(err, -errno, "output: %s", strerror(errno));
	/* A script may have let it pass. */
	if (report->failed)
		return err_set(err, report->failed, "output: %s", strerror(-report->failed));
	if (ferror(report->options.out))
		return err_set(err, -EIO, "output: %s", strerror(EIO));
	return 0;
}
