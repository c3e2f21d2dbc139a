/* walk_budget.c - the time that walks of stacks of users without rights may take */
#include <criterion/criterion.h>

#include "core/walk_budget.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define USERS 32

static struct walk_budget everyones, users[USERS + 1];

/* Each of @n users walks for @each_ns at every ms, if it may. Returns the time that all had. */
static __u64 walk_all(unsigned int n, __u64 each_ns, __u64 from, __u64 ns)
{
	__u64 spent = 0;

	for (__u64 now = from; now < from + ns; now += MS) {
		for (unsigned int i = 0; i < n; i++) {
			walk_pay(&everyones, now, WALK_SHARE);
			if (!walk_pay(&users[i], now, WALK_USERS_SHARE))
				continue;
			walk_charge(&everyones, &users[i], each_ns);
			spent += each_ns;
		}
	}
	return spent;
}

Test(walk_budget, one_user_has_a_twentieth_of_the_time)
{
	__u64 spent;

	walk_all(1, MS / 5, SECOND, SECOND);
	spent = walk_all(1, MS / 5, 2 * SECOND, 10 * SECOND);
	cr_expect_leq(spent, 10 * SECOND / 20 + MS);
	cr_expect_geq(spent, 10 * SECOND / 20 - MS);
}

Test(walk_budget, all_users_together_have_a_tenth_of_the_time)
{
	for (unsigned int n = 2; n <= USERS; n *= 2) {
		walk_all(n, MS / 5, SECOND * 100 * n, 10 * SECOND);
		cr_expect_leq(walk_all(n, MS / 5, SECOND * 100 * n + 10 * SECOND, 10 * SECOND),
			      10 * SECOND * 11 / 100, "%u users", n);
	}
}

Test(walk_budget, users_of_long_walks_do_not_use_up_that_of_another)
{
	__u64 now = SECOND;

	for (int i = 0; i < 1000; i++, now += 10 * MS) {
		walk_all(USERS, MS / 5, now, 10 * MS);
		cr_expect(walk_pay(&users[USERS], now + 10 * MS, WALK_USERS_SHARE), "walk %d", i);
		walk_charge(&everyones, &users[USERS], MS / 100);
	}
}

Test(walk_budget, walk_of_any_length_is_paid_off_within_seconds)
{
	__u64 now = SECOND;

	for (int i = 0; i < 100; i++)
		walk_charge(&everyones, &users[0], 50 * MS);
	walk_pay(&users[0], now, WALK_USERS_SHARE);
	walk_charge(&everyones, &users[1], MS);
	cr_expect(walk_pay(&users[1], now + SECOND, WALK_USERS_SHARE));
}
