/* spool_index.c - the profiles of a spool in memory, read as they are asked for */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/sanitize.h"

#include "profile/profile_file.h"
#include "spool_index.h"

#define SETTLED_NS 1000000000ull /* of a time of change, whose clock may be coarse */
#define BYTES_MAX (128ul << 20)	 /* of the lists in memory */
#define FILE_MAX (64ul << 20)	 /* bytes of a profile */

/* Forgets what the spool has removed; the names of what is gone end with all others. */
static void forget_old(struct spool_index *x)
{
	struct interval_sums *s = &x->sums;
	size_t n = 0;

	while (n < s->n && (!x->n || s->interval[n].start < x->entry->start))
		n++;
	interval_sums_remove(s, n);
	if (s->removed > s->n)
		interval_sums_fini(s);
}

/* The time at which files were last added or removed; 0: unknown, or so short ago that more may. */
static __u64 changed_ns(const char *path)
{
	struct stat st;
	__u64 ns;

	if (stat(path, &st) < 0)
		return 0;
	ns = (__u64)st.st_mtim.tv_sec * 1000000000u + (__u64)st.st_mtim.tv_nsec;
	return clock_ns(CLOCK_REALTIME) < ns + SETTLED_NS ? 0 : ns;
}

void spool_index_list(struct spool_index *x)
{
	__u64 changed = changed_ns(x->path);
	struct spool_entry *all = NULL;
	size_t n = 0;

	if (changed && changed == x->changed_ns)
		return;
	x->changed_ns = changed;
	x->error = spool_files_list(&all, &n, x->path, false);
	free(x->entry);
	x->entry = all;
	x->n = x->error ? 0 : spool_files_choose(all, n, 0, SPOOL_NO_END);
	forget_old(x);
}

static bool is_in(const struct spool_entry *e, const struct spool_span *span)
{
	time_t twice = 2 * e->start + e->seconds;

	return twice >= 2 * span->since && twice < 2 * span->until;
}

/* Entries with the same start and length follow each other, and are read in their order. */
static bool is_read(const struct spool_index *x, size_t i)
{
	const struct spool_entry *e = &x->entry[i];
	size_t before = 0;

	while (before < i && e[-1 - (ssize_t)before].start == e->start &&
	       e[-1 - (ssize_t)before].seconds == e->seconds)
		before++;
	return interval_sums_count(&x->sums, e->start, e->seconds) > before;
}

/* Where memory is full, newer profiles replace older ones. */
static bool is_too_old(const struct spool_index *x, size_t i)
{
	const struct interval_sums *s = &x->sums;

	return s->bytes >= BYTES_MAX && s->n && x->entry[i].start < s->interval->start;
}

static bool is_wanted(const struct spool_index *x, size_t i)
{
	return is_in(&x->entry[i], &x->wanted[0]) || is_in(&x->entry[i], &x->wanted[1]);
}

/* The entry to read next; x->n: none. */
static size_t next(const struct spool_index *x)
{
	size_t found = x->n;

	for (size_t i = x->n; i-- > 0;) {
		if (is_read(x, i) || is_too_old(x, i))
			continue;
		if (is_wanted(x, i))
			return i;
		found = found == x->n ? i : found;
	}
	return found;
}

/* What cannot be read counts as an interval without samples, so that it is tried once. */
static int load(struct profile **out, const char *path)
{
	__cleanup(fclosep) FILE *in = fopen(path, "re");
	char why[256], clean[1024];
	int err = in ? profile_file_read(out, in, FILE_MAX, why, sizeof(why)) : -errno;

	if (!err)
		return 0;
	log_warning("cannot read %s: %s", sanitize(clean, sizeof(clean), path),
		    in ? why : strerror(-err));
	*out = err == -ENOMEM ? NULL : profile_new();
	return *out ? 0 : -ENOMEM;
}

bool spool_index_read_one(struct spool_index *x)
{
	__cleanup(profile_freep) struct profile *p = NULL;
	__cleanup(freep) char *path = NULL;
	const struct spool_entry *e;
	size_t i = next(x);

	if (i == x->n)
		return false;
	if (x->sums.bytes >= BYTES_MAX)
		interval_sums_remove(&x->sums, x->sums.n / 8 + 1);
	e = &x->entry[i];
	if (asprintf(&path, "%s/%s", x->path, e->name) < 0) {
		path = NULL;
		return false;
	}
	return !load(&p, path) && !interval_sums_add(&x->sums, p, e->start, e->seconds);
}

size_t spool_index_unread(const struct spool_index *x, const struct spool_span *span, size_t *all,
			  size_t *too_old)
{
	size_t unread = 0;

	for (size_t i = 0; i < x->n; i++) {
		if (!is_in(&x->entry[i], span))
			continue;
		if (is_too_old(x, i)) {
			++*too_old;
			continue;
		}
		++*all;
		unread += !is_read(x, i);
	}
	return unread;
}

void spool_index_fini(struct spool_index *x)
{
	interval_sums_fini(&x->sums);
	free(x->entry);
	*x = (struct spool_index){ .path = x->path };
}
