/* run_cause.c - why a program does not load a library that LD_PRELOAD names */
#include <elf.h>
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

#include "run_cause.h"

#define SCRIPTS_MAX 4 /* as in the kernel */

/* Opens the file of @command as execvp() finds it; -1: none. */
static int open_command(const char *command)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	if (strchr(command, '/'))
		return open(command, O_RDONLY | O_CLOEXEC);
	for (path = path ? path : "/bin:/usr/bin"; *path;) {
		int n = (int)strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s%s%s", n, path, n ? "/" : "./", command);
		if (!access(file, X_OK))
			return open(file, O_RDONLY | O_CLOEXEC);
		path += n + (path[n] == ':');
	}
	return -1;
}

/* Reads the path of the dynamic linker, "" if the program has none. Returns false: no 64-bit ELF.
 */
static bool read_linker(int fd, char *out, size_t bytes)
{
	Elf64_Ehdr e;
	Elf64_Phdr p;

	*out = '\0';
	if (pread(fd, &e, sizeof(e), 0) != sizeof(e) || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (int i = 0; i < e.e_phnum; i++) {
		size_t n;

		if (pread(fd, &p, sizeof(p), (off_t)(e.e_phoff + (Elf64_Off)i * sizeof(p))) !=
			    sizeof(p) ||
		    p.p_type != PT_INTERP)
			continue;
		n = p.p_filesz < bytes ? p.p_filesz : bytes - 1;
		if (pread(fd, out, n, (off_t)p.p_offset) != (ssize_t)n)
			n = 0;
		out[n] = '\0';
	}
	return true;
}

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
	bool is_64 = read_linker(fd, linker, sizeof(linker));

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
	__cleanup(closep) int fd = open_command(command);
	char line[PATH_MAX];

	*out = '\0';
	for (int i = 0; fd >= 0 && i < SCRIPTS_MAX; i++) {
		ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
		char *interpreter;

		line[n < 0 ? 0 : n] = '\0';
		if (strncmp(line, "#!", 2) != 0) {
			look_at(out, bytes, fd);
			break;
		}
		line[strcspn(line, "\n")] = '\0';
		interpreter = line + 2 + strspn(line + 2, " \t");
		interpreter[strcspn(interpreter, " \t")] = '\0';
		closep(&fd);
		fd = open(interpreter, O_RDONLY | O_CLOEXEC);
	}
	if (!*out)
		snprintf(out, bytes, "it cleared LD_PRELOAD, or is not what was executed");
	return out;
}
