/* target.c - checks of the regions of a START, and of those from an earlier daemon */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "profild/profile/target.h"
#include "profild/quota/quota.h"

#define BINS 100
#define COUNTERS 128 /* whole groups of them */

/* One bin for each byte, from @lo on. */
static struct profil_msg_region region(uint64_t lo, uint64_t addr, uint32_t owner)
{
	return (struct profil_msg_region){
		.lo = lo,
		.x = { .base = lo, .span = BINS, .mul = 1, .nbins = BINS },
		.addr = addr,
		.owner = owner,
	};
}

static int check_new(const struct profil_msg_region *r, uint32_t n)
{
	struct target *t;
	int err = target_new(&t, NULL, 1, r, n);

	if (!err)
		target_free(t);
	return err;
}

Test(target, pieces_of_a_buffer_share_its_counters)
{
	const struct profil_msg_region r[] = {
		region(0x1000, 1, 0),
		region(0x2000, 2, 1),
		region(0x3000, 1, 0),
	};
	struct target *t;
	uint32_t owner;

	cr_assert_eq(target_new(&t, NULL, 1, r, 3), 0);
	cr_expect_eq(t->nbins, 2 * BINS);
	cr_expect_eq(t->ncounters, 2 * COUNTERS);
	cr_expect_eq(t->region[1].first, COUNTERS);
	cr_expect_eq(t->region[2].first, 0);
	cr_expect_eq(target_bin(t, 0x3005, &owner), 5);
	cr_expect_eq(owner, 0);
	cr_expect_eq(target_bin(t, 0x2007, &owner), 7);
	cr_expect_eq(owner, 1);
	cr_expect_eq(target_bin(t, 0x2000 + BINS, &owner), PROFIL_NO_BIN);
	cr_expect_eq(target_bin(t, 0xfff, &owner), PROFIL_NO_BIN);
	target_free(t);
}

Test(target, contradicting_pieces_are_refused)
{
	struct profil_msg_region good[] = { region(0x1000, 1, 0), region(0x2000, 1, 0) }, r[2];

	cr_expect_eq(check_new(good, 2), 0);
	memcpy(r, good, sizeof(r));
	r[0].owner = 1; /* the first piece comes first */
	cr_expect_eq(check_new(r, 2), -EINVAL);
	memcpy(r, good, sizeof(r));
	r[1].addr = 2;
	cr_expect_eq(check_new(r, 2), -EINVAL);
	memcpy(r, good, sizeof(r));
	r[1].x.nbins--;
	cr_expect_eq(check_new(r, 2), -EINVAL);
	memcpy(r, good, sizeof(r));
	r[1].lo = r[0].lo - 1;
	cr_expect_eq(check_new(r, 2), -EINVAL);
}

Test(target, more_counters_than_available_get_enomem)
{
	struct profil_msg_region r = region(0x1000, 1, 0);

	r.x.nbins = PROFIL_MAX_CHUNKS * PROFIL_CHUNK_COUNTERS;
	cr_expect_eq(check_new(&r, 1), 0);
	r.x.nbins++;
	cr_expect_eq(check_new(&r, 1), -ENOMEM);
}

/* One target of two regions is within the limits. */
static struct user *limited_user(struct quota **q)
{
	static const struct quota_config config = {
		.user.of = { [RES_TARGETS] = 1, [RES_REGIONS] = 2, [RES_COUNTERS] = 1000 },
		.machine.of = { [RES_TARGETS] = 9, [RES_REGIONS] = 9, [RES_COUNTERS] = 1000 },
	};
	struct user *user;

	cr_assert_eq(quota_new(q, &config), 0);
	cr_assert_eq(user_get(&user, *q, 1000, false), 0);
	return user;
}

