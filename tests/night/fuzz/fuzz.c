/* fuzz.c - shared by the fuzzers: a stream of input, checks, and a silent log */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "fuzz.h"

void input_take(struct input *in, void *out, size_t bytes)
{
	size_t n = bytes < in->left ? bytes : in->left;

	memset(out, 0, bytes);
	if (n)
		memcpy(out, in->at, n);
	in->at += n;
	in->left -= n;
}

uint8_t input_byte(struct input *in)
{
	uint8_t byte;

	input_take(in, &byte, sizeof(byte));
	return byte;
}

void must_be(int good, const char *what, const char *file, int line)
{
	if (good)
		return;
	fprintf(stderr, "%s:%d: it is not so that %s\n", file, line, what);
	abort();
}

unsigned int descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	must(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int filled(int fd, const void *bytes, size_t n)
{
	must(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

int file_of(const void *bytes, size_t n)
{
	return filled(memfd_create("fuzz", MFD_CLOEXEC), bytes, n);
}

static char path[PATH_MAX];

static void remove_path(void)
{
	unlink(path);
}

int unlimited_file_of(const void *bytes, size_t n)
{
	const char *folder = getenv("TMPDIR");

	if (!*path) {
		snprintf(path, sizeof(path), "%s/fuzz-%d", folder ?: "/tmp", (int)getpid());
		atexit(remove_path);
	}
	return filled(open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600), bytes,
		      n);
}

/* Replaces src/base/log.c: formats every message and prints none. */
void log_open(const char *name)
{
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
}
