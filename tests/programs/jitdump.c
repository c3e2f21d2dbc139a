/* jitdump.c - executes generated code at fixed addresses, and describes it in a jitdump */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*
 * `code` subtracts 1 from its first argument until it is 0. `caller` calls its second argument with
 * a million as often as its first one says, and has no frame pointer. The unwinding rules are the
 * instructions of .eh_frame.
 */
#if defined(__x86_64__)
static const unsigned char code[] = { 0x48, 0x83, 0xef, 0x01, 0x75, 0xfa, 0xc3 };
/* push %rbx; sub $16, %rsp; mov %rdi, %rbx; 1: mov $1000000, %edi; call *%rsi; sub $1, %rbx; jne 1b;
 * add $16, %rsp; pop %rbx; ret */
static const unsigned char caller[] = { 0x53, 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0xfb, 0xbf,
					0x40, 0x42, 0x0f, 0x00, 0xff, 0xd6, 0x48, 0x83, 0xeb,
					0x01, 0x75, 0xf3, 0x48, 0x83, 0xc4, 0x10, 0x5b, 0xc3 };
#define CALLED 15 /* the return address */
#define MACHINE 62
#define LINK 16
static const unsigned char entry_rules[] = { 0x0c, 7, 8, 0x90, 1 }; /* CFA = rsp + 8 */
static const unsigned char caller_rules[] = { 0x41, 0x0e, 16, 0x44, 0x0e, 32,
					      0x54, 0x0e, 16, 0x41, 0x0e, 8 };
#else
static const unsigned int code[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
/* sub sp, sp, #32; str x30, [sp, #8]; str x19, [sp, #16]; mov x19, x0; 1: mov x0, #1000000; blr x1;
 * subs x19, x19, #1; b.ne 1b; ldr x19, [sp, #16]; ldr x30, [sp, #8]; add sp, sp, #32; ret */
static const unsigned int caller[] = { 0xd10083ff, 0xf90007fe, 0xf9000bf3, 0xaa0003f3, 0xd2884800,
				       0xf2a001e0, 0xd63f0020, 0xf1000673, 0x54ffff81, 0xf9400bf3,
				       0xf94007fe, 0x910083ff, 0xd65f03c0 };
#define CALLED 28
#define MACHINE 183
#define LINK 30
static const unsigned char entry_rules[] = { 0x0c, 31, 0 }; /* CFA = sp */
static const unsigned char caller_rules[] = { 0x44, 0x0e, 32, 0x44, 0x9e, 3, 0x68, 0x0e, 0, 0xde };
#endif

#define ADDRESS 0x200000000000ul
#define MOVED (ADDRESS + 2048)
#define CALLER (ADDRESS + 1024)
#define SUBTRACTS 7 /* lines of the source; the branch is in the one behind */
#define CALLS 10    /* likewise the loop */

/* tools/perf/Documentation/jitdump-specification.txt */
enum record { LOAD, MOVE, DEBUG_INFO, UNWINDING_INFO = 4 };

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

/* The second line begins at @second, and has the file of the first. */
static void put_lines(unsigned long start, unsigned int line, const char *file,
		      unsigned long second)
{
	begin(DEBUG_INFO, 16 + 2 * 16 + strlen(file) + 1 + 2);
	put8(start);
	put8(2);
	put_line(start, line, file);
	put_line(start + second, line + 1, "\xff");
}

/* Pads with no operations, which are 0, to @bytes. */
static void put_rules(const unsigned char *rules, size_t n, size_t bytes)
{
	fwrite(rules, n, 1, dump);
	for (; n < bytes; n++)
		putc(0, dump);
}

#define CIE 28
#define FDE 36
#define EH_FRAME (CIE + FDE + 4)
#define EH_FRAME_HDR 20

/* The rules of code of @bytes, which comes next: they are as if they were behind it. */
static void put_unwinding(size_t bytes, const unsigned char *rules, size_t n)
{
	unsigned int behind = (unsigned int)(bytes + 7) & ~7u;

	begin(UNWINDING_INFO, 24 + EH_FRAME + EH_FRAME_HDR);
	put8(EH_FRAME + EH_FRAME_HDR);
	put8(EH_FRAME_HDR);
	put8(0);
	put4(CIE - 4);
	put4(0);
	fwrite("\1zR\0\1\x78", 6, 1, dump); /* version, augmentation, factors 1 and -8 */
	putc(LINK, dump);
	fwrite("\1\x1b", 2, 1, dump); /* addresses are 32 bits, relative to themselves */
	put_rules(entry_rules, sizeof(entry_rules), CIE - 17);
	put4(FDE - 4);
	put4(CIE + 4); /* back to the CIE */
	put4(-(behind + CIE + 8));
	put4((unsigned int)bytes);
	putc(0, dump);
	put_rules(rules, n, FDE - 17);
	put4(0); /* the end */
	put4(0x3b031b01);
	put4(-(unsigned int)(EH_FRAME + 4));
	put4(1);
	put4(-(behind + EH_FRAME));
	put4(-(unsigned int)(EH_FRAME - CIE));
}

static void put_load(unsigned long start, const char *name, unsigned long number, const void *text,
		     size_t bytes)
{
	begin(LOAD, 40 + strlen(name) + 1 + bytes);
	put4((unsigned int)getpid());
	put4((unsigned int)getpid());
	put8(start);
	put8(start);
	put8(bytes);
	put8(number);
	fwrite(name, strlen(name) + 1, 1, dump);
	fwrite(text, bytes, 1, dump);
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
	put_lines(ADDRESS, 1, "/before/source", 4);
	put_load(ADDRESS, "replaced", 0, code, sizeof(code));
	put_lines(ADDRESS, SUBTRACTS, argv[2], 4);
	put_unwinding(sizeof(code), NULL, 0);
	put_load(ADDRESS, "generated", 1, code, sizeof(code));
	put_move(ADDRESS, MOVED, 1);
	put_lines(CALLER, CALLS, argv[2], CALLED);
	put_unwinding(sizeof(caller), caller_rules, sizeof(caller_rules));
	put_load(CALLER, "caller", 2, caller, sizeof(caller));
	fflush(dump);
	memcpy((void *)MOVED, code, sizeof(code));
	memcpy((void *)CALLER, caller, sizeof(caller));
	__builtin___clear_cache((char *)ADDRESS, (char *)ADDRESS + 4096);
	while (clock() < atof(argv[3]) * CLOCKS_PER_SEC)
		((void (*)(unsigned long, unsigned long))CALLER)(10, MOVED);
	return 0;
}