/* The sampler has moved the target's counters; the copy has none yet. */
Test(target, a_copy_bins_alike_from_counter_0_on)
{
	const struct profil_msg_region r[] = { region(0x1000, 1, 0), region(0x2000, 2, 1) };
	struct target *t, *copy, *none = NULL;
	struct quota *q;
	struct user *user = limited_user(&q);

	cr_assert_eq(target_new(&t, NULL, 1, r, 2), 0);
	t->counter_first = 64;
	t->region[0].first += 64;
	t->region[1].first += 64;
	t->period_ns = 10;
	t->flags = PROFIL_TARGET_RAW;
	t->counts.drained = 5;
	cr_assert_eq(target_copy(&copy, NULL, 2, t, user), 0);
	cr_expect_eq(quota_used(q, user, RES_REGIONS), 2);
	cr_expect_eq(target_copy(&none, NULL, 3, t, user), -EAGAIN, "beyond the user's limit");
	cr_expect_null(none);
	cr_expect_eq(copy->tgid, 2);
	cr_expect_eq(copy->region[0].first, 0);
	cr_expect_eq(copy->region[1].first, COUNTERS);
	cr_expect_eq(copy->region[1].lo, 0x2000);
	cr_expect_eq(copy->period_ns, 10);
	cr_expect_eq(copy->flags, PROFIL_TARGET_RAW);
	cr_expect_eq(copy->ncounters, t->ncounters);
	cr_expect_eq(copy->nbins, t->nbins);
	cr_expect_eq(copy->ledger->drained, 0);
	target_free(copy);
	cr_expect_eq(quota_used(q, user, RES_TARGETS), 0);
	user_unref(user);
	quota_free(q);
	target_free(t);
}

/* As hold_again() in sampler_bpf.c reads it from the maps. */
Test(target, a_region_beyond_its_counters_is_not_taken_over)
{
	const struct profil_msg_region r[] = { region(0x1000, 1, 0), region(0x2000, 2, 1) };
	struct target *t;

	cr_assert_eq(target_new(&t, NULL, 1, r, 2), 0);
	cr_expect_eq(target_check(t), 0);
	t->region[1].first = 2 * COUNTERS;
	cr_expect_eq(target_check(t), -EINVAL, "behind its counters");
	t->region[1].first = COUNTERS + 1;
	cr_expect_eq(target_check(t), -EINVAL, "in the middle of a group");
	t->region[1].first = COUNTERS;
	t->region[1].owner = 0;
	cr_expect_eq(target_check(t), -EINVAL, "not with the first piece");
	t->region[1].owner = 2;
	cr_expect_eq(target_check(t), -EINVAL, "of a later piece");
	t->region[1].owner = 1;
	t->nbins++;
	cr_expect_eq(target_check(t), -EINVAL, "more bins than the regions have");
	t->nbins--;
	t->counter_first = 1;
	cr_expect_eq(target_check(t), -EINVAL, "no whole groups");
	t->counter_first = 0;
	t->ncounters = (uint64_t)PROFIL_MAX_CHUNKS * PROFIL_CHUNK_COUNTERS + 1;
	cr_expect_eq(target_check(t), -EINVAL, "more counters than there are");
	t->ncounters = 0; /* pcs are stored as they are */
	cr_expect_eq(target_check(t), 0);
	target_free(t);
}

/* A user's slot, regions and counters, until the target is freed. */
Test(target, is_charged_to_its_user)
{
	const struct profil_msg_region r[] = { region(0x1000, 1, 0), region(0x2000, 2, 1) };
	struct quota_config config = {
		.user.of = { [RES_TARGETS] = 2, [RES_REGIONS] = 4, [RES_COUNTERS] = 3 * COUNTERS },
		.machine.of = { [RES_TARGETS] = 9, [RES_REGIONS] = 99, [RES_COUNTERS] = 9999 },
	};
	struct target *first, *second;
	struct user *user;
	struct quota *q;

	cr_assert_eq(quota_new(&q, &config), 0);
	cr_assert_eq(user_get(&user, q, 1000, false), 0);
	cr_assert_eq(target_new(&first, NULL, 1, r, 2), 0);
	cr_assert_eq(target_new(&second, NULL, 1, r, 2), 0);
	cr_expect_eq(target_charge(first, user, false), 0);
	cr_expect_eq(quota_used(q, user, RES_TARGETS), 1);
	cr_expect_eq(quota_used(q, user, RES_REGIONS), 2);
	cr_expect_eq(quota_used(q, user, RES_COUNTERS), 2 * COUNTERS);
	cr_expect_lt(target_charge(second, user, false), 0, "beyond the limit of counters");
	cr_expect_eq(quota_used(q, user, RES_TARGETS), 1);
	cr_expect_eq(quota_used(q, user, RES_REGIONS), 2);
	target_free(second);
	target_free(first);
	cr_expect_eq(quota_used(q, user, RES_COUNTERS), 0);
	user_unref(user);
	quota_free(q);
}
