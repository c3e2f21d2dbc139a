/* kernel_fork.c - profiles of processes that fork, share memory, lose their leader, and end */
#include <criterion/criterion.h>
#include <errno.h>
#include <spawn.h>
#include <string.h>

#include "tests/lib/fork_tree.h"
#include "tests/lib/forks.h"

DAEMON_SUITE(kernel_fork, "--rate", TICKS_RATE);

Test(kernel_fork, each_process_of_a_tree_has_its_own_counts)
{
	const struct fork_tree tree = { .depth = 3, .workers = 85, .way = &ticks_until_one };
	struct loop_time unused;

	fork_tree_grow(&tree, &unused);
}

Test(kernel_fork, a_shared_buffer_gets_the_ticks_of_both)
{
	forks_share_a_buffer(&d, &ticks_until_one);
}

Test(kernel_fork, a_childs_first_request_gets_its_first_ticks)
{
	forks_stop_the_daemon(&d, &ticks_until_one);
}

Test(kernel_fork, a_child_that_waits_for_its_counters_loses_no_tick)
{
	forks_fill_a_chunk(&d, &ticks_until_one);
}

Test(kernel_fork, a_childs_stop_ends_its_own_profile_only)
{
	forks_stop_in_the_child(&d, &ticks_until_one);
}

Test(kernel_fork, a_daemonized_process_keeps_counting)
{
	forks_daemonize(&d, &ticks_until_one);
}

Test(kernel_fork, a_vfork_child_counts_where_its_parent_does)
{
	forks_vfork(&d, &ticks_until_one);
}

Test(kernel_fork, processes_in_one_memory_add_to_the_same_counters)
{
	forks_sproc(&d, &ticks_until_one);
}

Test(kernel_fork, a_process_keeps_counting_after_another_in_its_memory_has_exited)
{
	forks_orphan_in_one_memory(&d, &ticks_until_one);
}

Test(kernel_fork, posix_spawn_leaves_the_parents_profile_alone)
{
	static unsigned short buf[LOOPS];
	char name[] = "true", *argv[] = { name, NULL }, *env[] = { NULL };
	struct profil_msg_profile p;
	pid_t pid;

	forks_profile(buf);
	cr_assert_eq(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env), 0);
	reap(pid);
	TICKS_SPIN(0, TICKS_SYNCED(buf[0]));
	cr_expect_eq(ticks_conserved(&d, buf[0]), 0);
	cr_expect(!ticks_list(&d, pid, &p), "the spawned process has a profile");
}

Test(kernel_fork, a_process_without_its_leader_keeps_counting)
{
	forks_without_leader(&d, &ticks_until_one);
}

Test(kernel_fork, a_process_without_its_leader_can_start_a_profile_and_fork)
{
	forks_start_without_leader(&d, &ticks_until_one);
}

Test(kernel_fork, the_child_of_a_threaded_process_counts_by_itself)
{
	struct loop_time unused;

	cr_expect_gt(forks_of_threads(&ticks_until_one, &unused), 0);
}
