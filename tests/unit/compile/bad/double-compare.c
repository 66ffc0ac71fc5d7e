#include <duet.h>
SEC("user/exit") int end(const struct duet_exit *e)
{
	return ratio(1, 3) < ratio(2, 3);
}
