/* mon_file.c - the file that monitor() writes */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "mon_file.h"

int mon_file_create(const char *path, bool set_id)
{
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
	__cleanup(closep) int fd = -1;
	struct stat st;

	if (set_id)
		fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK, 0666);
	else
		fd = open(path, flags | O_TRUNC, 0666);
	if (fd < 0)
		return -errno;
	if (!set_id)
		return steal_fd(fd);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return -EPERM;
	return ftruncate(fd, 0) < 0 ? -errno : steal_fd(fd);
}
