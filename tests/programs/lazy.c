/* lazy.c - calls a function of a shared library; with -DLIBRARY, that library */
void trivial(void);

#ifdef LIBRARY

void trivial(void)
{
}

#else

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static volatile unsigned long spun;

__attribute__((noipa)) static void calls(unsigned long n)
{
	while (n--)
		trivial();
	spun++; /* no tail call */
}

static void calls_for(double seconds)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	do {
		calls(1000000);
	} while (clock() < end);
}

#if defined(__x86_64__)

#define PAGE 4096
#define STACK (64 * PAGE)

/* Calls trivial() with the stack pointer @sp. */
void call_at(char *sp);
__asm__(".text\n .global call_at\n .type call_at, %function\n"
	"call_at:\n .cfi_startproc\n"
	" push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	" mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n"
	" mov %rdi, %rsp\n call trivial@plt\n"
	" leave\n .cfi_def_cfa %rsp, 8\n ret\n .cfi_endproc\n .size call_at, .-call_at\n");

/*
 * Calls trivial() @n times so that the stub of the PLT, which pushes a number, faults there, and
 * @n times so that the first entry, which pushes another word, faults. A call pushes one word, too.
 */
static int fault_in_stubs(int n)
{
	char *stack =
		mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED)
		return 1;
	for (int i = 0; i < 2 * n; i++) {
		memset(stack + STACK - 2 * PAGE, 1, 4 * PAGE); /* no return address is left */
		if (madvise(stack + STACK - PAGE, PAGE, MADV_DONTNEED))
			return 1;
		call_at(stack + STACK + (i % 2 ? 8 : 16));
	}
	return 0;
}

#else

static int fault_in_stubs(int n)
{
	return n;
}

#endif

/* usage: lazy SECONDS, or lazy faults N */
int main(int argc, char **argv)
{
	if (argc > 2)
		return fault_in_stubs(atoi(argv[2]));
	return calls_for(argc > 1 ? atof(argv[1]) : 1), 0;
}

#endif
