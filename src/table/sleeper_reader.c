/* sleeper_reader.c - adds the time of threads that still have no CPU to a profile of waits */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "core/proto.h"

#include "sleeper_reader.h"
#include "stack_reader.h"

/* Samples of a wait from @since to @until, rounded. */
static __u64 samples_of(__u64 since, __u64 until, __u64 period_ns)
{
	return until > since ? (until - since + period_ns / 2) / period_ns : 0;
}

static int add_places(const struct table_reader *r, struct profile *into,
		      const struct profil_sleeper *s, __u64 n)
{
	int err = 0;

	into->total += n;
	if (!s->key[0])
		into->unmatched += n;
	for (int i = 0; i < 2 && !err; i++)
		err = s->key[i] ? table_reader_add(r, into, s->key[i], n) : 0;
	into->binned = into->places.sum;
	return err;
}

struct waits {
	const struct table_reader *reader;
	struct profile *into;
	struct stack_count *stacks;
	size_t n;
};

static int add_wait(struct waits *w, const struct profil_sleeper *s, enum call_state state, __u64 n)
{
	__u32 node = s->node - PROFIL_STACK_ROOTS;
	int err = n ? add_places(w->reader, w->into, s, n) : 0;

	if (n && !err && state && s->node < PROFIL_STACK_ROOTS)
		return call_tree_count(&w->into->calls, call_root(CALL_UNREADABLE, state), n);
	if (n && s->node >= PROFIL_STACK_ROOTS && node < w->reader->table.head->nodes)
		w->stacks[w->n++] = (struct stack_count){ node, state, n,
							  state == CALL_RUNNABLE ? 0 : s->wait };
	return err;
}

/* Adds the time of @s until @now: asleep, and runnable once it was woken. */
static int add_sleeper(struct waits *w, const struct profil_sleeper *s, __u64 now)
{
	const struct profil_table *head = w->reader->table.head;
	__u64 woken = s->woken_ns && s->woken_ns < now ? s->woken_ns : now;
	int err;

	if (!s->tid || !s->since_ns)
		return 0;
	if (!(head->flags & PROFIL_OBSERVE_WAITS))
		return add_wait(w, s, CALL_NO_STATE, samples_of(s->since_ns, now, head->period_ns));
	err = add_wait(w, s, CALL_ASLEEP, samples_of(s->since_ns, woken, head->period_ns));
	return err ? err : add_wait(w, s, CALL_RUNNABLE, samples_of(woken, now, head->period_ns));
}

int sleepers_read(const struct table_reader *r, struct profile *into, __u64 now_ns)
{
	const struct profil_table *head = r->table.head;
	__cleanup(freep) struct stack_count *stacks = NULL;
	struct waits w = { .reader = r, .into = into };
	int err = 0;

	if (!head->sleepers)
		return 0;
	into->sleepers_full += head->sleepers_full;
	w.stacks = stacks = calloc(head->sleepers, 2 * sizeof(*stacks));
	if (!stacks)
		return -ENOMEM;
	for (__u32 i = 0; i < head->sleepers && !err; i++) {
		const struct profil_sleeper s = table_sleepers(&r->table)[i];

		err = add_sleeper(&w, &s, now_ns);
	}
	return err ? err : stack_reader_add(r, stacks, w.n, &into->calls);
}
