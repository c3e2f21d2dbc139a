/* llvm.c - LLVM's sample profile as text, for clang -fprofile-sample-use */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "base/grow.h"
#include "branches.h"
#include "format.h"
#include "symbols/dwarf_lines.h"

/*
 * The compiler looks up samples by function, line from its start and discriminator, and those of
 * inlined functions below their calls:
 *
 *	main:1200:10
 *	 1: 10
 *	 4.2: 90
 *	 5: step:1100
 *	  1: 1100
 *
 * The numbers are the samples at that line, in the function with what is inlined there, and in its
 * first block, for how often it is entered: without a record of branches the samples of a block
 * stand for its executions. With one, code from the target of a branch to the next branch ran once
 * for each record, and a line as often as the most frequent code of it.
 */
#define SITES_MAX 64

/* Samples at a place: the function, what is inlined there, ... */
struct path {
	struct source_site *site; /* outermost first */
	size_t n;
	__u64 samples;
	bool head; /* the function begins here */
};

struct paths {
	struct lines *lines;
	struct path *path;
	size_t n;
	bool runs; /* of branches: samples of one line are not added up */
};

static void paths_fini(struct paths *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		free(paths->path[i].site);
	free(paths->path);
	lines_close(paths->lines);
}

/*
 * LLVM's "base discriminator": the encoding puts it first, in 6 or 13 bits behind a bit that says
 * that there is none. Copies of a loop's body differ in what follows.
 */
static __u32 base_discriminator(__u32 d)
{
	if (d & 1)
		return 0;
	d >>= 1;
	return d & 0x20 ? (d >> 1 & 0xfe0) | (d & 0x1f) : d & 0x1f;
}

static int by_line(const struct source_site *x, const struct source_site *y)
{
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->discriminator < y->discriminator ? -1 : x->discriminator > y->discriminator;
}

/* The samples of a line come before those of functions inlined there. */
static int by_site(const void *a, const void *b)
{
	const struct path *x = a, *y = b;
	int order = 0;

	for (size_t i = 0; !order && i < x->n && i < y->n; i++) {
		order = strcmp(x->site[i].function, y->site[i].function);
		if (!order)
			order = by_line(&x->site[i], &y->site[i]);
	}
	return order ? order : x->n < y->n ? -1 : x->n > y->n;
}

/* Adds @from to @path, if it is the same line: that ran as often as its most frequent code. */
static bool unite(struct path *path, const struct path *from)
{
	if (by_site(path, from))
		return false;
	if (from->samples > path->samples)
		path->samples = from->samples;
	path->head |= from->head;
	free(from->site);
	return true;
}

/* Adds @samples at @offset. Places without a known line are left out. */
static int add(struct paths *paths, __u64 offset, __u64 samples, bool head, __u64 *entry)
{
	struct source_site site[SITES_MAX];
	size_t n = lines_sites(paths->lines, offset, site, SITES_MAX, entry);
	struct path path = { NULL, n, samples, head }, *grown;

	*entry = n ? *entry : 0;
	if (!n)
		return 0;
	path.site = calloc(n, sizeof(*site));
	grown = path.site ? grow(paths->path, paths->n, sizeof(path)) : NULL;
	if (!grown) {
		free(path.site);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		path.site[i] = site[n - 1 - i];
		path.site[i].line &= 0xffff;
		path.site[i].discriminator = base_discriminator(path.site[i].discriminator);
	}
	paths->path = grown;
	grown[paths->n++] = path;
	if (paths->runs && paths->n > 1)
		paths->n -= unite(&grown[paths->n - 2], &grown[paths->n - 1]);
	return 0;
}

/* The number of paths from the first on that have the same function at @depth. */
static size_t same_function(const struct path *path, size_t n, size_t depth)
{
	size_t i = 1;

	while (i < n && !strcmp(path[i].site[depth].function, path->site[depth].function))
		i++;
	return i;
}

/* The number of paths from the first on that are at the same line at @depth. */
static size_t same_line(const struct path *path, size_t n, size_t depth)
{
	size_t i = 1;

	while (i < n && !by_line(&path[i].site[depth], &path->site[depth]))
		i++;
	return i;
}

static __u64 sum(const struct path *path, size_t n)
{
	__u64 samples = 0;

	for (size_t i = 0; i < n; i++)
		samples += path[i].samples;
	return samples;
}

/* The samples where the function of @path begins. */
static __u64 head_samples(const struct path *path, size_t n)
{
	__u64 samples = 0;
	size_t head = 0;

	while (head < n && !path[head].head)
		head++;
	for (size_t i = 0; head < n && i < n; i++)
		samples += by_site(&path[i], &path[head]) ? 0 : path[i].samples;
	return samples;
}

