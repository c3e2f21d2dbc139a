/* sleeper_reader.c - adds the time of threads that still sleep to a profile of off-CPU time */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "sleeper_reader.h"
#include "stack_reader.h"

/* Samples of the sleep of @s until @now, rounded; 0 for a free element. */
static __u64 samples_of(const struct profil_sleeper *s, __u64 now, __u64 period_ns)
{
	return s->tid && s->since_ns && now > s->since_ns
		       ? (now - s->since_ns + period_ns / 2) / period_ns
		       : 0;
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

int sleepers_read(const struct table_reader *r, struct profile *into, __u64 now_ns)
{
	const struct profil_table *head = r->table.head;
	__cleanup(freep) struct stack_count *stacks = NULL;
	size_t nstacks = 0;
	int err = 0;

	if (!head->sleepers)
		return 0;
	into->sleepers_full += head->sleepers_full;
	stacks = calloc(head->sleepers, sizeof(*stacks));
	if (!stacks)
		return -ENOMEM;
	for (__u32 i = 0; i < head->sleepers && !err; i++) {
		const struct profil_sleeper s = table_sleepers(&r->table)[i];
		__u64 n = samples_of(&s, now_ns, head->period_ns);
		__u32 node = s.node - PROFIL_STACK_ROOTS;

		if (!n)
			continue;
		err = add_places(r, into, &s, n);
		if (s.node >= PROFIL_STACK_ROOTS && node < head->nodes)
			stacks[nstacks++] = (struct stack_count){ node, n };
	}
	return err ? err : stack_reader_add(r, stacks, nstacks, &into->calls);
}
