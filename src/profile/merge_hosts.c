/* merge_hosts.c - the sum of profiles of several hosts */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "merge.h"
#include "merge_parts.h"

/* Moves the samples of group 0 to @group. */
static int regroup(struct places *t, __u32 group)
{
	struct places to = { 0 };
	int err = 0;

	places_each(place, t) {
		struct place own = *place;

		own.group = own.group ? own.group : group;
		err = err ?: places_add(&to, &own);
	}
	places_fini(err ? &to : t);
	if (!err)
		*t = to;
	return err;
}

int merge_sums(struct merge *m)
{
	struct profile *p = m->into;
	struct places plain = { 0 };
	int err = 0;

	if (!p->sums.n)
		return 0;
	places_each(place, &p->places) {
		struct place sum = { .object = place->object,
				     .group = place->group,
				     .count = place->group ? place->count : 0 };
		struct place own = *place;

		own.group = 0;
		err = err ?: places_add(&p->sums, &sum) ?: places_add(&plain, &own);
	}
	places_fini(err ? &plain : &p->places);
	if (!err)
		p->places = plain;
	return err;
}

/* Adds to the sums, as @group, what those of @from lack. @object: its numbers there + 1; NULL: equal.
 */
static int add_lacking(struct profile *into, const struct profile *from, const __u32 *object,
		       __u32 group)
{
	__cleanup(freep) __s64 *left = calloc(from->nobjects + 1, sizeof(*left));
	int err = 0;

	if (!left)
		return -ENOMEM;
	places_each(place, &from->places)
		left[place->object] += (__s64)place->count;
	places_each(place, &from->sums)
		left[place->object] -= (__s64)place->count;
	for (__u32 i = 0; i < from->nobjects && !err; i++) {
		struct place sum = { .object = object ? object[i] - 1 : i, .group = group };

		sum.count = left[i] > 0 ? (__u64)left[i] : 0;
		err = sum.count ? places_add(&into->sums, &sum) : 0;
	}
	return err;
}

int merge_host_rest(struct merge *m, const struct numbers *n, const struct profile *from)
{
	__u32 group;

	if (!m->of_hosts || !from->sums.n)
		return 0;
	return merge_group_of(m, n, from, 0, &group)
		       ?: add_lacking(m->into, from, n->object, group);
}

static bool has_rest(const struct places *t)
{
	places_each(place, t) {
		if (!place->group)
			return true;
	}
	return false;
}

/* What comes from a sum of several hosts has the name of its own already. */
static int name_if_none(char **host, const char *name)
{
	if (!*host)
		*host = strdup(name);
	return *host ? 0 : -ENOMEM;
}

/* Gives what was added so far the name of its host. */
static int name_host(struct merge *m)
{
	struct profile *p = m->into;
	struct group rest = { .command = (char *)GROUP_REST, .host = p->host.name };
	__u32 group;

	merge_forget(m);
	for (size_t i = 1; i < p->ngroups; i++) {
		if (name_if_none(&p->groups[i].host, p->host.name) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < p->nobjects; i++) {
		struct object *o = &p->objects[i];

		if (o->kind == OBJECT_ANON && name_if_none(&o->host, p->host.name) < 0)
			return -ENOMEM;
	}
	if (!has_rest(&p->places) && !has_rest(&p->folded) && !has_rest(&p->sums))
		return 0;
	if (merge_group(m, &rest, &group) || regroup(&p->sums, group) || merge_sums(m))
		return -ENOMEM;
	return p->sums.n ? add_lacking(p, p, NULL, group)
			 : regroup(&p->places, group) ?: regroup(&p->folded, group);
}

/* Clears what the hosts do not have in common. */
static void agree(char *own, const char *other)
{
	if (strcmp(own, other) != 0)
		*own = '\0';
}

int merge_host(struct merge *m, const struct profile *from)
{
	struct host_identity *h = &m->into->host;
	bool other = strcmp(h->name, from->host.name) != 0;
	int err = 0;

	if (other && !m->of_hosts) {
		err = name_host(m);
		m->of_hosts = true;
	}
	agree(h->name, from->host.name);
	agree(h->kernel, from->host.kernel);
	agree(h->architecture, from->host.architecture);
	agree(h->boot_id, from->host.boot_id);
	return err;
}
