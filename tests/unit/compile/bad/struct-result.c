#include <duet.h>
struct three {
	u64 a, b, c;
};
static __noinline struct three make(u64 x)
{
	barrier();
	return (struct three){ x, x, x };
}
SEC("user/exit") int end(const struct duet_exit *e)
{
	return make(e->samples).b;
}
