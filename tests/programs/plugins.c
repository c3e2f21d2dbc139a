/* plugins.c - loads libraries one after the other, by which it is called back */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long spun;
static double seconds;

__attribute__((noinline)) static void spin(void)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	do {
		for (unsigned int i = 0; i < 300000; i++)
			spun += i;
	} while (clock() < end);
}

__attribute__((noinline)) static void called_back(void)
{
	spin();
	spun++; /* no tail call */
}

__attribute__((noinline)) static int load(const char *path, const char *name, int deletes)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*function)(void (*)(void));

	if (!library || (deletes && unlink(path)))
		return 1;
	*(void **)&function = dlsym(library, name);
	if (!function)
		return 1;
	function(called_back);
	return dlclose(library);
}

/* usage: plugins SECONDS keep|delete [PATH FUNCTION]... */
int main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	seconds = atof(argv[1]);
	for (int i = 3; i + 1 < argc; i += 2) {
		if (load(argv[i], argv[i + 1], !strcmp(argv[2], "delete")))
			return fprintf(stderr, "cannot load %s: %s\n", argv[i], dlerror()), 1;
	}
	return 0;
}
