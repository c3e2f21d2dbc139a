/* index_slots.h - a hash table of the elements of an array, by their numbers */
#ifndef PROFIL_BASE_INDEX_SLOTS_H
#define PROFIL_BASE_INDEX_SLOTS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <linux/types.h>

#define INDEX_SLOTS_MIN 64

/*
 * A slot has the number of an element, mostly its index + 1; 0: it is free. An element is at the
 * slot index_slots_first() of its hash or, if others are there, at the next one that was free.
 */
struct index_slots {
	__u32 *slot;
	size_t room; /* a power of two */
};

/*
 * Makes room for one more than @n elements, so that half of the slots stay free. Returns 1 if all
 * slots are free now, so that the elements are to be entered again; 0, or -ENOMEM.
 */
static inline int index_slots_reserve(struct index_slots *s, size_t n)
{
	size_t room = s->room ? s->room : INDEX_SLOTS_MIN;
	__u32 *slot;

	while (2 * (n + 1) >= room)
		room *= 2;
	if (room == s->room)
		return 0;
	slot = calloc(room, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(s->slot);
	*s = (struct index_slots){ slot, room };
	return 1;
}

static inline size_t index_slots_first(const struct index_slots *s, __u64 hash)
{
	return (size_t)(hash ^ hash >> 32) & (s->room - 1);
}

static inline size_t index_slots_next(const struct index_slots *s, size_t at)
{
	return (at + 1) & (s->room - 1);
}

static inline void index_slots_fini(struct index_slots *s)
{
	free(s->slot);
	*s = (struct index_slots){ 0 };
}

/* Continues the hash @h with the bytes of @s; NULL: none. */
static inline __u64 hash_text(__u64 h, const char *s)
{
	for (; s && *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h;
}

#endif
