/* failing.c - for LD_PRELOAD: one allocation of a program fails, and the program is none the wiser
 *
 * FAILING_AT=N lets the N-th allocation fail. FAILING_REPORT=FILE has the number of those until
 * then written there when it does; without FAILING_AT, of all at the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long count, at;
static int hold;
static const char *report;

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);

/* Without an allocation. */
static void write_report(void)
{
	int fd = report ? open(report, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
	char digits[32];
	int n;

	if (fd < 0)
		return;
	n = snprintf(digits, sizeof(digits), "%lu\n", count);
	if (write(fd, digits, (size_t)n) != n)
		unlink(report);
	close(fd);
}

/* Says whether it is this one's turn. */
static int fails(void)
{
	if (hold)
		return 0;
	if (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) != at)
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

/* libc dies of what fails in here: it is left alone. */
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

/* The loader's own are over by now. */
__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FAILING_AT");

	at = text ? strtoul(text, NULL, 10) : 0;
	report = getenv("FAILING_REPORT");
	count = 0;
}

__attribute__((destructor)) static void end(void)
{
	if (!at)
		write_report();
}
