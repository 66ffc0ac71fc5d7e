#include <duet.h>
u64 six(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	return a + b + c + d + e + f;
}
