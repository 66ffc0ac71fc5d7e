#include <duet.h>
SEC("user/exit") int end(const struct duet_exit *e)
{
	double a = e->samples;

	printf("%f\n", a);
	return 0;
}
