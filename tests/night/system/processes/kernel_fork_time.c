/* kernel_fork_time.c - the counts of processes that fork, share memory or lose their leader are
 * their CPU time */
#include "tests/lib/fork_tree.h"
#include "tests/lib/forks.h"

#define MS 1000000ull

DAEMON_SUITE(kernel_fork_time, "--rate", TICKS_RATE);

static void judge_5(unsigned long ticks, const struct loop_time *t, unsigned long period_ns,
		    const char *what)
{
	ticks_expect(ticks, t, period_ns, 100, 6, what);
}

/*
 * A process makes its 5 ticks in one or two slices, each with up to half a tick more or less, and
 * loses some when the whole machine stops; it has at least one. All make 6,820, with a standard
 * deviation of 26: 2 % are five of those. With a thousand processes at work the daemon would answer
 * too late; libprofil's fork handler waits for its answer 1 s at most.
 */
Test(kernel_fork_time, each_process_of_a_tree_has_its_own_counts, .timeout = 300)
{
	static const struct ticks_way spell = { 5 * MS, judge_5 };
	const struct fork_tree tree = {
		.depth = 5, .workers = 32, .slow_fork_ns = 1000 * MS, .way = &spell
	};
	struct loop_time all;
	unsigned long ticks = fork_tree_grow(&tree, &all);

	ticks_expect(ticks, &all, TICKS_PERIOD_NS, 2, 0, "the tree");
}

static void judge_100(unsigned long ticks, const struct loop_time *t, unsigned long period_ns,
		      const char *what)
{
	ticks_expect_100(ticks, t, what);
}

static const struct ticks_way spell = { 100 * MS, judge_100 };

/*
 * Each child makes 10 ticks in some 5 slices, all of them 400, with a standard deviation of 7: 5 %
 * and 25 ticks are six of those.
 */
Test(kernel_fork_time, the_child_of_a_threaded_process_counts_by_itself)
{
	struct loop_time all;
	unsigned long ticks = forks_of_threads(&spell, &all);

	ticks_expect(ticks, &all, TICKS_PERIOD_NS, 5, 25, "the children");
}

Test(kernel_fork_time, a_shared_buffer_gets_the_ticks_of_both)
{
	forks_share_a_buffer(&d, &spell);
}

Test(kernel_fork_time, a_childs_first_request_gets_its_first_ticks)
{
	forks_stop_the_daemon(&d, &spell);
}

Test(kernel_fork_time, a_child_that_waits_for_its_counters_loses_no_tick)
{
	forks_fill_a_chunk(&d, &spell);
}

Test(kernel_fork_time, a_childs_stop_ends_its_own_profile_only)
{
	forks_stop_in_the_child(&d, &spell);
}

Test(kernel_fork_time, a_daemonized_process_keeps_counting)
{
	forks_daemonize(&d, &spell);
}

Test(kernel_fork_time, a_vfork_child_counts_where_its_parent_does)
{
	forks_vfork(&d, &spell);
}

Test(kernel_fork_time, processes_in_one_memory_add_to_the_same_counters)
{
	forks_sproc(&d, &spell);
}

Test(kernel_fork_time, a_process_keeps_counting_after_another_in_its_memory_has_exited)
{
	forks_orphan_in_one_memory(&d, &spell);
}

Test(kernel_fork_time, a_process_without_its_leader_keeps_counting)
{
	forks_without_leader(&d, &spell);
}

Test(kernel_fork_time, a_process_without_its_leader_can_start_a_profile_and_fork)
{
	forks_start_without_leader(&d, &spell);
}
