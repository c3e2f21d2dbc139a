/* v7.c - a program of the seventh edition: no header, no prototype, no return value */
char *malloc();

short buffer[64];
unsigned seed;

heavy()
{
	register unsigned x;
	register i;

	x = seed;
	for (i = 0; i < 14000; i++)
		x = x * 1103 + 12345;
	seed = x;
}

light()
{
	register unsigned x;
	register i;

	x = seed;
	for (i = 0; i < 6000; i++)
		x = x * 1103 + 12345;
	seed = x;
}

main(argc, argv) char *argv[];
{
	register i, n;
	long a, b;

	a = b = 0;
	profil(buffer, sizeof buffer, heavy, 0177777);
	n = 40000;
	for (i = 0; i < n; i++) {
		heavy();
		light();
	}
	profil(buffer, 0, 0, 0);
	n = ((char *)light - (char *)heavy) / 2;
	for (i = 0; i < 64; i++)
		if (i < n)
			a += buffer[i];
		else
			b += buffer[i];
	printf("heavy %ld %ld%%\n", a, (200 * a / (a + b) + 1) / 2);
	printf("light %ld %ld%%\n", b, (200 * b / (a + b) + 1) / 2);
	exit(0);
}
