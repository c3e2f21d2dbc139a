/* cuts.c - uses CPU time where the stack's unwinding is cut; with -DLIBRARY, the library of it */
#include <stdlib.h>
#include <string.h>
#include <time.h>

void without_rules(unsigned long turns);
void expressed(unsigned long turns);

#if defined(__x86_64__)
#define TURNS "1: dec %rdi\n jnz 1b\n"
/* DW_CFA_def_cfa_expression: DW_OP_breg7 8, DW_OP_lit0, DW_OP_plus */
#define EXPRESSION ".cfi_escape 0x0f, 4, 0x77, 8, 0x30, 0x22\n"
#define HIDE_FP "push %rbp\n mov $1, %ebp\n"
#define SHOW_FP "pop %rbp\n"
#else
#define TURNS "1: subs x0, x0, #1\n b.ne 1b\n"
/* DW_CFA_def_cfa_expression: DW_OP_breg31 0, DW_OP_lit0, DW_OP_plus */
#define EXPRESSION ".cfi_escape 0x0f, 4, 0x8f, 0, 0x30, 0x22\n"
#define HIDE_FP "mov x9, x29\n mov x29, #1\n"
#define SHOW_FP "mov x29, x9\n"
#endif

#ifdef LIBRARY

/* Unwind tables take less than 65 bytes between functions for padding. */
__asm__(".text\n .skip 128\n .global without_rules\n .type without_rules, %function\n"
	"without_rules:\n" HIDE_FP TURNS SHOW_FP " ret\n"
	".size without_rules, .-without_rules\n .skip 128\n");

#else

__asm__(".text\n .global expressed\n .type expressed, %function\n"
	"expressed:\n .cfi_startproc\n" EXPRESSION TURNS " ret\n .cfi_endproc\n"
	".size expressed, .-expressed\n");

static volatile unsigned long spun;
static double seconds;

__attribute__((noinline)) static void spin(void (*turn)(unsigned long))
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	do {
		turn(1000000);
	} while (clock() < end);
}

__attribute__((noinline)) static void turns(unsigned long n)
{
	while (n--)
		spun++;
}

__attribute__((noinline)) static void recur(int depth)
{
	if (depth > 1)
		recur(depth - 1);
	else
		spin(turns);
	spun++; /* no tail call */
}

/* usage: cuts expression|deep|no-rules SECONDS */
int main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	seconds = atof(argv[2]);
	if (!strcmp(argv[1], "expression"))
		spin(expressed);
	else if (!strcmp(argv[1], "no-rules"))
		spin(without_rules);
	else
		recur(400);
	return 0;
}

#endif
