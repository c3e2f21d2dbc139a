/* symbolize_cache.c - the symbols of a profile's objects */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"

#include "dwarf_lines.h"
#include "elf_symbols.h"
#include "perf_map.h"
#include "symbols/interpreters/interpreter.h"
#include "symbolize_cache.h"

/* An object that cannot be read has no symbols, which is not an error. */
static struct symbols *symbols_of(const struct profile *p, const struct object *o,
				  const struct symbolize_cache *cache)
{
	__cleanup(closep) int late = -1;
	struct symbols *s = NULL;

	if (o->kind == OBJECT_FILE && o->released && o->fd < 0 && cache->reopen)
		cache->reopen(cache->reader, (__u32)(o - p->objects));
	if (o->kind == OBJECT_KERNEL && o->kernel_text)
		symbols_open_kernel(&s, o->kernel_text);
	else if (o->kind == OBJECT_INTERPRETED && o->interpreted)
		symbols_open_interpreted(&s, o->interpreted);
	else if (!strcmp(o->path, "[vdso]"))
		symbols_open_vdso(&s);
	else if (!strcmp(o->path, PROFILE_ANON) && o->fd >= 0)
		symbols_open_perfmap(&s, o->fd);
	else if (!strcmp(o->path, PROFILE_ANON) &&
		 (late = perfmap_open_any(o->pid ? o->pid : p->pid)) >= 0)
		symbols_open_perfmap(&s, late); /* some runtimes write it when they exit */
	else if (o->fd >= 0)
		symbols_open(&s, o->fd, o->path);
	return s;
}

static int grow(struct symbolize_cache *cache, size_t n)
{
	struct symbolize_cache_entry *more = reallocarray(cache->objects, n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	memset(more + cache->n, 0, (n - cache->n) * sizeof(*more));
	cache->objects = more;
	cache->n = n;
	return 0;
}

static void drop(struct symbolize_cache *cache, struct symbolize_cache_entry *e)
{
	cache->held -= e->symbols != NULL;
	symbols_close(steal(e->symbols));
}

static void drop_oldest(struct symbolize_cache *cache)
{
	struct symbolize_cache_entry *oldest = NULL;

	for (size_t i = 0; i < cache->n; i++) {
		struct symbolize_cache_entry *e = &cache->objects[i];

		if (e->symbols && (!oldest || e->used_ns < oldest->used_ns))
			oldest = e;
	}
	if (!oldest)
		return;
	drop(cache, oldest);
	oldest->tried = false;
}

static void read_symbols(struct symbolize_cache *cache, struct symbolize_cache_entry *e,
			 const struct profile *p, __u32 object)
{
	const struct object *o = &p->objects[object];
	struct profil_interpreter d;

	if (cache->most && cache->reads++ >= SYMBOLIZE_CACHE_READS_MOST * cache->most)
		return;
	if (cache->most && cache->held >= cache->most)
		drop_oldest(cache);
	e->symbols = symbols_of(p, o, cache) ?: steal(e->kept);
	e->interpreter_unknown = e->symbols && o->kind == OBJECT_FILE && o->fd >= 0 &&
				 interpreter_open(&d, o->fd, o->path) == -EOPNOTSUPP;
	cache->held += e->symbols != NULL;
}

int symbolize_cached(struct symbols **out, const struct profile *p, __u32 object,
		     struct symbolize_cache *cache)
{
	struct symbolize_cache_entry *o;
	int err = object < cache->n ? 0 : grow(cache, p->nobjects);

	if (err)
		return err;
	o = &cache->objects[object];
	if (!o->symbols && !o->tried)
		read_symbols(cache, o, p, object);
	o->tried = true;
	o->used_ns = now_ns();
	*out = o->symbols;
	return 0;
}

const char *symbolize_cached_unnamed(__u32 object, const struct symbolize_cache *cache)
{
	return object < cache->n && cache->objects[object].interpreter_unknown
		       ? PROFILE_UNNAMED_INTERPRETER
		       : "";
}

struct lines *symbolize_cached_lines(const struct profile *p, __u32 object,
				     struct symbolize_cache *cache)
{
	struct symbolize_cache_entry *e;

	if (p->objects[object].kind != OBJECT_FILE || cache->without_lines ||
	    (object >= cache->n && grow(cache, p->nobjects) < 0))
		return NULL;
	e = &cache->objects[object];
	if (!e->lines_tried)
		lines_open(&e->lines, &p->objects[object]);
	e->lines_tried = true;
	return e->lines;
}

static void drop_lines(struct symbolize_cache_entry *e)
{
	lines_close(steal(e->lines));
	e->lines_tried = false;
}

/* Drops the lines of an object whose symbols were dropped, and those that take too much. */
static void renew_lines(struct symbolize_cache_entry *e, __u64 *left)
{
	__u64 bytes = e->lines ? lines_bytes(e->lines) : 0;

	if (!e->symbols || (e->lines && (!bytes || bytes > *left)))
		drop_lines(e);
	else
		*left -= bytes;
}

/* Says whether the process whose code @o is has ended, and so needs no perf map any more. */
static bool has_ended(struct object *o)
{
	o->ended |= o->pid && kill(o->pid, 0) < 0 && errno == ESRCH;
	return o->ended;
}

static void release(struct object *o)
{
	if (o->fd < 0 || (o->kind != OBJECT_FILE && !has_ended(o)))
		return;
	closep(&o->fd);
	o->fd = -1;
	o->released = true;
}

void symbolize_cache_renew(struct symbolize_cache *cache, struct profile *p, __u64 since_ns)
{
	__u64 lines_left = SYMBOLIZE_CACHE_LINES_BYTES;

	for (size_t i = 0; i < p->nobjects; i++) {
		struct symbolize_cache_entry none = { 0 };
		struct symbolize_cache_entry *e = i < cache->n ? &cache->objects[i] : &none;
		struct object *o = &p->objects[i];
		bool changes = o->kind == OBJECT_INTERPRETED || o->kind == OBJECT_ANON;

		if (changes || e->used_ns < since_ns)
			drop(cache, e);
		renew_lines(e, &lines_left);
		if (e->used_ns < since_ns)
			release(o);
		e->tried = e->symbols != NULL;
	}
	cache->reads = 0;
}

int symbolize_cache_let_go(struct symbolize_cache *cache, struct profile *p, __u32 object,
			   const __u64 *offset, size_t n)
{
	struct symbolize_cache_entry *e;
	struct symbols *all;
	int err = symbolize_cached(&all, p, object, cache);

	if (err)
		return err;
	e = &cache->objects[object];
	if (all) {
		symbols_close(steal(e->kept));
		err = symbols_keep(&e->kept, all, offset, n);
	}
	drop(cache, e);
	drop_lines(e);
	e->tried = false;
	release(&p->objects[object]);
	return err;
}

__u64 symbolize_cache_minute_ago(void)
{
	__u64 now = now_ns(), minute_ns = 60 * 1000000000ull;

	return now > minute_ns ? now - minute_ns : 0;
}

void symbolize_cache_fini(struct symbolize_cache *cache)
{
	for (size_t i = 0; i < cache->n; i++) {
		drop_lines(&cache->objects[i]);
		symbols_close(cache->objects[i].symbols);
		symbols_close(cache->objects[i].kept);
	}
	free(cache->objects);
	*cache = (struct symbolize_cache){ 0 };
}
