/* mapped.c - the object behind a mapping, opened while the process still has it mapped */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/scope.h"

#include "mapped.h"
#include "symbols.h"

/* Devices differ between maps and stat on some file systems; the inode is the same on all. */
static int open_same(const char *path, const struct mapping *m)
{
	__cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_ino != m->ino)
		return -1;
	return steal_fd(fd);
}

/*
 * map_files names the very file, even one that was deleted or replaced, but wants privileges; the
 * others go by its path, as the process sees it and as we do.
 */
static int open_file(pid_t pid, const struct mapping *m)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid, m->lo, m->hi);
	fd = open_same(path, m);
	if (fd < 0 && !m->deleted) {
		snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, m->path);
		fd = open_same(path, m);
	}
	if (fd < 0 && !m->deleted)
		fd = open_same(m->path, m);
	return fd;
}

static int add(struct profile *p, pid_t pid, const struct mapping *m, const char *path,
	       __u32 *index)
{
	int fd = m->ino ? open_file(pid, m) : -1;
	int err;

	err = profile_add_object(p, path, m->dev, m->ino, fd, index);
	if (!err && fd >= 0) {
		struct object *o = &p->objects[*index];

		symbols_build_id(fd, o->build_id, PROFILE_BUILD_ID_MAX);
		symbols_layout(fd, &o->vaddr, &o->program);
	}
	return err;
}

int mapped_objects(struct profile *p, pid_t pid, struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		struct mapping *m = &maps->mapping[i];
		const char *path = *m->path ? m->path : "[anon]";
		int err;

		if (!profile_find_object(p, path, m->dev, m->ino, &m->object))
			continue;
		err = add(p, pid, m, path, &m->object);
		if (err < 0)
			return err;
	}
	return 0;
}

__u64 mapped_offset(const struct mapping *m, __u64 pc)
{
	bool vdso = !strcmp(m->path, "[vdso]");

	return m->ino || vdso ? m->offset + (pc - m->lo) : pc;
}
