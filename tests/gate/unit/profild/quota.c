/* quota.c - charges: taken from a user, limited, and given back */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* --- the machine's room ----------------------------------------------------------------------- */

#define MANY 64

/* Has each of @n users take one unit after the other, in turn, until all are refused. */
static void take_all(struct charge c[MANY], unsigned int n, enum resource what)
{
	bool taken = true;

	for (unsigned int i = 0; i < n; i++) {
		struct user *u;

		cr_assert_eq(user_get(&u, q, 2000 + i, false), 0);
		cr_assert_eq(charge_take(&c[i], u, what, 1), 0);
		user_unref(u);
	}
	while (taken) {
		taken = false;
		for (unsigned int i = 0; i < n; i++)
			taken |= charge_resize(&c[i], c[i].n + 1) == 0;
	}
}

static void give_all(struct charge c[MANY], unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		charge_give(&c[i]);
}

static void with_shares(uint64_t room, uint64_t least)
{
	config.user.of[RES_REGIONS] = room;
	config.machine.of[RES_REGIONS] = room + 100;
	config.reserve.of[RES_REGIONS] = 100;
	config.least.of[RES_REGIONS] = least;
}

Test(quota, users_that_take_all_leave_room_for_others)
{
	for (unsigned int n = 1; n <= MANY; n *= 2) {
		struct charge c[MANY] = { 0 }, more = { 0 };

		with_shares(40000, 400);
		take_all(c, n, RES_REGIONS);
		cr_expect_eq(charge_take(&more, alice, RES_REGIONS, 400), 0, "%u users", n);
		charge_give(&more);
		for (unsigned int i = 0; i < n; i++)
			cr_expect_geq(c[i].n, 30000 / (n + 1) - 1, "%u of %u", i, n);
		give_all(c, n);
	}
}

Test(quota, first_users_share_shrinks_what_the_next_can_take)
{
	struct charge a = { 0 }, b = { 0 };

	with_shares(4000, 10);
	cr_expect_eq(charge_take(&a, alice, RES_REGIONS, 1501), -EAGAIN);
	cr_expect_eq(charge_take(&a, alice, RES_REGIONS, 1500), 0, "half of three quarters");
	cr_expect_eq(charge_take(&b, bob, RES_REGIONS, 751), -EAGAIN);
	cr_expect_eq(charge_take(&b, bob, RES_REGIONS, 750), 0);
	charge_give(&a);
	cr_expect_eq(charge_resize(&b, 1500), 0, "as what the others hold is given back");
	charge_give(&b);
}

Test(quota, share_is_never_less_than_the_least)
{
	struct charge c[MANY] = { 0 }, more = { 0 };

	with_shares(60, 1);
	take_all(c, 40, RES_REGIONS);
	cr_expect_eq(charge_take(&more, alice, RES_REGIONS, 2), -EAGAIN);
	cr_expect_eq(charge_take(&more, alice, RES_REGIONS, 1), 0);
	charge_give(&more);
	cr_expect_eq(charge_take(&more, root, RES_REGIONS, 100), 0, "root has its reserve");
	charge_give(&more);
	give_all(c, 40);
}

