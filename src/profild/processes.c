/* processes.c - the kernel's table of who is a target, from the daemon's side */
#include <errno.h>
#include <string.h>

#include "processes.h"

static struct profil_bucket *bucket_of(struct processes *p, uint32_t tgid)
{
	return &p->bucket[profil_bucket_of(tgid, p->seed)];
}

static bool replace(__u64 *place, __u64 old, __u64 new)
{
	return __atomic_compare_exchange_n(place, &old, new, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

void processes_mark_news(struct processes *p, uint32_t index)
{
	__atomic_store_n(&p->news->target[index], 1, __ATOMIC_SEQ_CST);
}

bool processes_next_news(const struct processes *p, uint32_t *index, uint32_t end)
{
	const __u8 *from = &p->news->target[*index];
	const __u8 *mark = *index < end ? memchr(from, 1, end - *index) : NULL;

	if (!mark)
		return false;
	*index = (uint32_t)(mark - p->news->target);
	return true;
}

void processes_take_news(struct processes *p, uint32_t index)
{
	__atomic_store_n(&p->news->target[index], 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void processes_await_news(struct processes *p)
{
	__atomic_store_n(&p->news->awaited, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void leave(struct processes *p, uint32_t index)
{
	struct profil_target *t = &p->target[index];

	if (__atomic_sub_fetch(&t->members, 1, __ATOMIC_SEQ_CST) == 0) {
		__atomic_store_n(&t->ended, 1, __ATOMIC_SEQ_CST);
		processes_mark_news(p, index);
	}
}

int processes_insert(struct processes *p, uint32_t tgid, uint32_t image, uint32_t index)
{
	struct profil_bucket *b = bucket_of(p, tgid);

	__atomic_add_fetch(&p->target[index].members, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		if (replace(&b->entry[i], 0, profil_entry(tgid, index | image)))
			return 0;
	}
	leave(p, index);
	return -EAGAIN;
}

static bool entry_of(__u64 entry, uint32_t tgid)
{
	return entry & PROFIL_ENTRY_LIVE && profil_entry_tgid(entry) == tgid;
}

int processes_move(struct processes *p, uint32_t tgid, uint32_t life, uint32_t index,
		   bool (*ours)(const void *arg, uint32_t index), const void *arg)
{
	struct profil_bucket *b = bucket_of(p, tgid);

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 old = __atomic_load_n(&b->entry[i], __ATOMIC_SEQ_CST);
		uint32_t from = profil_entry_target(old);
		__u64 new;

		if (!entry_of(old, tgid) || !ours(arg, from))
			continue;
		if (profil_entry_life(old) != life)
			return -ESTALE;
		new = profil_entry(
			tgid, index | ((uint32_t)old & (PROFIL_ENTRY_LIVES | PROFIL_ENTRY_IMAGES)));
		__atomic_add_fetch(&p->target[index].members, 1, __ATOMIC_SEQ_CST);
		/* A first tick may have marked it just now. */
		if (replace(&b->entry[i], old, new) ||
		    replace(&b->entry[i], old | PROFIL_ENTRY_TOLD, new)) {
			leave(p, from);
			return 0;
		}
		leave(p, index);
		return -ESTALE;
	}
	return -ESRCH;
}

uint64_t processes_next(const struct processes *p, uint32_t tgid, int *at)
{
	const struct profil_bucket *b = &p->bucket[profil_bucket_of(tgid, p->seed)];

	while (*at < PROFIL_BUCKET_ENTRIES) {
		__u64 entry = __atomic_load_n(&b->entry[(*at)++], __ATOMIC_SEQ_CST);

		if (entry_of(entry, tgid))
			return entry;
	}
	return 0;
}

#define ENTRIES (PROFIL_BUCKETS * PROFIL_BUCKET_ENTRIES)

static __u64 entry_at(const struct processes *p, int i)
{
	const struct profil_bucket *b = &p->bucket[i / PROFIL_BUCKET_ENTRIES];

	return __atomic_load_n(&b->entry[i % PROFIL_BUCKET_ENTRIES], __ATOMIC_SEQ_CST);
}

static bool counts(__u64 entry, uint32_t index)
{
	return entry & PROFIL_ENTRY_LIVE && !(entry & PROFIL_ENTRY_NEWBORN) &&
	       profil_entry_target(entry) == index;
}

bool processes_counts(const struct processes *p, uint32_t tgid, uint32_t index)
{
	uint64_t entry;

	for (int at = 0; (entry = processes_next(p, tgid, &at));) {
		if (counts(entry, index))
			return true;
	}
	return false;
}

uint32_t processes_other(const struct processes *p, uint32_t tgid, uint32_t index)
{
	__u32 members = __atomic_load_n(&p->target[index].members, __ATOMIC_SEQ_CST);

	if (members <= processes_counts(p, tgid, index))
		return 0;
	for (int i = 0; i < ENTRIES; i++) {
		__u64 entry = entry_at(p, i);

		if (counts(entry, index) && profil_entry_tgid(entry) != tgid)
			return profil_entry_tgid(entry);
	}
	return 0;
}

uint32_t processes_leader(const struct processes *p, uint32_t tgid, uint32_t index)
{
	return processes_counts(p, tgid, index) ? tgid : processes_other(p, tgid, index);
}

/* Takes @tgid, 0: whoever is there, out of target @index. */
static void clear_bucket(struct processes *p, struct profil_bucket *b, uint32_t tgid,
			 uint32_t index)
{
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 old = __atomic_load_n(&b->entry[i], __ATOMIC_SEQ_CST);

		while (entry_of(old, tgid ? tgid : profil_entry_tgid(old)) &&
		       profil_entry_target(old) == index) {
			if (replace(&b->entry[i], old, 0)) {
				leave(p, index);
				break;
			}
			old = __atomic_load_n(&b->entry[i], __ATOMIC_SEQ_CST);
		}
	}
}

void processes_remove(struct processes *p, uint32_t tgid, uint32_t index)
{
	clear_bucket(p, bucket_of(p, tgid), tgid, index);
}

void processes_orphan(struct processes *p, uint32_t index)
{
	for (int i = 0; i < ENTRIES; i++) {
		__u64 entry = entry_at(p, i);

		if (counts(entry, index))
			clear_bucket(p, &p->bucket[i / PROFIL_BUCKET_ENTRIES],
				     profil_entry_tgid(entry), index);
	}
}

/* A fork that saw INHERIT has counted its child already, so the second look finds it. */
#define CLEAR_TRIES 1000

void processes_clear(struct processes *p, uint32_t tgid, uint32_t index)
{
	struct profil_target *t = &p->target[index];

	__atomic_or_fetch(&t->flags, PROFIL_TARGET_CLOSED, __ATOMIC_SEQ_CST);
	__atomic_and_fetch(&t->flags, (__u16)~PROFIL_TARGET_INHERIT, __ATOMIC_SEQ_CST);
	clear_bucket(p, bucket_of(p, tgid), 0, index);
	for (int i = 0; i < CLEAR_TRIES && __atomic_load_n(&t->members, __ATOMIC_SEQ_CST); i++) {
		for (int k = 0; k < PROFIL_BUCKETS; k++)
			clear_bucket(p, &p->bucket[k], 0, index);
	}
}
