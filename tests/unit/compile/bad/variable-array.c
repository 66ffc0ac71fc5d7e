#include <duet.h>
extern void use(void *memory);
SEC("user/exit") int end(const struct duet_exit *e)
{
	char array[e->samples];

	use(array);
	return 0;
}