/* --- subordinate ids -------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static char directory[] = "/tmp/profil-quota-XXXXXX", subuid[64], passwd[64];

static void start_with_subids(void)
{
	cr_assert(mkdtemp(directory));
	snprintf(subuid, sizeof(subuid), "%s/subuid", directory);
	snprintf(passwd, sizeof(passwd), "%s/passwd", directory);
	write_file(passwd, "root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n");
	write_file(subuid, "alice:200000:65536\n1001:300000:10\nldap:400000:10\n"
			   "ldap:390000:10\nbroken:1\nalice:500000:1\n");
	start();
	quota_free(q);
	config.subuid = subuid;
	config.passwd = passwd;
	cr_assert_eq(quota_new(&q, &config), 0);
}

static void stop_with_subids(void)
{
	quota_free(q);
	unlink(subuid);
	unlink(passwd);
	rmdir(directory);
}

TestSuite(subids, .init = start_with_subids, .fini = stop_with_subids);

static void expect_account(uid_t uid, uid_t account)
{
	struct user *u;

	cr_assert_eq(user_get(&u, q, uid, false), 0);
	cr_expect_eq(user_uid(u), uid);
	cr_expect_eq(user_account_uid(u), account, "%u is %u's, not %u's", uid, account,
		     user_account_uid(u));
	user_unref(u);
}

Test(subids, belong_to_the_owner_of_their_range)
{
	expect_account(1000, 1000);
	expect_account(199999, 199999);
	expect_account(200000, 1000);
	expect_account(265535, 1000);
	expect_account(265536, 265536);
	expect_account(500000, 1000);
	expect_account(300009, 1001);
	expect_account(400009, 390000);
}

Test(subids, have_one_limit_together)
{
	struct charge c[11] = { 0 }, own = { 0 };
	struct user *u, *owner;

	for (uid_t i = 0; i < 10; i++) {
		cr_assert_eq(user_get(&u, q, 200000 + i, false), 0);
		cr_expect_eq(charge_take(&c[i], u, RES_PROFILES, 1), 0);
		user_unref(u);
	}
	cr_assert_eq(user_get(&u, q, 200000 + MANY, false), 0);
	cr_assert_eq(user_get(&owner, q, 1000, false), 0);
	cr_expect_eq(charge_take(&c[10], u, RES_PROFILES, 1), -EAGAIN);
	cr_expect_eq(charge_take(&own, owner, RES_PROFILES, 1), -EAGAIN);
	cr_expect_eq(quota_used(q, u, RES_PROFILES), 10);
	user_spend(u, SECOND, 3 * MS);
	cr_expect_gt(user_wait_ns(owner, SECOND), 0);
	user_unref(u);
	user_unref(owner);
	for (int i = 0; i < 10; i++)
		charge_give(&c[i]);
	cr_expect_eq(quota_used(q, NULL, RES_PROFILES), 0);
}

Test(subids, are_read_again_when_the_file_changes)
{
	expect_account(200000, 1000);
	write_file(subuid, "1001:200000:65536\n# now another's\n");
	expect_account(200000, 1001);
	unlink(subuid);
	expect_account(200000, 200000);
}

/* --- the main thread's time ------------------------------------------------------------------- */

/* Each of @n users works whenever it may, 1 ms at a time, for @ns. Returns the time they had. */
static uint64_t work_all(unsigned int n, uint64_t from, uint64_t ns)
{
	struct user *u[MANY];
	uint64_t spent = 0;

	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(user_get(&u[i], q, 2000 + i, false), 0);
	for (uint64_t now = from; now < from + ns; now += MS) {
		for (unsigned int i = 0; i < n; i++) {
			if (user_wait_ns(u[i], now))
				continue;
			user_spend(u[i], now, MS / 10);
			spent += MS / 10;
		}
	}
	for (unsigned int i = 0; i < n; i++)
		user_unref(u[i]);
	return spent;
}

Test(quota, all_users_together_have_half_of_the_time)
{
	config.everyones_time_ns = (struct rate_limit){ SECOND / 2, 4 * MS };
	work_all(MANY / 2, SECOND, SECOND);
	cr_expect_leq(work_all(MANY / 2, 2 * SECOND, 10 * SECOND), 10 * SECOND * 55 / 100);
}

Test(quota, debt_of_one_long_operation_ends_soon)
{
	config.everyones_time_ns = (struct rate_limit){ SECOND / 2, 4 * MS };
	for (int i = 0; i < 100; i++)
		user_spend(bob, SECOND, 50 * MS);
	user_spend(alice, SECOND, 50 * MS);
	cr_expect_leq(user_wait_ns(alice, SECOND), 4 * 16 * 50 * MS);
}

Test(quota, user_of_little_time_never_waits_for_users_of_much)
{
	config.everyones_time_ns = (struct rate_limit){ SECOND / 2, 4 * MS };
	work_all(MANY, SECOND, SECOND);
	for (uint64_t now = 2 * SECOND; now < 12 * SECOND; now += 100 * MS) {
		work_all(MANY, now, 100 * MS);
		cr_expect_eq(user_wait_ns(alice, now + 100 * MS), 0);
		user_spend(alice, now + 100 * MS, MS / 10);
	}
}
