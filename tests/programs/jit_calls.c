/* jit_calls.c - generated code with frame pointers, between functions without, calls the program
 * back */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*
 * outer(function, argument) calls function(argument); inner(function) calls function(); loop(n)
 * counts down. enters(code, a, b) calls code(a, b) with 1 in the frame pointer, which functions
 * with unwind information may use for anything.
 */
#if defined(__x86_64__)
static const unsigned char outer[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
				       0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3 };
static const unsigned char inner[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
static const unsigned char loop[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83,
				      0xef, 0x01, 0x75, 0xfa, 0x5d, 0xc3 };
__asm__(".text\n.global enters\n.type enters, %function\nenters:\n.cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbp, 0\n"
	"mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov $1, %ebp\ncall *%rax\n"
	"pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbp\nret\n.cfi_endproc\n.size enters, "
	".-enters\n");
#else
/* stp x29, x30, [sp, #-16]!; mov x29, sp; ...; ldp x29, x30, [sp], #16; ret */
static const unsigned int outer[] = { 0xa9bf7bfd, 0x910003fd, 0xaa0003e2, 0xaa0103e0,
				      0xd63f0040, 0xa8c17bfd, 0xd65f03c0 };
static const unsigned int inner[] = { 0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0 };
static const unsigned int loop[] = { 0xa9bf7bfd, 0x910003fd, 0xf1000400,
				     0x54ffffe1, 0xa8c17bfd, 0xd65f03c0 };
__asm__(".text\n.global enters\n.type enters, %function\nenters:\n.cfi_startproc\n"
	"stp x29, x30, [sp, #-16]!\n.cfi_adjust_cfa_offset 16\n.cfi_rel_offset x29, "
	"0\n.cfi_rel_offset x30, 8\n"
	"mov x3, x0\nmov x0, x1\nmov x1, x2\nmov x29, #1\nblr x3\n"
	"ldp x29, x30, [sp], #16\n.cfi_adjust_cfa_offset -16\n.cfi_restore x29\n.cfi_restore "
	"x30\nret\n"
	".cfi_endproc\n.size enters, .-enters\n");
#endif
void enters(const void *code, const void *a, const void *b);

static volatile unsigned long spun;
static double seconds;

__attribute__((noinline)) static void called_back(void)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	do {
		for (unsigned int i = 0; i < 300000; i++)
			spun += i;
	} while (clock() < end);
}

static char *place(char *at, const void *code, size_t bytes, const char *name, FILE *map)
{
	memcpy(at, code, bytes);
	if (map)
		fprintf(map, "%lx %zx %s\n", (unsigned long)at, bytes, name);
	return at;
}

/* usage: jit_calls SECONDS [named], which prints the pid of the perf map that it leaves: a profiler
 * may read it late */
int main(int argc, char **argv)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64], *jit_outer, *jit_inner, *jit_loop;
	FILE *map = NULL;
	clock_t end;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (argc < 2 || page == MAP_FAILED || (argc > 2 && !(map = fopen(path, "w"))))
		return 1;
	seconds = atof(argv[1]);
	jit_outer = place(page, outer, sizeof(outer), "jit_outer", map);
	jit_inner = place(page + 64, inner, sizeof(inner), "jit_inner", map);
	jit_loop = place(page + 128, loop, sizeof(loop), "jit_loop", map);
	if (map) {
		fclose(map);
		printf("%d\n", (int)getpid());
	}
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(page, page + 4096);
	enters(jit_outer, jit_inner, (const void *)called_back);
	for (end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC); clock() < end;)
		enters(jit_outer, jit_loop, (const void *)1000000);
	return 0;
}
