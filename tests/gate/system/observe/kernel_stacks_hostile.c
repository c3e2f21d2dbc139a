/* kernel_stacks_hostile.c - hostile stacks and unwind rules spoil no profile but their own */
#include <criterion/criterion.h>

#include "core/unwind_maps.h"
#include "tests/lib/hostile_rules.h"
#include "tests/lib/hostile_stacks.h"

DAEMON_SUITE(kernel_stacks_hostile, "--rate", TICKS_RATE);

Test(kernel_stacks_hostile, a_frame_pointer_to_itself_ends_the_stack)
{
	hostile_stack_expect_root(&d, &frame_to_itself, STACKS_ANY);
}

Test(kernel_stacks_hostile, an_endless_stack_is_cut_after_255_frames)
{
	hostile_stack_expect_root(&d, &endless_stack, STACKS_ANY);
}

Test(kernel_stacks_hostile, an_unmapped_frame_ends_the_stack)
{
	hostile_stack_expect_root(&d, &unmapped_frame, STACKS_ANY);
}

Test(kernel_stacks_hostile, a_return_address_outside_of_text_ends_the_stack)
{
	hostile_stack_expect_root(&d, &return_into_data, STACKS_ANY);
	hostile_stack_expect_root(&d, &return_to_unmapped_memory, STACKS_ANY);
}

Test(kernel_stacks_hostile, frames_in_any_memory_end_the_stack)
{
	for (int i = 0; i < HOSTILE_MEMORIES; i++)
		hostile_stack_expect_root(&d, &hostile_memory[i], STACKS_ANY);
}

Test(kernel_stacks_hostile, code_whose_rules_have_no_room_is_told_from_code_without_rules)
{
	rules_expect_missing(&d, PROFIL_LOOKED, PROFIL_STACK_NO_TABLE, STACKS_ANY);
	rules_expect_missing(&d, PROFIL_LOOKED_NO_ROOM, PROFIL_STACK_NO_ROOM, STACKS_ANY);
}

Test(kernel_stacks_hostile, rules_changed_during_the_walk_spoil_no_other_profile)
{
	rules_expect_lies_spoil_no_other(&d, STACKS_ANY);
}
