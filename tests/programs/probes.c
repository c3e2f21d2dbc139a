/* probes.c - a function and two static probes (USDT), each met a known number of times: "probes N"
 *
 * counted() is called N times, the probe profil_test:hit is met 2 N times in fire(), and
 * profil_test:guarded 3 N times where its semaphore says that a tracer is attached.
 */
#include <stdlib.h>

/* As sys/sdt.h writes them. */
#define PROBE(name, semaphore)                                                                     \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                   \
			 ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n"               \
			 "992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n"               \
			 ".8byte " semaphore "\n.asciz \"profil_test\"\n.asciz \"" name "\"\n"     \
			 ".asciz \"\"\n994: .balign 4\n.popsection\n"                              \
			 ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"a\",\"progbits\"\n" \
			 "_.stapsdt.base: .space 1\n.popsection\n.endif")

__attribute__((section(".probes"), used)) volatile unsigned short guard;

__attribute__((noinline)) void counted(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) void fire(void)
{
	PROBE("hit", "0");
}

__attribute__((noinline)) void fire_guarded(void)
{
	if (guard)
		PROBE("guarded", "guard");
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1;

	for (long i = 0; i < n; i++)
		counted();
	for (long i = 0; i < 2 * n; i++)
		fire();
	for (long i = 0; i < 3 * n; i++)
		fire_guarded();
	return 0;
}
