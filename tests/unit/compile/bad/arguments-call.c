#include <duet.h>
extern int six(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f);
SEC("user/exit") int end(const struct duet_exit *e)
{
	return six(1, 2, 3, 4, 5, 6);
}
