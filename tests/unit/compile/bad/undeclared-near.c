#include <duet.h>
SEC("user/exit") int end(const struct duet_exit *e)
{
	return pirnt_map("x");
}
