/* inlined.h - a function that two units inline, each at the label INLINED_AT */
#ifndef PROFIL_TESTS_UNIT_PROFILCTL_ANALYZE_INLINED_H
#define PROFIL_TESTS_UNIT_PROFILCTL_ANALYZE_INLINED_H

#ifndef INLINED_AT
#define INLINED_AT "ctl_inlined_at"
#endif

static inline __attribute__((always_inline)) int inlined_here(int n)
{
	__asm__ volatile("nop\n.globl " INLINED_AT "\n" INLINED_AT ": nop");
	return n + 1;
}

/* In the other unit. */
int ctl_stacks_elsewhere(int n);
int ctl_stacks_alias(int n);

#endif
