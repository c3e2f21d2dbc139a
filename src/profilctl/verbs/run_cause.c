/* run_cause.c - why a program does not load a library that LD_PRELOAD names */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitize.h"
#include "symbols/elf/command_file.h"

#include "run_cause.h"

/* glibc's linkers are named ld-linux.so.2, ld-linux-ARCHITECTURE.so.N and ld64.so.N. */
static bool is_of_glibc(const char *linker)
{
	const char *base = strrchr(linker, '/');

	base = base ? base + 1 : linker;
	return !strncmp(base, "ld-linux", 8) || !strncmp(base, "ld64.so", 7);
}

/* Writes the cause that the ELF file has; "" if it is none. */
static void look_at(char *out, size_t bytes, int fd)
{
	char linker[256], clean[256];
	struct stat st;
	bool is_64 = program_linker(fd, linker, sizeof(linker));

	*out = '\0';
	if (!fstat(fd, &st) && st.st_mode & (S_ISUID | S_ISGID))
		snprintf(out, bytes, "it is set-id");
	else if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
		snprintf(out, bytes, "its file has capabilities, as a set-id program");
	else if (!is_64)
		snprintf(out, bytes, "it is not a 64-bit program");
	else if (!*linker)
		snprintf(out, bytes, "it is linked statically");
	else if (!is_of_glibc(linker))
		snprintf(out, bytes, "its dynamic linker, %s, is not of glibc",
			 sanitize(clean, sizeof(clean), linker));
}

const char *run_cause(char *out, size_t bytes, const char *command)
{
	__cleanup(freep) char *file = command_find(command);
	__cleanup(closep) int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	char interpreter[PATH_MAX];

	*out = '\0';
	for (int i = 0; i < SCRIPTS_MAX && script_interpreter(fd, interpreter, sizeof(interpreter));
	     i++) {
		closep(&fd);
		fd = open(interpreter, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0)
		look_at(out, bytes, fd);
	if (!*out)
		snprintf(out, bytes, "it cleared LD_PRELOAD, or is not what was executed");
	return out;
}
