/* kernel_stacks_time.c - the time of walks over hostile stacks is bounded, and how nearly all of
 * them end */
#include <bpf/bpf.h>
#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "core/unwind_maps.h"
#include "tests/lib/hostile_rules.h"
#include "tests/lib/hostile_stacks.h"
#include "tests/lib/programs.h"

DAEMON_SUITE(kernel_stacks_time, "--rate", TICKS_RATE);

Test(kernel_stacks_time, a_frame_pointer_to_itself_ends_the_stack)
{
	hostile_stack_expect_root(&d, &frame_to_itself, STACKS_SHARE(90));
}

Test(kernel_stacks_time, an_endless_stack_is_cut_after_255_frames)
{
	hostile_stack_expect_root(&d, &endless_stack, STACKS_SHARE(90));
}

Test(kernel_stacks_time, an_unmapped_frame_ends_the_stack)
{
	hostile_stack_expect_root(&d, &unmapped_frame, STACKS_SHARE(90));
}

Test(kernel_stacks_time, a_return_address_outside_of_text_ends_the_stack)
{
	hostile_stack_expect_root(&d, &return_into_data, STACKS_SHARE(90));
	hostile_stack_expect_root(&d, &return_to_unmapped_memory, STACKS_SHARE(90));
}

/* Returns the time that the kernel's program takes for a sample of @stack, in ns. */
static double sample_ns(const struct hostile_stack *stack)
{
	__cleanup(closep) int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct bpf_prog_info before = program_ran(&d, "tick_event");
	uint64_t all, took;

	cr_assert_geq(stats, 0);
	all = hostile_stack_expect_root(&d, stack, STACKS_SHARE(90));
	took = program_ran(&d, "tick_event").run_time_ns - before.run_time_ns;
	return all ? (double)took / (double)all : 0;
}

#define MEASUREMENTS 3

/* The least of a few averages: the time in which the CPU is stolen from the program is not its own.
 */
static double least_ns(const struct hostile_stack *stack, double enough)
{
	double least = sample_ns(stack);

	for (int i = 1; i < MEASUREMENTS && least >= enough; i++) {
		double ns = sample_ns(stack);

		least = ns < least ? ns : least;
	}
	return least;
}

/*
 * No sample takes longer than five times that of a stack of PROFIL_FRAMES_MAX frames. Its average
 * over 250 samples depends on the machine's other work by less than a factor of two.
 */
Test(kernel_stacks_time, frames_in_any_memory_end_the_stack_in_bounded_time)
{
	double deep = sample_ns(&endless_stack);

	cr_expect_gt(deep, 0);
	for (int i = 0; i < HOSTILE_MEMORIES; i++) {
		double ns = least_ns(&hostile_memory[i], 5 * deep);

		cr_expect(ns > 0 && ns < 5 * deep,
			  "%s: a sample takes %.0f ns, that of a deep stack %.0f",
			  hostile_memory[i].name, ns, deep);
	}
}

Test(kernel_stacks_time, code_whose_rules_have_no_room_is_told_from_code_without_rules)
{
	rules_expect_missing(&d, PROFIL_LOOKED, PROFIL_STACK_NO_TABLE, STACKS_SHARE(90));
	rules_expect_missing(&d, PROFIL_LOOKED_NO_ROOM, PROFIL_STACK_NO_ROOM, STACKS_SHARE(90));
}

Test(kernel_stacks_time, rules_changed_during_the_walk_spoil_no_other_profile)
{
	rules_expect_lies_spoil_no_other(&d, STACKS_SHARE(90));
}
