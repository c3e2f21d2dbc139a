/* quota.c - charges: taken from a user, limited, and given back */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "profild/quota/quota.h"

#define SECOND 1000000000ull
#define MS 1000000ull

static struct quota_config config;
static struct quota *q;
static struct user *root, *alice, *bob;

static void start(void)
{
	config = (struct quota_config){
		.user.of = { [RES_PROFILES] = 10, [RES_COUNTERS] = 10 },
		.machine.of = { [RES_PROFILES] = 16, [RES_COUNTERS] = 100 },
		.reserve.of = { [RES_PROFILES] = 4 },
		.requests = { 10, 10 },
		.time_ns = { SECOND / 4, 2 * MS },
	};
	cr_assert_eq(quota_new(&q, &config), 0);
	cr_assert_eq(user_get(&root, q, 0, true), 0);
	cr_assert_eq(user_get(&alice, q, 1000, false), 0);
	cr_assert_eq(user_get(&bob, q, 1001, false), 0);
}

static void stop(void)
{
	user_unref(root);
	user_unref(alice);
	user_unref(bob);
	quota_free(q);
}

TestSuite(quota, .init = start, .fini = stop);

Test(quota, limits_each_user_by_itself)
{
	struct charge a = { 0 }, b = { 0 }, more = { 0 };

	cr_expect_eq(charge_take(&a, alice, RES_PROFILES, 10), 0);
	cr_expect_eq(charge_take(&more, alice, RES_PROFILES, 1), -EAGAIN);
	cr_expect_null(more.user, "a refused charge is empty");
	cr_expect_eq(charge_take(&b, bob, RES_PROFILES, 2), 0);
	cr_expect_eq(quota_used(q, alice, RES_PROFILES), 10);
	cr_expect_eq(quota_used(q, NULL, RES_PROFILES), 12);
	charge_give(&a);
	cr_expect_eq(charge_take(&more, alice, RES_PROFILES, 1), 0);
	charge_give(&more);
	charge_give(&b);
	charge_give(&b);
	cr_expect_eq(quota_used(q, NULL, RES_PROFILES), 0);
}

Test(quota, keeps_a_reserve_for_root)
{
	struct charge a = { 0 }, b = { 0 }, more = { 0 }, r = { 0 };

	cr_expect_eq(charge_take(&a, alice, RES_PROFILES, 10), 0);
	cr_expect_eq(charge_take(&b, bob, RES_PROFILES, 2), 0);
	cr_expect_eq(charge_take(&more, bob, RES_PROFILES, 1), -EAGAIN, "16 less 4");
	cr_expect_eq(charge_take(&r, root, RES_PROFILES, 4), 0);
	cr_expect_eq(charge_take(&more, root, RES_PROFILES, 1), -EAGAIN, "the machine has 16");
	charge_give(&a);
	cr_expect_eq(charge_resize(&r, 14), 0, "root has no limit of its own");
	cr_expect_eq(charge_take(&more, bob, RES_PROFILES, 1), -EAGAIN);
	charge_give(&r);
	charge_give(&b);
}

Test(quota, distinguishes_root_from_uid_0_without_rights)
{
	struct charge c = { 0 };
	struct user *u;

	cr_assert_eq(user_get(&u, q, 0, false), 0);
	cr_expect_neq(u, root);
	cr_expect_eq(charge_take(&c, u, RES_PROFILES, 11), -EAGAIN);
	user_unref(u);
}

Test(quota, refuses_memory_with_enomem)
{
	struct charge c = { 0 };

	cr_expect_eq(charge_take(&c, alice, RES_COUNTERS, 11), -ENOMEM);
	cr_expect_eq(charge_take(&c, alice, RES_COUNTERS, UINT64_MAX), -ENOMEM);
	cr_expect_eq(charge_take(&c, root, RES_COUNTERS, UINT64_MAX), -ENOMEM);
}

Test(quota, charge_passes_from_one_object_to_another)
{
	struct charge target = { 0 }, waits = { 0 };

	cr_expect_eq(charge_take(&target, alice, RES_PROFILES, 3), 0);
	charge_move(&waits, &target);
	charge_give(&target);
	cr_expect_eq(quota_used(q, alice, RES_PROFILES), 3);
	charge_give(&waits);
	cr_expect_eq(quota_used(q, alice, RES_PROFILES), 0);
}

Test(quota, charge_passes_from_one_user_to_another_or_stays)
{
	struct charge a = { 0 }, b = { 0 };

	cr_expect_eq(charge_take(&a, alice, RES_PROFILES, 3), 0);
	cr_expect_eq(charge_take(&b, bob, RES_PROFILES, 8), 0);
	cr_expect_eq(charge_transfer(&a, bob), -EAGAIN);
	cr_expect_eq(quota_used(q, alice, RES_PROFILES), 3);
	cr_expect_eq(charge_resize(&b, 7), 0);
	cr_expect_eq(charge_transfer(&a, bob), 0);
	cr_expect_eq(quota_used(q, alice, RES_PROFILES), 0);
	cr_expect_eq(quota_used(q, bob, RES_PROFILES), 10);
	cr_expect_eq(quota_used(q, NULL, RES_PROFILES), 10);
	charge_give(&a);
	charge_give(&b);
}

