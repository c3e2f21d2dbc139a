/* objectfile.c - the file of an object, in a profile that was taken or kept earlier */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/scope.h"

#include "objectfile.h"
#include "symbols.h"

int objectfile_open(const struct object *o)
{
	__cleanup(closep) int fd = -1;
	char build_id[PROFILE_BUILD_ID_MAX];

	if (o->fd >= 0) {
		fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -ENOENT : steal_fd(fd);
	}
	if (*o->path != '/' || !*o->build_id)
		return -ENOENT;
	fd = open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -ENOENT;
	symbols_build_id(fd, build_id, sizeof(build_id));
	return strcmp(build_id, o->build_id) ? -ENOENT : steal_fd(fd);
}
