/* inlined.c - a function that is inlined into two others, with its places marked */
static inline __attribute__((always_inline)) void inner(const int at)
{
	__asm__ volatile("inner_at_%c0: nop" : : "i"(at));
}

__attribute__((noipa)) void outer(void)
{
	inner(1);
}

__attribute__((noipa)) void other(void)
{
	inner(2);
}

int main(void)
{
	outer();
	other();
	return 0;
}
