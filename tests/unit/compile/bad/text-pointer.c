#include <duet.h>
static char buffer[20];
SEC("user/exit") int end(const struct duet_exit *e)
{
	char *p = buffer;

	return text(p, "%d", 1);
}
