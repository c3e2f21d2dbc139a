/* command_file.c - which file a command runs, and which program that runs in turn */
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command_file.h"

#define HEADERS_MAX 64 /* program headers that are read */

char *command_find(const char *command)
{
	const char *path = getenv("PATH") ?: "/bin:/usr/bin";
	char name[PATH_MAX];

	if (strchr(command, '/'))
		return realpath(command, NULL);
	for (;; path++) {
		size_t n = strcspn(path, ":");

		if (snprintf(name, sizeof(name), "%.*s%s%s", (int)n, path, n ? "/" : "./",
			     command) < (int)sizeof(name) &&
		    !access(name, X_OK))
			return realpath(name, NULL);
		path += n;
		if (!*path)
			return NULL;
	}
}

bool script_interpreter(int fd, char *out, size_t bytes)
{
	char line[256];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	const char *at = line + 2;

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	at += strspn(at, " \t");
	snprintf(out, bytes, "%.*s", (int)strcspn(at, " \t\r\n"), at);
	return *out == '/';
}

bool program_linker(int fd, char *out, size_t bytes)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;

	*out = '\0';
	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (unsigned int i = 0; i < eh.e_phnum && i < HEADERS_MAX; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
			break;
		if (ph.p_type != PT_INTERP || !ph.p_filesz || ph.p_filesz > bytes)
			continue;
		if (pread(fd, out, ph.p_filesz, (off_t)ph.p_offset) != (ssize_t)ph.p_filesz ||
		    out[ph.p_filesz - 1])
			*out = '\0';
		break;
	}
	return true;
}
