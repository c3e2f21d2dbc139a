/* shares.c - a fixed amount of work in eight functions: "shares ROUNDS [PERCENT]" */
#include <stdlib.h>

/* Each step waits for the one before it, and no compiler sees through it. */
static unsigned long chain(unsigned long n)
{
	unsigned long x = 1;

	for (; n; n--) {
		x = x * 2862933555777941757ul + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

#define WORK(name)                                                 \
	__attribute__((noipa)) unsigned long name(unsigned long n) \
	{                                                          \
		return chain(n);                                   \
	}

WORK(half)
WORK(fifth)
WORK(tenth)
WORK(twelfth)
WORK(twentieth)
WORK(fortieth)
WORK(sixtieth)
WORK(rest)

/* @half is so many percent slower. Rounds of one length could keep step with the ticks. */
int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, random = 1;
	unsigned long more = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	while (rounds--) {
		unsigned long unit;

		random = random * 6364136223846793005ul + 1442695040888963407ul;
		unit = 10 + (random >> 60);
		half(600 * unit * (100 + more) / 100);
		fifth(240 * unit);
		tenth(120 * unit);
		twelfth(100 * unit);
		twentieth(60 * unit);
		fortieth(30 * unit);
		sixtieth(20 * unit);
		rest(30 * unit);
	}
	return 0;
}
