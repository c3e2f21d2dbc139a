/* java_bases.c - the Java processes of one user do not push out those of another */
#include <criterion/criterion.h>

#include "core/java_bases.h"

static struct java_set sets[JAVA_SETS];

static void keep(__u32 account, __u64 process, __u64 base)
{
	java_base_keep(&sets[process % JAVA_SETS], account, process, base);
}

static __u64 find(__u64 process)
{
	return java_base_find(&sets[process % JAVA_SETS], process);
}

Test(java_bases, finds_what_was_kept_last)
{
	cr_expect_eq(find(1), 0);
	keep(1000, 1, 0x7000);
	cr_expect_eq(find(1), 0x7000);
	keep(1000, 1, 0x8000);
	cr_expect_eq(find(1), 0x8000);
	cr_expect_eq(find(2), 0);
}

Test(java_bases, one_user_may_have_all_places)
{
	unsigned int n = 0;

	for (__u64 i = 1; i <= 4 * JAVA_SETS * JAVA_WAYS; i++)
		keep(1000, i, 0x1000 * i);
	for (__u64 i = 1; i <= 4 * JAVA_SETS * JAVA_WAYS; i++) {
		cr_expect(!find(i) || find(i) == 0x1000 * i);
		n += find(i) != 0;
	}
	cr_expect_eq(n, JAVA_SETS * JAVA_WAYS);
}

Test(java_bases, many_processes_of_one_user_leave_those_of_another)
{
	const __u64 first = 1000000, n = JAVA_SETS * JAVA_WAYS / 2;

	for (__u64 i = 0; i < 100000; i++)
		keep(1000, 1 + i, 0x7000);
	for (__u64 i = first; i < first + n; i++)
		keep(1001, i, 0x1000 * i);
	for (__u64 i = 0; i < 100000; i++)
		keep(1000, 200000 + i, 0x7000);
	for (__u64 i = first; i < first + n; i++)
		cr_expect_eq(find(i), 0x1000 * i);
}

Test(java_bases, half_written_places_are_unknown)
{
	struct java_set s = { 0 };

	java_base_keep(&s, 1000, 77, 0x7000);
	for (int i = 0; i < JAVA_WAYS; i++)
		s.way[i].base = 0x9000;
	cr_expect_eq(java_base_find(&s, 77), 0);
}
