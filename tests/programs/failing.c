/* failing.c - for LD_PRELOAD: makes one allocation of a program fail
 *
 * FAILING_AT=N lets the N-th allocation fail, counted over the program and all its children.
 * FAILING_REPORT=FILE: the number of allocations is written there, up to the one that fails, or
 * without FAILING_AT when the program ends.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long *count, none, at; /* the count is shared with all children */
static int hold;
static pid_t program;
static const char *report;

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);

/* Writes the report without an allocation. */
static void write_report(void)
{
	int fd = report ? open(report, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
	char digits[32];
	int n;

	if (fd < 0)
		return;
	n = snprintf(digits, sizeof(digits), "%lu\n", *count);
	if (write(fd, digits, (size_t)n) != n)
		unlink(report);
	close(fd);
}

/* Counts an allocation; true if it is the one that must fail. */
static int fails(void)
{
	if (hold || !count)
		return 0;
	if (__atomic_add_fetch(count, 1, __ATOMIC_RELAXED) != at)
		return 0;
	write_report();
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t bytes)
{
	return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return fails() ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
	return fails() ? NULL : __libc_realloc(p, bytes);
}

void *reallocarray(void *p, size_t n, size_t bytes)
{
	size_t all;

	if (__builtin_mul_overflow(n, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, all);
}

/* Allocations in here never fail: libc aborts if they do. */
struct group *getgrnam(const char *name)
{
	struct group *(*next)(const char *name);
	struct group *group;

	hold = 1;
	*(void **)&next = dlsym(RTLD_NEXT, "getgrnam");
	group = next(name);
	hold = 0;
	return group;
}

/* The dynamic loader has done its own allocations by now. */
__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FAILING_AT");

	at = text ? strtoul(text, NULL, 10) : 0;
	report = getenv("FAILING_REPORT");
	program = getpid();
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (count == MAP_FAILED)
		count = &none;
}

__attribute__((destructor)) static void end(void)
{
	if (!at && getpid() == program)
		write_report();
}
