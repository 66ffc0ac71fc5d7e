#include <duet.h>
extern void use(char *memory);
SEC("user/exit") int end(const struct duet_exit *e)
{
	char big[9000];

	use(big);
	return 0;
}
