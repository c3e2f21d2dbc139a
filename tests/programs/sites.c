/* sites.c - places with known lines: of a function, of blocks on one line, and of what is inlined
 */
#define MARK(name) __asm__ volatile(".globl " #name "\n" #name ": nop")
/* clang-format off */
static inline __attribute__((always_inline)) void inner(int x)
{
	MARK(in_inner);
	if (x > 2) MARK(in_block); else MARK(in_other);
}

__attribute__((noinline)) void outer(int x)
{
	MARK(in_outer);
	inner(x);
}

static __attribute__((noinline)) void local(int x)
{
	MARK(in_local);
}

int main(int argc, char **argv)
{
	local(argc);
	outer(argc + !argv);
	MARK(in_main);
	return 0;
}
