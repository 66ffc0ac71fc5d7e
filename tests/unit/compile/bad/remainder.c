#include <duet.h>
s32 a, b;
SEC("user/exit") int end(const struct duet_exit *e)
{
	a = a % b;
	return 0;
}
