/* process_table.c - the process table from the daemon's side; overview: bpf/process_table.bpf.h */
#include <errno.h>
#include <string.h>

#include "process_table.h"

static struct profil_bucket *bucket_of(const struct process_table *p, uint32_t tgid, uint32_t which)
{
	return &p->tables->bucket[profil_bucket_of(tgid, p->seed, which)];
}

/* How many of the two buckets of a process have to be searched. */
static uint32_t buckets(const struct process_table *p)
{
	return __atomic_load_n(&p->tables->displaced, __ATOMIC_SEQ_CST) ? 2 : 1;
}

static bool replace(__u64 *place, __u64 old, __u64 new)
{
	return __atomic_compare_exchange_n(place, &old, new, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

/* --- dirty flags ------------------------------------------------------------------------------ */

void process_table_set_dirty(struct process_table *p, uint32_t index)
{
	__atomic_store_n(&p->tables->dirty.target[index], 1, __ATOMIC_SEQ_CST);
}

bool process_table_next_dirty(const struct process_table *p, uint32_t *index, uint32_t end)
{
	const __u8 *from = &p->tables->dirty.target[*index];
	const __u8 *flag = *index < end ? memchr(from, 1, end - *index) : NULL;

	if (!flag)
		return false;
	*index = (uint32_t)(flag - p->tables->dirty.target);
	return true;
}

void process_table_clear_dirty(struct process_table *p, uint32_t index)
{
	__atomic_store_n(&p->tables->dirty.target[index], 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void process_table_arm_wakeup(struct process_table *p)
{
	__atomic_store_n(&p->tables->dirty.wakeup, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void process_table_raw_taken(struct process_table *p, uint32_t index)
{
	struct profil_user *user = &p->tables->user[p->target[index].user % PROFIL_MAX_TARGETS];

	__atomic_store_n(&user->raw_taken, user->raw_taken + 1, __ATOMIC_RELAXED);
}

/* --- insert ----------------------------------------------------------------------------------- */

static uint32_t used(struct profil_bucket *b)
{
	uint32_t n = 0;

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++)
		n += __atomic_load_n(&b->entry[i], __ATOMIC_RELAXED) != 0;
	return n;
}

static bool put(struct profil_bucket *b, __u64 entry)
{
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		if (replace(&b->entry[i], 0, entry))
			return true;
	}
	return false;
}

static bool insert(struct process_table *p, __u64 entry)
{
	struct profil_bucket *first = bucket_of(p, profil_entry_tgid(entry), 0);
	struct profil_bucket *second = bucket_of(p, profil_entry_tgid(entry), 1);
	uint32_t n = used(first);

	if ((n < PROFIL_BUCKET_HALF || n <= used(second)) && put(first, entry))
		return true;
	__atomic_add_fetch(&p->tables->displaced, 1, __ATOMIC_SEQ_CST);
	if (put(second, entry))
		return true;
	__atomic_sub_fetch(&p->tables->displaced, 1, __ATOMIC_SEQ_CST);
	return put(first, entry);
}

/* Accounts for @entry of target @index, which has been removed or never inserted. */
static void leave(struct process_table *p, __u64 entry, uint32_t index)
{
	struct profil_target *t = &p->target[index];

	if (entry & PROFIL_ENTRY_FORKED) {
		__atomic_sub_fetch(&p->tables->user[t->user % PROFIL_MAX_TARGETS].children, 1,
				   __ATOMIC_SEQ_CST);
		__atomic_sub_fetch(&p->tables->children, 1, __ATOMIC_SEQ_CST);
	}
	if (__atomic_sub_fetch(&t->members, 1, __ATOMIC_SEQ_CST) == 0) {
		__atomic_store_n(&t->ended, 1, __ATOMIC_SEQ_CST);
		process_table_set_dirty(p, index);
	}
}

int process_table_insert(struct process_table *p, uint32_t tgid, uint32_t exec_id, uint32_t index)
{
	__u64 entry = profil_entry(tgid, index | exec_id);

	__atomic_add_fetch(&p->target[index].members, 1, __ATOMIC_SEQ_CST);
	if (insert(p, entry))
		return 0;
	leave(p, entry, index);
	return -EAGAIN;
}

/* --- search ----------------------------------------------------------------------------------- */

static bool entry_of(__u64 entry, uint32_t tgid)
{
	return entry & PROFIL_ENTRY_LIVE && profil_entry_tgid(entry) == tgid;
}

/* The next entry of @tgid from place *@at on; sets *@at behind it. NULL: there is none. */
static __u64 *next_place(const struct process_table *p, uint32_t tgid, int *at, __u64 *entry)
{
	int end = (int)buckets(p) * PROFIL_BUCKET_ENTRIES;

	while (*at < end) {
		struct profil_bucket *b = bucket_of(p, tgid, (uint32_t)*at / PROFIL_BUCKET_ENTRIES);
		__u64 *place = &b->entry[(*at)++ % PROFIL_BUCKET_ENTRIES];

		*entry = __atomic_load_n(place, __ATOMIC_SEQ_CST);
		if (entry_of(*entry, tgid))
			return place;
	}
	return NULL;
}

uint64_t process_table_next(const struct process_table *p, uint32_t tgid, int *at)
{
	__u64 entry;

	return next_place(p, tgid, at, &entry) ? entry : 0;
}

int process_table_move(struct process_table *p, uint32_t tgid, uint32_t generation, uint32_t from,
		       uint32_t index)
{
	__u64 *place, old, new;
	int at = 0;

	while ((place = next_place(p, tgid, &at, &old))) {
		if (profil_entry_target(old) != from)
			continue;
		if (profil_entry_generation(old) != generation)
			return -ESTALE;
		new = profil_entry(tgid, index | ((uint32_t)old & (PROFIL_ENTRY_GENERATIONS |
								   PROFIL_ENTRY_EXEC_IDS)));
		__atomic_add_fetch(&p->target[index].members, 1, __ATOMIC_SEQ_CST);
		if (replace(place, old, new)) {
			leave(p, old, from);
			return 0;
		}
		leave(p, new, index);
		return -ESTALE;
	}
	return -ESRCH;
}

#define ENTRIES (PROFIL_BUCKETS * PROFIL_BUCKET_ENTRIES)

static __u64 *place_at(const struct process_table *p, int i)
{
	struct profil_bucket *b = &p->tables->bucket[i / PROFIL_BUCKET_ENTRIES];

	return &b->entry[i % PROFIL_BUCKET_ENTRIES];
}

static bool counts(__u64 entry, uint32_t index)
{
	return entry & PROFIL_ENTRY_LIVE && !(entry & PROFIL_ENTRY_UNBOUND) &&
	       profil_entry_target(entry) == index;
}

bool process_table_counts(const struct process_table *p, uint32_t tgid, uint32_t index)
{
	uint64_t entry;

	for (int at = 0; (entry = process_table_next(p, tgid, &at));) {
		if (counts(entry, index))
			return true;
	}
	return false;
}

uint32_t process_table_other(const struct process_table *p, uint32_t tgid, uint32_t index)
{
	__u32 members = __atomic_load_n(&p->target[index].members, __ATOMIC_SEQ_CST);

	if (members <= process_table_counts(p, tgid, index))
		return 0;
	for (int i = 0; i < ENTRIES; i++) {
		__u64 entry = __atomic_load_n(place_at(p, i), __ATOMIC_SEQ_CST);

		if (counts(entry, index) && profil_entry_tgid(entry) != tgid)
			return profil_entry_tgid(entry);
	}
	return 0;
}

uint32_t process_table_leader(const struct process_table *p, uint32_t tgid, uint32_t index)
{
	return process_table_counts(p, tgid, index) ? tgid : process_table_other(p, tgid, index);
}

/* --- remove ----------------------------------------------------------------------------------- */

/* Removes entry @i if it names target @index and, unless @all, is not unbound. */
static void clear_place(struct process_table *p, int i, uint32_t index, bool all)
{
	__u64 *place = place_at(p, i), entry = __atomic_load_n(place, __ATOMIC_SEQ_CST);

	while (entry & PROFIL_ENTRY_LIVE && profil_entry_target(entry) == index &&
	       (all || counts(entry, index))) {
		if (replace(place, entry, 0)) {
			if (bucket_of(p, profil_entry_tgid(entry), 0) !=
			    &p->tables->bucket[i / PROFIL_BUCKET_ENTRIES])
				__atomic_sub_fetch(&p->tables->displaced, 1, __ATOMIC_SEQ_CST);
			leave(p, entry, index);
			return;
		}
		entry = __atomic_load_n(place, __ATOMIC_SEQ_CST);
	}
}

void process_table_remove(struct process_table *p, uint32_t tgid, uint32_t index)
{
	__u64 *place, entry;
	int at = 0;

	while ((place = next_place(p, tgid, &at, &entry))) {
		if (profil_entry_target(entry) == index)
			clear_place(p, (int)(place - p->tables->bucket[0].entry), index, true);
	}
}

void process_table_orphan(struct process_table *p, uint32_t index)
{
	for (int i = 0; i < ENTRIES; i++)
		clear_place(p, i, index, false);
}

/*
 * A fork that saw INHERIT raises members before it inserts the child, so the loop runs until it has
 * removed the child as well.
 */
#define CLEAR_TRIES 1000

void process_table_clear(struct process_table *p, uint32_t tgid, uint32_t index)
{
	struct profil_target *t = &p->target[index];

	__atomic_or_fetch(&t->flags, PROFIL_TARGET_CLOSED, __ATOMIC_SEQ_CST);
	__atomic_and_fetch(&t->flags, (__u16)~PROFIL_TARGET_INHERIT, __ATOMIC_SEQ_CST);
	process_table_remove(p, tgid, index);
	for (int n = 0; n < CLEAR_TRIES && __atomic_load_n(&t->members, __ATOMIC_SEQ_CST); n++) {
		for (int i = 0; i < ENTRIES; i++)
			clear_place(p, i, index, true);
	}
}
