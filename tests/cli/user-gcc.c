// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A user half for gcc-bpf: without duet.h, whose macros ask for clang's BTF. For user.t. */
#define SEC(name) __attribute__((section(name), used))

extern int __printf_n(const char *format, const unsigned long long *values, unsigned int count);
extern void qsort(void *base, unsigned long count, unsigned long size,
		  int (*compare)(const void *a, const void *b));
extern double ratio(unsigned long long a, unsigned long long b);

char its_license[] SEC("license") = "Dual BSD/GPL";
static const char *const words[] = { "first", "second", "third" };
static int numbers[] = { 3, 1, 2 };
unsigned long long sum;

static int compare(const void *a, const void *b)
{
	return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

SEC("user/exit") int report(void *e)
{
	union {
		double number;
		unsigned long long bits;
	} quotient = { .number = ratio(5, 2) };
	unsigned long long values[6];
	int i;

	for (i = 1; i <= 5; i++)
		sum += i;
	qsort(numbers, 3, sizeof(int), compare);
	values[0] = sum;
	values[1] = numbers[0];
	values[2] = numbers[1];
	values[3] = numbers[2];
	values[4] = (unsigned long)words[2];
	values[5] = quotient.bits;
	__printf_n("sum %llu, sorted %d %d %d, %s, %.2f\n", values, 6);
	return 0;
}
