/* symbolize_cache.c - the symbols of a profile's objects */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"

#include "elf_symbols.h"
#include "perf_map.h"
#include "symbolize_cache.h"

#define UNUSED_NS (60 * 1000000000ull)

/* An object that cannot be read has no symbols, which is not an error. */
static struct symbols *symbols_of(const struct profile *p, const struct object *o)
{
	__cleanup(closep) int late = -1;
	struct symbols *s = NULL;

	if (o->kind == OBJECT_KERNEL && o->kernel_text)
		symbols_open_kernel(&s, o->kernel_text);
	else if (o->kind == OBJECT_INTERPRETED && o->interpreted)
		symbols_open_interpreted(&s, o->interpreted);
	else if (!strcmp(o->path, "[vdso]"))
		symbols_open_vdso(&s);
	else if (!strcmp(o->path, PROFILE_ANON) && o->fd >= 0)
		symbols_open_perfmap(&s, o->fd);
	else if (!strcmp(o->path, PROFILE_ANON) &&
		 (late = perfmap_open(o->pid ? o->pid : p->pid)) >= 0)
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

int symbolize_cached(struct symbols **out, const struct profile *p, __u32 object,
		     struct symbolize_cache *cache)
{
	struct symbolize_cache_entry *o;
	int err = object < cache->n ? 0 : grow(cache, p->nobjects);

	if (err)
		return err;
	o = &cache->objects[object];
	if (!o->symbols && !o->tried)
		o->symbols = symbols_of(p, &p->objects[object]);
	o->tried = true;
	o->used_ns = now_ns();
	*out = o->symbols;
	return 0;
}

void symbolize_cache_renew(struct symbolize_cache *cache, const struct profile *p)
{
	__u64 now = now_ns();

	for (size_t i = 0; i < cache->n; i++) {
		struct symbolize_cache_entry *o = &cache->objects[i];

		if (p->objects[i].kind == OBJECT_INTERPRETED ||
		    !strcmp(p->objects[i].path, PROFILE_ANON) || now - o->used_ns > UNUSED_NS)
			symbols_close(steal(o->symbols));
		o->tried = o->symbols != NULL;
	}
}

void symbolize_cache_fini(struct symbolize_cache *cache)
{
	for (size_t i = 0; i < cache->n; i++)
		symbols_close(cache->objects[i].symbols);
	free(cache->objects);
	*cache = (struct symbolize_cache){ 0 };
}
