/* inlined.c - a function that is put into another one, with its place marked */
static inline __attribute__((always_inline)) void inner(void)
{
	__asm__ volatile("inner_at: nop");
}

__attribute__((noipa)) void outer(void)
{
	inner();
}

int main(void)
{
	outer();
	return 0;
}
