/* jitdump.c - executes generated code at a fixed address, and describes it in a jitdump */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) /* sub $1, %rdi; jne; ret */
static const unsigned char code[] = { 0x48, 0x83, 0xef, 0x01, 0x75, 0xfa, 0xc3 };
#define MACHINE 62
#else /* subs x0, x0, #1; b.ne; ret */
static const unsigned int code[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#define MACHINE 183
#endif

#define ADDRESS 0x200000000000ul
#define MOVED (ADDRESS + 2048)
#define SUBTRACTS 7 /* lines of the source */
#define BRANCHES 8

/* tools/perf/Documentation/jitdump-specification.txt */
enum record { LOAD, MOVE, DEBUG_INFO };

static FILE *dump;

static void put4(unsigned int v)
{
	fwrite(&v, sizeof(v), 1, dump);
}

static void put8(unsigned long v)
{
	fwrite(&v, sizeof(v), 1, dump);
}

static void begin(enum record id, size_t bytes)
{
	put4(id);
	put4((unsigned int)(16 + bytes));
	put8(0);
}

static void put_line(unsigned long address, unsigned int line, const char *file)
{
	put8(address);
	put4(line);
	put4(0);
	fwrite(file, strlen(file) + 1, 1, dump);
}

/* The second line has the file of the first. */
static void put_lines(unsigned long start, unsigned int line, const char *file)
{
	begin(DEBUG_INFO, 16 + 2 * 16 + strlen(file) + 1 + 2);
	put8(start);
	put8(2);
	put_line(start, line, file);
	put_line(start + 4, line + 1, "\xff");
}

static void put_load(unsigned long start, const char *name, unsigned long number)
{
	begin(LOAD, 40 + strlen(name) + 1 + sizeof(code));
	put4((unsigned int)getpid());
	put4((unsigned int)getpid());
	put8(start);
	put8(start);
	put8(sizeof(code));
	put8(number);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(code, sizeof(code), 1, dump);
}

static void put_move(unsigned long from, unsigned long to, unsigned long number)
{
	begin(MOVE, 48);
	put4((unsigned int)getpid());
	put4((unsigned int)getpid());
	put8(to);
	put8(from);
	put8(to);
	put8(sizeof(code));
	put8(number);
}

static void put_head(void)
{
	put4(0x4a695444);
	put4(1);
	put4(40);
	put4(MACHINE);
	put4(0);
	put4((unsigned int)getpid());
	put8((unsigned long)time(NULL));
	put8(0);
}

/* A profiler finds the file by this mapping. */
static int open_dump(const char *directory)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", directory, (int)getpid());
	dump = fopen(path, "w+");
	if (!dump)
		return -1;
	put_head();
	fflush(dump);
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED;
}

/* usage: jitdump DIRECTORY SOURCE SECONDS */
int main(int argc, char **argv)
{
	void *at = mmap((void *)ADDRESS, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (argc != 4 || at == MAP_FAILED || open_dump(argv[1]))
		return 1;
	put_lines(ADDRESS, 1, "/before/source");
	put_load(ADDRESS, "replaced", 0);
	put_lines(ADDRESS, SUBTRACTS, argv[2]);
	put_load(ADDRESS, "generated", 1);
	put_move(ADDRESS, MOVED, 1);
	fflush(dump);
	memcpy((void *)MOVED, code, sizeof(code));
	__builtin___clear_cache((char *)MOVED, (char *)MOVED + sizeof(code));
	while (clock() < atof(argv[3]) * CLOCKS_PER_SEC)
		((void (*)(unsigned long))MOVED)(1000000);
	return 0;
}
