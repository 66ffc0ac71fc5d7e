#include <duet.h>
u16 a;
SEC("raw_tp/sys_enter") int enter(void *ctx)
{
	return __sync_fetch_and_add(&a, 1);
}
