/* plugin.c - a library for dlopen() that calls the program back: build with -DFRAME=BYTES
 * -DTEXT=BYTES -DNAME=FUNCTION */
__asm__(".text\n.skip " TEXT "\n");

void NAME(void (*callback)(void));
__attribute__((noinline)) static void inside(void (*callback)(void))
{
	volatile char frame[FRAME];

	frame[0] = 1;
	callback();
	frame[FRAME - 1] = frame[0]; /* no tail call */
}

void NAME(void (*callback)(void))
{
	inside(callback);
	__asm__ volatile("");
}
