/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks, arguments and options of a script. Part of duet.h.
 *
 *   section			runs					argument
 *   user/open			object read, nothing loaded		const struct duet_options *
 *   user/init			maps exist, nothing attached		const struct duet_options *
 *   user/start			probes attached, workload released	(void)
 *   user/interval[/1s]		periodically (-I; 1 s; or as named)	const struct duet_tick *
 *   user/event/MAP		each record of a RING() or EVENTS()	const struct T *record, u64 size
 *   user/lost			records were lost			const struct duet_lost *
 *   user/child/fork|exec|exit	the target's process tree changes	const struct duet_child *
 *   user/signal/USR1 ...	the signal arrives			const struct duet_signal *
 *   user/exit			every way out				const struct duet_exit *
 *
 * Every hook may also take (void). Returns: 0: go on; negative: an error, which is told (from
 * user/open and user/init it ends duet with status 1, nothing attached; from user/exit the status
 * is 1 too; elsewhere the run goes on); positive: skip the further programs of the hook. Several
 * programs may share a hook; they run in file order, one at a time.
 */
#pragma once

/*
 * ARG(variable, "NAME", "help"): the script's next positional argument sets @variable.
 * OPTION(variable, "name", "help"): --name VALUE sets it. The variable's initialiser is the
 * default. Integers (not plain `const`: use const volatile) take numbers, durations (500us), sizes
 * (64k) and system-call names; char arrays take text, and `$VARIABLE` in a SEC() is that text.
 */
#define ARG(variable, name, help)                                                \
	static const char __duet_argument_##variable[] __DUET_NOTE("argument") = \
		"a\0" #variable "\0" name "\0" help
#define OPTION(variable, name, help)                                             \
	static const char __duet_argument_##variable[] __DUET_NOTE("argument") = \
		"o\0" #variable "\0" name "\0" help

/* set_constant(variable, value): user/open only: gives a `const volatile` variable its value. (The
 * compiler may drop a plain assignment through a cast: the variable is constant to it.) */
#define set_constant(variable, value)                                      \
	({                                                                 \
		__typeof__(variable) __value = (value);                    \
		void *__at = (void *)&(variable);                          \
		barrier_var(__at);                                         \
		__builtin_memcpy(__at, (void *)&__value, sizeof(__value)); \
	})

/* OPTIONAL(program): the kernel program is skipped, with a note, when its target is not there. */
#define OPTIONAL(program) \
	static const char __duet_optional_##program[] __DUET_NOTE("optional") = #program

/* OPTIONS("--flight 5s"): options of `duet record` that the script starts with; the command line
 * overrides them. Once in a script. `duet run` does not read them. */
#define OPTIONS(options) static const char __duet_options[] __DUET_NOTE("options") = options

/* An event that is sampled. Opaque: hand its address to event_*(). */
struct duet_event {
	char name[32];
};

/* RECORD(name, "-e cycles -F 997 -g"): samples an event, with the options of `duet record`; @name
 * is for event_period(&name, ...) and SEC("user/sample/NAME"). */
#define RECORD(name, options)                                                                \
	static const char __duet_record_##name[] __DUET_NOTE("record") = #name "\0" options; \
	const struct duet_event name = { #name }
