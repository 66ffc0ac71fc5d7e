#!/bin/bash
# TAP: records on their way to user/event: each is handed out once, whatever its program does.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# 5,000 records 0, 1, 2 ..., written while nobody reads, then `user/exit` tells what came.
script() { # NAME: the programs of user/event on stdin; they count in seen and sum
	{
		cat <<'END'
#include <duet.h>
struct item { u64 number; };
RING(items, 1 << 20);
HASH(big, 4, u32, struct { u8 bytes[65536]; });
u64 next;
static u64 seen, sum, second;
SEC("raw_tp") int fill(void *ctx)
{
	for (int i = 0; i < 1000; i++) {
		/* It runs once more at the end. */
		struct item *item = next < 5000 ? bpf_ringbuf_reserve(&items, sizeof(*item), 0) : NULL;
		if (!item)
			return 0;
		item->number = next++;
		bpf_ringbuf_submit(item, 0);
	}
	return 0;
}
SEC("user/start") int start(void)
{
	for (int i = 0; i < 5; i++)
		probe_run(fill, 0);
	fprintf(stderr, "ready\n");
	return 0;
}
SEC("user/exit") int told(const struct duet_exit *e)
{
	printf("seen %llu sum %llu second %llu\n", seen, sum, second);
	return 0;
}
END
		cat
	} >"$work/$1.c"
}

script plain <<'END'
SEC("user/event/items") int event(const struct item *item, u64 size)
{
	seen += size == 8;
	sum += item->number;
	return seen == 5000 ? duet_stop(0) : 0;
}
END
t "every record comes once" 0 'out=seen 5000 sum 12497500 second 0' -- "$duet" run -q "$work/plain.c"
t "in checked mode too" 0 'out=seen 5000 sum 12497500 second 0' -- \
	"$duet" run -q --checked "$work/plain.c"

script fault <<'END'
SEC("user/event/items") int event(const struct item *item, u64 size)
{
	seen++;
	if (item->number == 3210)
		return *(volatile int *)4;
	sum += item->number;
	return 0;
}
END
t "a fault in one is the last: those before it do not come again" 1 \
	'out~^seen 3211 sum 5150445 second 0$' 'err~user/event/items: read of 4 bytes at 0x4' -- \
	"$duet" run -q "$work/fault.c"

script results <<'END'
SEC("user/event/items") int event(const struct item *item, u64 size)
{
	seen++;
	sum += item->number;
	if (seen == 5000)
		duet_stop(0);
	return item->number % 5 == 1 ? 1 : item->number % 5 == 2 ? -EAGAIN : 0;
}
SEC("user/event/items") int behind(const struct item *item, u64 size) { second++; return 0; }
END
t "two programs: a positive number skips the second, a negative one is told once" 0 \
	'out=seen 5000 sum 12497500 second 4000' 'err~event: user/event/items returned -11' -- \
	"$duet" run "$work/results.c"

script negative <<'END'
SEC("user/event/items") int event(const struct item *item, u64 size)
{
	seen++;
	sum += item->number;
	return seen == 5000 ? duet_stop(0) : -EAGAIN;
}
END
t "one program: a negative number is told once" 0 \
	'out=seen 5000 sum 12497500 second 0' 'err~event: user/event/items returned -11' -- \
	"$duet" run "$work/negative.c"

script stop <<'END'
SEC("user/event/items") int event(const struct item *item, u64 size)
{
	seen++;
	if (item->number == 1234) {
		duet_stop(3);
		second = next;
	}
	sum += item->number;
	return 0;
}
END
t "the end in the middle: the rest comes before user/exit" 3 'out=seen 5000 sum 12497500 second 5000' -- \
	"$duet" run -q "$work/stop.c"

# 5,000 snapshots of 64 kB are more than there is room for at once.
script snapshots <<'END'
SEC("user/init") int init(void)
{
	static u8 bytes[65536];
	u32 key = 1;

	bytes[7] = 1;
	return bpf_map_update_elem(&big, &key, bytes, 0);
}
SEC("user/event/items") int event(const struct item *item, u64 size)
{
	u32 key = 1;
	const u8 *bytes = bpf_map_lookup_elem(&big, &key);

	seen += bytes && bytes[7] == 1;
	return item->number == 4999 ? duet_stop(0) : 0;
}
END
t "what a look-up gave lasts for one record" 0 'out=seen 5000 sum 0 second 0' -- \
	"$duet" run -q "$work/snapshots.c"

script text <<'END'
SEC("user/event/items") int event(const struct item *item, u64 size)
{
	seen++;
	sum += item->number;
	if (item->number % 1000 == 0)
		printf("at %llu\n", item->number);
	return seen == 5000 ? duet_stop(0) : 0;
}
END
t "what is printed comes in order" 0 -- "$duet" run -q "$work/text.c"
[ "$(tr '\n' ' ' <"$work/out")" = "at 0 at 1000 at 2000 at 3000 at 4000 seen 5000 sum 12497500 second 0 " ]
ok "... before what comes after"

script endless <<'END'
SEC("user/event/items") int event(const struct item *item, u64 size)
{
	volatile u64 forever = 1;

	seen++;
	while (item->number == 2000 && forever)
		;
	return 0;
}
END
"$duet" run -q "$work/endless.c" >"$work/out" 2>"$work/err" &
child=$!
for ((i = 0; i < 200; i++)); do
	! grep -q ready "$work/err" || break
	sleep 0.1
done
sleep 0.2
kill -INT $child
sleep 0.2
kill -INT $child
wait $child
[ $? = 1 ] && grep -q 'user/event/items: interrupted' "$work/err" &&
	grep -q '^seen 2001 ' "$work/out"
ok "an endless loop in one is left by SIGINT"

echo "1..$count"
