/* file_release.c - closes the files that no process has mapped any more, and keeps the names that
 * the samples so far need
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/grow.h"

#include "file_release.h"
#include "symbols/proc/mounts.h"
#include "symbols/proc/proc_maps.h"
#include "symbols/proc/procfs.h"

#define LOOK_NS 1000000000u /* the shortest interval of looks */
#define LOOK_COSTS 100	    /* an interval is this many times as long as a look */

/* A look through the mappings of processes. */
struct look {
	struct file_release *f;
	const struct profile *p;
	bool *wanted; /* of each object: it is open, and no process has been seen that maps it */
	size_t nwanted;
	bool blind; /* this user cannot read the mappings of some process */
};

static bool may_close(const struct object *o)
{
	struct stat st;

	return o->kind == OBJECT_FILE && o->fd >= 0 && !fstat(o->fd, &st) && st.st_nlink;
}

static int look_init(struct look *l, struct file_release *f, const struct profile *p)
{
	pid_t *more = p->nobjects > f->n ? reallocarray(f->holder, p->nobjects, sizeof(*more))
					 : f->holder;

	*l = (struct look){ .f = f, .p = p, .wanted = calloc(p->nobjects + 1, sizeof(*l->wanted)) };
	f->holder = more ? more : f->holder;
	if ((p->nobjects && !more) || !l->wanted)
		return -ENOMEM;
	for (; f->n < p->nobjects; f->n++)
		f->holder[f->n] = 0;
	for (size_t i = 0; i < p->nobjects; i++) {
		l->wanted[i] = may_close(&p->objects[i]);
		l->nwanted += l->wanted[i];
	}
	return 0;
}

/* Some file systems show processes another device number than the kernel uses. */
static bool is_mapping_of(const struct mapping *m, const struct object *o)
{
	return m->ino == o->ino &&
	       (mounts_kernel_dev((unsigned int)(m->dev >> 32), (unsigned int)m->dev) == o->dev ||
		!strcmp(m->path, o->path));
}

static void look_at(struct look *l, pid_t pid)
{
	struct maps maps;
	int err = maps_read(&maps, pid);

	l->blind |= (err == -EACCES || err == -EPERM) && geteuid();
	if (err < 0)
		return;
	for (size_t i = 0; i < l->p->nobjects; i++) {
		for (size_t k = 0; l->wanted[i] && k < maps.n; k++) {
			if (!is_mapping_of(&maps.mapping[k], &l->p->objects[i]))
				continue;
			l->wanted[i] = false;
			l->nwanted--;
			l->f->holder[i] = pid;
		}
	}
	maps_fini(&maps);
}

/* Most files still have the process that had them mapped at the last look. */
static void look_at_all(struct look *l)
{
	static const struct procfs_select all;
	__cleanup(freep) pid_t *pids = NULL;
	size_t n = 0;

	for (size_t i = 0; i < l->p->nobjects && l->nwanted; i++) {
		if (l->wanted[i] && l->f->holder[i])
			look_at(l, l->f->holder[i]);
	}
	l->blind |= l->nwanted && procfs_find(&pids, &n, &all) < 0;
	for (size_t i = 0; i < n && l->nwanted; i++)
		look_at(l, pids[i]);
}

/* --- names ------------------------------------------------------------------------------------ */

struct offsets {
	__u64 *offset;
	size_t n;
};

static int add_offset(struct offsets *o, const struct table_reader *r, __u32 object, __u64 key,
		      __u32 back)
{
	__u32 image = profil_place_image(key);
	struct place place = { 0 };
	__u64 *more;

	if (!image || image > r->table.head->images || r->object[image] != object + 1)
		return 0;
	more = grow(o->offset, o->n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	table_reader_locate(r, &place, image, profil_place_offset(key));
	o->offset = more;
	o->offset[o->n++] = place.offset - back;
	return 0;
}

/* The offsets in @object of all places and frames; of a caller that of its call. */
static int offsets_of(struct offsets *o, const struct table_reader *r, __u32 object)
{
	const struct profil_line *lines = table_lines(&r->table);
	int err = 0;

	for (__u32 i = 0; i < r->table.head->lines && !err; i++) {
		for (int k = 0; k < PROFIL_LINE_PLACES && !err && lines[i].key[k]; k++)
			err = add_offset(o, r, object, lines[i].key[k], 0);
	}
	for (__u32 i = 0; i < r->table.head->nodes && !err; i++) {
		__u64 place = table_node(&r->table, i)->place;

		err = place ? add_offset(o, r, object, place, 0) : 0;
		if (place && !err)
			err = add_offset(o, r, object, place, 1);
	}
	return err;
}

static int by_offset(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int let_go(struct table_reader *r, __u32 object, struct symbolize_cache *cache)
{
	struct offsets o = { 0 };
	int err = offsets_of(&o, r, object);

	if (o.n)
		qsort(o.offset, o.n, sizeof(*o.offset), by_offset);
	err = err ?: symbolize_cache_let_go(cache, r->profile, object, o.offset, o.n);
	free(o.offset);
	return err;
}

/* --- all -------------------------------------------------------------------------------------- */

int file_release(struct file_release *f, struct table_reader *r, struct symbolize_cache *cache)
{
	__u64 used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct look l;
	int err;

	if (now_ns() < f->next_ns)
		return 0;
	err = look_init(&l, f, r->profile);
	if (!err && l.nwanted)
		look_at_all(&l);
	used_ns = LOOK_COSTS * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns);
	f->next_ns = now_ns() + (used_ns > LOOK_NS ? used_ns : LOOK_NS);
	for (__u32 i = 0; i < r->profile->nobjects && !err && l.nwanted; i++) {
		if (l.wanted[i] && (f->holder[i] || !l.blind))
			err = let_go(r, i, cache);
	}
	free(l.wanted);
	return err;
}

void file_release_fini(struct file_release *f)
{
	free(f->holder);
	*f = (struct file_release){ 0 };
}