Test(quota, resize_that_fails_changes_nothing)
{
	struct charge c = { 0 };

	cr_expect_eq(charge_take(&c, alice, RES_PROFILES, 3), 0);
	cr_expect_eq(charge_resize(&c, 11), -EAGAIN);
	cr_expect_eq(c.n, 3);
	cr_expect_eq(charge_resize(&c, 10), 0);
	cr_expect_eq(charge_resize(&c, 0), 0);
	cr_expect_eq(quota_used(q, alice, RES_PROFILES), 0);
	charge_give(&c);
}

Test(quota, adopts_what_exists_beyond_the_limit)
{
	struct charge c = { 0 }, more = { 0 };

	charge_adopt(&c, alice, RES_PROFILES, 30);
	cr_expect_eq(charge_take(&more, alice, RES_PROFILES, 1), -EAGAIN);
	cr_expect_eq(charge_take(&more, root, RES_PROFILES, 1), -EAGAIN);
	charge_give(&c);
	cr_expect_eq(charge_take(&more, alice, RES_PROFILES, 10), 0);
	charge_give(&more);
}

static void count(void *arg, const struct user *u)
{
	(void)u;
	++*(unsigned int *)arg;
}

Test(quota, user_exists_while_it_has_a_charge)
{
	struct charge c = { 0 };
	unsigned int n = 0;
	struct user *u;

	cr_assert_eq(user_get(&u, q, 7, false), 0);
	cr_expect_eq(charge_take(&c, u, RES_PROFILES, 1), 0);
	user_unref(u);
	quota_each(q, count, &n);
	cr_expect_eq(n, 4);
	charge_give(&c);
	n = 0;
	quota_each(q, count, &n);
	cr_expect_eq(n, 3);
}

Test(quota, requests_are_refilled_with_time)
{
	uint64_t now = 5 * SECOND;

	for (int i = 0; i < 10; i++)
		cr_expect_eq(user_request(alice, now), 0);
	cr_expect_eq(user_request(alice, now), -EAGAIN);
	cr_expect_eq(user_request(bob, now), 0);
	cr_expect_eq(user_request(alice, now + 99 * MS), -EAGAIN);
	cr_expect_eq(user_request(alice, now + 100 * MS), 0);
	cr_expect_eq(user_request(alice, now + 101 * MS), -EAGAIN);
	/* After hours there are still no more tokens than the burst. */
	now += 10000 * SECOND;
	for (int i = 0; i < 10; i++)
		cr_expect_eq(user_request(alice, now), 0);
	cr_expect_eq(user_request(alice, now), -EAGAIN);
	for (int i = 0; i < 1000; i++)
		cr_expect_eq(user_request(root, now), 0);
}

Test(quota, small_steps_lose_no_token)
{
	unsigned int granted = 0;

	for (uint64_t now = SECOND; now < 11 * SECOND; now += 333333)
		granted += user_request(alice, now) == 0;
	cr_expect_geq(granted, 109);
	cr_expect_leq(granted, 110);
}

Test(quota, spent_time_delays_the_next_request)
{
	uint64_t now = SECOND;

	cr_expect_eq(user_wait_ns(alice, now), 0);
	user_spend(alice, now, MS);
	cr_expect_eq(user_wait_ns(alice, now), 0, "1 ms of 2");
	user_spend(alice, now, 2 * MS);
	cr_expect_geq(user_wait_ns(alice, now), 4 * MS, "1 ms too much at a quarter");
	cr_expect_leq(user_wait_ns(alice, now), 4 * MS + 100);
	cr_expect_eq(user_wait_ns(alice, now + 4 * MS + 100), 0);
	cr_expect_eq(user_wait_ns(bob, now), 0);
	user_spend(root, now, SECOND);
	cr_expect_eq(user_wait_ns(root, now), 0);
}

/* A user that reconnects keeps its spent allowance; without any charge the user is freed. */
Test(quota, spent_allowance_outlives_the_connection)
{
	struct user *u, *again;

	cr_assert_eq(user_get(&u, q, 7, false), 0);
	for (int i = 0; i < 10; i++)
		cr_expect_eq(user_request(u, SECOND), 0);
	user_unref(u);
	cr_assert_eq(user_get(&again, q, 7, false), 0);
	cr_expect_eq(user_request(again, SECOND), -EAGAIN);
	cr_expect_eq(user_request(again, 2 * SECOND), 0);
	user_unref(again);
}
