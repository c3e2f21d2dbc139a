/* levels.c - recurses to one depth after the other, and uses CPU time in the innermost call */
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TURNS_MEASURED 200000ul
#define MEASURED 5

/* For -nostartfiles: that of libc calls main() from a function that has no frame pointer. */
#ifdef OWN_START
#if defined(__x86_64__)
__asm__(".global _start\n .type _start, %function\n_start:\n"
	" xor %ebp, %ebp\n mov (%rsp), %rdi\n lea 8(%rsp), %rsi\n and $-16, %rsp\n"
	" call main\n mov %eax, %edi\n call exit@plt\n hlt\n .size _start, .-_start\n");
#else
__asm__(".global _start\n .type _start, %function\n_start:\n"
	" mov x29, #0\n mov x30, #0\n ldr x0, [sp]\n add x1, sp, #8\n"
	" bl main\n bl exit\n brk #0\n .size _start, .-_start\n");
#endif
#endif

static volatile unsigned long spun;

/* Calls nothing. Without a variable on its stack it would have no frame, in spite of all options.
 */
__attribute__((noinline)) static void leaf(unsigned long turns)
{
	volatile unsigned long left = turns;

	while (left)
		left--;
}

__attribute__((noinline)) static void recur(int depth, unsigned long turns)
{
	if (depth > 1)
		recur(depth - 1, turns);
	else
		leaf(turns);
	spun++; /* no tail call */
}

/*
 * The number of turns that take so long; some milliseconds of CPU time to find out. The shortest of
 * a few times is one without a delay.
 */
static unsigned long turns_of(double seconds)
{
	clock_t least = 0;

	for (int i = 0; i < MEASURED; i++) {
		clock_t took = clock();

		leaf(TURNS_MEASURED);
		took = clock() - took + 1;
		if (!least || took < least)
			least = took;
	}
	return (unsigned long)((double)TURNS_MEASURED * seconds * CLOCKS_PER_SEC / (double)least);
}

static void descend(int from, int to, unsigned long turns)
{
	for (int depth = from; depth <= to; depth++)
		recur(depth, turns);
}

/* usage: levels FROM TO SECONDS [CHILDREN], which do all of it one after the other */
int main(int argc, char **argv)
{
	int from = argc > 1 ? atoi(argv[1]) : 1, to = argc > 2 ? atoi(argv[2]) : 1, status = 0;
	unsigned long turns = turns_of((argc > 3 ? atof(argv[3]) : 1) / (to - from + 1));

	if (argc < 5)
		return descend(from, to, turns), 0;
	for (int i = atoi(argv[4]); i > 0 && !status; i--) {
		pid_t pid = fork();

		if (!pid) {
			descend(from, to, turns);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
	}
	return status != 0;
}
