/* mapped.c - the object behind a mapping, opened while the process still has it mapped */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/scope.h"

#include "mapped.h"
#include "perfmap.h"
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

/* Takes over @fd. */
static int add_file(struct profile *p, const struct mapping *m, int fd, __u32 *index)
{
	struct object *o;
	int err;

	err = profile_add_object(p, m->path, m->dev, m->ino, fd, index);
	if (err < 0 || fd < 0)
		return err;
	o = &p->objects[*index];
	symbols_build_id(fd, o->build_id, PROFILE_BUILD_ID_MAX);
	symbols_layout(fd, &o->vaddr, &o->program);
	return 0;
}

/* Memory of one process alone where its addresses have names, else that of all together. */
static int find_anonymous(struct profile *p, pid_t pid, __u32 *index)
{
	__cleanup(closep) int fd = -1;

	if (!profile_find_object(p, PROFILE_ANON, (__u64)pid, 0, index))
		return 0;
	fd = perfmap_open(pid);
	if (fd >= 0)
		return profile_add_object(p, PROFILE_ANON, (__u64)pid, 0, steal_fd(fd), index);
	if (!profile_find_object(p, PROFILE_ANON, 0, 0, index))
		return 0;
	return profile_add_object(p, PROFILE_ANON, 0, 0, -1, index);
}

int mapped_objects(struct profile *p, pid_t pid, struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		struct mapping *m = &maps->mapping[i];
		int err = 0;

		if (!*m->path)
			err = find_anonymous(p, pid, &m->object);
		else if (profile_find_object(p, m->path, m->dev, m->ino, &m->object) < 0)
			err = add_file(p, m, m->ino ? open_file(pid, m) : -1, &m->object);
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
