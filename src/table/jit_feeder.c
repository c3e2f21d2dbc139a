/* jit_feeder.c - feeds the unwind rules of a process's own code, as its jitdump grows */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clocks.h"
#include "base/grow.h"
#include "core/unwind_maps.h"
#include "symbols/jit_rows.h"

#include "jit_feeder.h"

/*
 * All rules are made anew each time, at most 1 / SHARE of the time. A walk takes some microseconds,
 * so none still reads the rows that were replaced the time before.
 */
#define EVERY_NS 200000000u
#define SHARE 50

/* Writes the rows of @t where the kernel reads none, and their position to @at. */
static bool put(struct unwind_feeder *f, struct jit_image *j, const struct unwind_table *t,
		struct unwind_share *share, struct profil_unwind_image *at)
{
	size_t pages = (t->n + PROFIL_PAGE_ROWS - 1) / PROFIL_PAGE_ROWS;
	struct unwind_area *a = &j->area[!j->latest];

	if (pages > a->pages && !unwind_area_take(f, a, 2 * pages, share)) {
		f->full = true;
		return false;
	}
	if (!unwind_area_fill(f, a, at, t))
		return false;
	j->latest = !j->latest;
	return true;
}

/* Makes rows of the jitdump's rules if it has grown. Returns false if there are no new ones. */
static bool look(struct unwind_feeder *f, const struct table_reader *r, struct jit_image *j,
		 struct profil_unwind_image *at)
{
	const struct object *o = &r->profile->objects[r->object[j->image] - 1];
	__u64 began_ns = now_ns();
	struct unwind_table t;
	struct stat st;
	bool put_any;

	j->next_ns = began_ns + EVERY_NS;
	if (o->fd < 0 || fstat(o->fd, &st) < 0 || (__u64)st.st_size == j->bytes)
		return false;
	j->bytes = (__u64)st.st_size;
	put_any = !jit_rows_read(&t, o, table_image(&r->table, j->image)->base) &&
		  put(f, j, &t, unwind_share_of(f, o->fd), at);
	unwind_table_fini(&t);
	j->next_ns += SHARE * (now_ns() - began_ns);
	return put_any;
}

void jit_feeder_add(struct unwind_feeder *f, const struct table_reader *r, __u32 image,
		    struct profil_unwind_image *at)
{
	struct jit_image *grown = f->rows ? grow(f->jits, f->njits, sizeof(*grown)) : NULL;

	if (!grown)
		return;
	f->jits = grown;
	f->jits[f->njits] = (struct jit_image){ .image = image };
	look(f, r, &f->jits[f->njits++], at);
}

/* A walk that meets the image in between ends there, and the kernel does not keep that. */
static void publish(struct profil_unwind_image *entry, const struct profil_unwind_image *at)
{
	__atomic_store_n(&entry->looked, PROFIL_LOOKED_NOT_YET, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->pages, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->base, at->base, __ATOMIC_RELEASE); /* the first two pages */
	__atomic_store_n(&entry->pages, at->pages, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->looked, PROFIL_LOOKED, __ATOMIC_RELEASE);
}

void jit_feeder_update(struct unwind_feeder *f, const struct table_reader *r)
{
	__u64 now = f->njits ? now_ns() : 0;

	for (size_t i = 0; i < f->njits; i++) {
		struct jit_image *j = &f->jits[i];
		struct profil_unwind_image at;

		if (now >= j->next_ns && look(f, r, j, &at))
			publish(unwind_entry_of(f, j->image), &at);
	}
}

void jit_feeder_clear(struct unwind_feeder *f)
{
	free(f->jits);
	f->jits = NULL;
	f->njits = 0;
}
