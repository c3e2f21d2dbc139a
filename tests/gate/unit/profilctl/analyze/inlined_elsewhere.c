/* inlined_elsewhere.c - the second unit that inlines the function of inlined.h */
#define INLINED_AT "ctl_stacks_outer"
#include "inlined.h"

__attribute__((noinline, noipa)) int ctl_stacks_elsewhere(int n)
{
	return 5 * inlined_here(3 * n);
}

__attribute__((weak, alias("ctl_stacks_elsewhere"))) int ctl_stacks_alias(int n);
