/* install_path.c - files that were built or installed together with this program */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "install_path.h"

int install_path(char out[PATH_MAX], const char *name)
{
	char own[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	own[n < 0 ? 0 : n] = '\0';
	slash = strrchr(own, '/');
	if (!slash)
		return -ENOENT;
	snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - own), own, name);
	return realpath(path, out) ? 0 : -ENOENT;
}
