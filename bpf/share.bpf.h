/* share.bpf.h - how much of the machine's table the names that one user makes up may take
 *
 * A table has room for so many files, groups (names and cgroups) and functions, and a sample claims
 * what it is the first to need. Users can make up as many of them as they like. So each claim in a
 * table of the whole machine is charged to the user whose sample it is, and a user may hold at most
 * as much as is still free below three quarters of the table: one user gets three eighths of it, a
 * second one half of the rest, and so on. What is beyond that is counted without a file, group or
 * function. Root has no such limit. A table's counts are never given back.
 */
#ifndef PROFIL_BPF_SHARE_BPF_H
#define PROFIL_BPF_SHARE_BPF_H

#include "permission.bpf.h"
#include "table.bpf.h"

enum share_of { SHARE_IMAGES, SHARE_GROUPS, SHARE_FUNCTIONS, SHARE_KINDS };

struct share {
	__u32 held[SHARE_KINDS];
};

/* By payer, and slot and epoch of the table. The users that have claimed nothing for long go. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, __u64);
	__type(value, struct share);
} shares SEC(".maps");

#define NAMESPACES_MAX 33 /* of users, one in another */

/*
 * The user that pays for the running thread: its own or, in a user namespace, which can have ids of
 * its own, the owner of the namespace. Global, as insert().
 */
__attribute__((noinline)) __u32 payer(void)
{
	const struct cred___ids *cred = cred_of((void *)bpf_get_current_task_btf());
	struct user_namespace *ns = BPF_CORE_READ(cred, user_ns);

	for (int i = 0; i < NAMESPACES_MAX && BPF_CORE_READ(ns, level) > 1; i++)
		ns = BPF_CORE_READ(ns, parent);
	return BPF_CORE_READ(ns, level) ? BPF_CORE_READ(ns, owner.val)
					: BPF_CORE_READ(cred, uid.val);
}

static const struct share none;

static __always_inline struct share *share_here(__u64 key)
{
	struct share *share = bpf_map_lookup_elem(&shares, &key);

	if (share)
		return share;
	bpf_map_update_elem(&shares, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&shares, &key);
}

/*
 * Adds @n to what @user holds of @what in the table in @slot. Returns 0, and adds nothing, if the
 * user may have no more. @user is an argument because the BPF stack has no room for payer() below
 * this. Global, as insert().
 */
__attribute__((noinline)) int share_take(__u32 slot, __u32 what, __u32 user, int n)
{
	const struct profil_table *header;
	struct table table, *t = &table;
	struct share *share;
	__u32 total, used;

	if (!user || what >= SHARE_KINDS || !table_of(t, slot) ||
	    t->observer->scope != PROFIL_SCOPE_MACHINE)
		return 1;
	share = share_here((__u64)user << 32 | (t->observer->epoch * PROFIL_MAX_OBSERVERS + slot));
	header = table_page(t, 0);
	if (!share || !header)
		return 1;
	total = what == SHARE_IMAGES   ? header->images
		: what == SHARE_GROUPS ? header->groups
				       : header->functions;
	used = what == SHARE_IMAGES   ? header->used_images
	       : what == SHARE_GROUPS ? header->used_groups
				      : header->used_functions;
	if (n >= 0 && used + share->held[what] >= total / 4 * 3)
		return 0;
	__sync_fetch_and_add(&share->held[what], n);
	return 1;
}

#define SHARE_REFUSED 2 /* no id: ids are odd */

/*
 * Claims the free element whose id is at @id for @wanted. Returns 0, or the id that another CPU has
 * put there meanwhile.
 */
static __always_inline __u64 share_claim(__u32 slot, __u32 what, __u64 *id, __u64 wanted)
{
	__u64 seen;

	if (!share_take(slot, what, payer(), 1))
		return SHARE_REFUSED;
	seen = __sync_val_compare_and_swap(id, 0, wanted);
	if (seen)
		share_take(slot, what, payer(), -1);
	return seen;
}

#endif
