#include <duet.h>
struct key {
	u32 a;
};
HASH(map, 10, struct key, u64);
