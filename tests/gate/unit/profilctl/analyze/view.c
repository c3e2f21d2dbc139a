/* view.c - the selection of processes by command */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/view.h"
#include "symbols/symbolize.h"

/* The samples that @f leaves of 3 of [worker] and 4 of x. */
static __u64 left_by(const struct view_filter *f)
{
	static const char *const commands[] = { "[worker]", "x" };
	struct profile *p = profile_new();
	struct place place = { .offset = 0x1000, .width = 1 };
	__u64 left;

	cr_assert_eq(profile_add_object(p, "/nonexistent/program", 1, 1, -1, &place.object), 0);
	for (size_t i = 0; i < 2; i++) {
		struct group g = { .command = strdup(commands[i]), .pid = (pid_t)i + 10 };

		place.count = 3 + i;
		cr_assert_eq(profile_add_group(p, &g, &place.group), 0);
		cr_assert_eq(profile_add_sample(p, &place), 0);
	}
	p->total = p->binned;
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(view_filter(p, f), 0);
	left = p->total;
	profile_free(p);
	return left;
}

/* Of 9 samples that had no room, 5 are in the file. */
Test(view, keeps_the_samples_without_a_place_of_a_selected_object)
{
	struct profile *p = profile_new();
	__u32 file, kernel;

	cr_assert_eq(profile_add_object(p, "/nonexistent/program", 1, 1, -1, &file), 0);
	cr_assert_eq(profile_add_object(p, PROFILE_KERNEL, 0, 0, -1, &kernel), 0);
	cr_assert_eq(profile_add_place(p, file, 0, 0, 5), 0);
	cr_assert_eq(profile_add_place(p, file, 0x1000, 1, 2), 0);
	cr_assert_eq(profile_add_place(p, kernel, 0, 0, 4), 0);
	p->total = p->binned;
	p->place_full = 9;
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(view_filter(p, &(struct view_filter){ .object = "program" }), 0);
	cr_expect_eq(p->total, 7);
	cr_expect_eq(p->place_full, 5);
	profile_free(p);
}

Test(view, finds_a_command_in_brackets_literally)
{
	cr_expect_eq(left_by(&(struct view_filter){ .command = "[worker]" }), 3);
	cr_expect_eq(left_by(&(struct view_filter){ .process = "[worker]" }), 3);
	cr_expect_eq(left_by(&(struct view_filter){ .command = "[x]" }), 4);
	cr_expect_eq(left_by(&(struct view_filter){ .command = "*[wx]*" }), 7);
}