static void put_line(FILE *out, const struct source_site *site, size_t depth)
{
	fprintf(out, "%*s%u", (int)depth + 1, "", site->line);
	if (site->discriminator)
		fprintf(out, ".%u", site->discriminator);
	fprintf(out, ": ");
}

/* Writes the lines of a function, whose paths these are, and what is inlined into it. */
static void put_lines(FILE *out, const struct path *path, size_t n, size_t depth)
{
	for (size_t line; n; path += line, n -= line) {
		size_t own = 0;

		line = same_line(path, n, depth);
		while (own < line && path[own].n == depth + 1)
			own++;
		if (sum(path, own)) {
			put_line(out, path->site + depth, depth);
			fprintf(out, "%llu\n", sum(path, own));
		}
		for (size_t i = own, some; i < line; i += some) {
			some = same_function(path + i, line - i, depth + 1);
			if (!sum(path + i, some))
				continue;
			put_line(out, path->site + depth, depth);
			fprintf(out, "%s:%llu\n", path[i].site[depth + 1].function,
				sum(path + i, some));
			put_lines(out, path + i, some, depth + 1);
		}
	}
}

static void put_functions(FILE *out, const struct path *path, size_t n)
{
	for (size_t some; n; path += some, n -= some) {
		some = same_function(path, n, 0);
		fprintf(out, "%s:%llu:%llu\n", path->site->function, sum(path, some),
			head_samples(path, some));
		put_lines(out, path, some, 0);
	}
}

/* Adds @samples at @offset, and the entry of its function; *@last is that of the one before. */
static int add_code(struct paths *paths, __u64 offset, __u64 samples, __u64 *last)
{
	__u64 entry;
	int err = add(paths, offset, samples, false, &entry);

	if (err || !entry || entry == *last)
		return err;
	*last = entry;
	return add(paths, entry, 0, true, &entry);
}

static int add_places(struct paths *paths, const struct profile *p, __u32 object)
{
	__cleanup(freep) struct place *place = places_sorted(&p->places);
	int err = place ? 0 : -ENOMEM;
	__u64 last = 0;

	for (size_t i = 0; i < p->places.n && !err; i++) {
		if (place[i].object == object)
			err = add_code(paths, place[i].offset, place[i].count, &last);
	}
	return err;
}

/* From @offset on, code ran so many times more than before it. */
struct change {
	__u64 offset;
	__s64 more;
};

static int by_offset(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The changes by all runs of code in @object, sorted. Returns 0 or -ENOMEM. */
static int changes_of(struct change **out, size_t *n, const struct profile *p, __u32 object)
{
	__cleanup(freep) struct branch *branch = NULL;
	size_t nbranches;

	*n = 0;
	if (branches_read(&branch, &nbranches, p))
		return -ENOMEM;
	*out = calloc(2 * nbranches + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (const struct branch *b = branch; b < branch + nbranches; b++) {
		if (!b->runs || b->object != object)
			continue;
		(*out)[(*n)++] = (struct change){ b->to, (__s64)b->count };
		(*out)[(*n)++] = (struct change){ b->end + 1, -(__s64)b->count };
	}
	qsort(*out, *n, sizeof(**out), by_offset);
	return 0;
}

static int add_runs(struct paths *paths, const struct profile *p, __u32 object)
{
	__cleanup(freep) struct change *change = NULL;
	size_t n;
	int err = changes_of(&change, &n, p, object);
	__u64 last = 0, ran = 0;

	for (size_t i = 0; i + 1 < n && !err; i++) {
		ran += (__u64)change[i].more;
		for (__u64 at = change[i].offset; ran && at < change[i + 1].offset && !err; at++)
			err = add_code(paths, at, ran, &last);
	}
	return err;
}

static int collect(struct paths *paths, const struct profile *p, __u32 object)
{
	size_t n = 0;
	int err;

	paths->runs = profile_is_branches(p);
	err = paths->runs ? add_runs(paths, p, object) : add_places(paths, p, object);
	if (err < 0 || !paths->n)
		return err ? err : -ENODATA;
	qsort(paths->path, paths->n, sizeof(*paths->path), by_site);
	for (size_t i = 1; paths->runs && i < paths->n; i++) {
		if (!unite(&paths->path[n], &paths->path[i]))
			paths->path[++n] = paths->path[i];
	}
	if (paths->runs)
		paths->n = n + 1;
	return 0;
}

int llvm_write(FILE *out, const struct profile *p)
{
	struct paths paths = { 0 };
	__u32 object;
	int err = profile_is_off_cpu(p) ? -EOPNOTSUPP : profile_main_object(&object, p);

	if (!err && p->nobjects)
		err = lines_open(&paths.lines, &p->objects[object]);
	if (!err || err == -ENOENT)
		err = paths.lines ? collect(&paths, p, object) : -ENODATA;
	if (!err)
		put_functions(out, paths.path, paths.n);
	paths_fini(&paths);
	return err;
}
