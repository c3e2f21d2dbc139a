/* running.c - the interpreters in running processes, for doctor */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "profile/interpreted.h"
#include "symbols/proc/guarded_file.h"
#include "symbols/proc/proc_maps.h"
#include "symbols/proc/procfs.h"

#include "interpreter.h"
#include "running.h"

/* All files that were looked at; those that are no interpreters have no path. */
struct seen {
	struct running_interpreter *file;
	size_t n;
};

static struct running_interpreter *find(const struct seen *s, const struct mapping *m)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->file[i].ino == m->ino && s->file[i].dev == m->dev)
			return &s->file[i];
	}
	return NULL;
}

static void describe(struct running_interpreter *r, pid_t pid, const struct mapping *m)
{
	__cleanup(closep) int fd = -1;
	struct profil_interpreter d;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid, m->lo, m->hi);
	fd = guarded_file_open(path, NULL);
	if (fd < 0)
		fd = guarded_file_open(m->path, NULL);
	err = fd < 0 ? -ENOENT : interpreter_open(&d, fd, m->path);
	if (err && err != -EOPNOTSUPP)
		return;
	r->path = strdup(m->path);
	r->language = err ? NULL : interpreted_language(d.language);
}

static int look_at(struct seen *s, pid_t pid, const struct mapping *m)
{
	struct running_interpreter *r = find(s, m);

	if (!r) {
		r = grow(s->file, s->n, sizeof(*r));
		if (!r)
			return -ENOMEM;
		s->file = r;
		r += s->n++;
		*r = (struct running_interpreter){ .dev = m->dev, .ino = m->ino, .pid = pid };
		describe(r, pid, m);
	}
	/* A file has mappings one after the other: a process counts once. */
	if (!r->processes || r->pid != pid)
		r->processes++;
	r->pid = pid;
	return 0;
}

static int look_at_process(struct seen *s, pid_t pid)
{
	struct maps maps;
	int err = 0;

	if (maps_read(&maps, pid))
		return 0;
	for (size_t i = 0; i < maps.n && !err; i++) {
		if (maps.mapping[i].ino && !maps.mapping[i].deleted)
			err = look_at(s, pid, &maps.mapping[i]);
	}
	maps_fini(&maps);
	return err;
}

bool running_is_shown(pid_t pid)
{
	struct seen s = { 0 };
	bool is_shown = false;

	look_at_process(&s, pid);
	for (size_t i = 0; i < s.n; i++)
		is_shown |= s.file[i].language != NULL;
	running_free(s.file, s.n);
	return is_shown;
}

int running_interpreters(struct running_interpreter **out, size_t *n)
{
	__cleanup(freep) pid_t *pids = NULL;
	struct seen s = { 0 };
	size_t npids = 0, kept = 0;
	int err = 0;

	if (procfs_find(&pids, &npids, &(struct procfs_select){ 0 }) < 0)
		npids = 0;
	for (size_t i = 0; i < npids && !err; i++)
		err = look_at_process(&s, pids[i]);
	for (size_t i = 0; i < s.n; i++) {
		if (s.file[i].path)
			s.file[kept++] = s.file[i];
	}
	*out = s.file;
	*n = kept;
	return err;
}

void running_free(struct running_interpreter *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(r[i].path);
	free(r);
}
