/* jit.c - executes generated code at a fixed address, and names it in a perf map, which remains: a
 * profiler may read it late */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) /* sub $1, %rdi; jne; ret */
static const unsigned char code[] = { 0x48, 0x83, 0xef, 0x01, 0x75, 0xfa, 0xc3 };
#else /* subs x0, x0, #1; b.ne; ret */
static const unsigned int code[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#endif

#define ADDRESS 0x200000000000ul

/* usage: jit NAME SECONDS */
int main(int argc, char **argv)
{
	void *at = mmap((void *)ADDRESS, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	char path[64];
	FILE *map;

	if (argc != 3 || at == MAP_FAILED)
		return 1;
	memcpy(at, code, sizeof(code));
	__builtin___clear_cache(at, (char *)at + sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx %zx %s\n", (unsigned long)at, sizeof(code), argv[1]);
	fclose(map);
	while (clock() < atof(argv[2]) * CLOCKS_PER_SEC)
		((void (*)(unsigned long))at)(1000000);
	return 0;
}
