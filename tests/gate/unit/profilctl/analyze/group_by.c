/* group_by.c - rows of functions that have one name */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/group_by.h"

/* Two static functions cmp in one program, with 3 and 4 samples at the same distance from their
 * starts. */
static struct profile *with_namesakes(void)
{
	struct profile *p = profile_new();
	__u32 object;

	cr_assert_eq(profile_add_object(p, "/nonexistent/program", 1, 1, -1, &object), 0);
	for (__u64 i = 1; i <= 2; i++) {
		struct function f = { .name = strdup("cmp"),
				      .object = object,
				      .offset = 0x1000 * i,
				      .size = 16,
				      .samples = 2 + i };

		cr_assert_eq(profile_add_function(p, &f), 0);
		cr_assert_eq(profile_add_place(p, object, f.offset + 4, 1, f.samples), 0);
	}
	return p;
}

static void expect_rows(enum rows_by by, const char *name)
{
	struct profile *p = with_namesakes();
	struct rows rows;

	cr_assert_eq(rows_init(&rows, p, by), 0);
	cr_assert_eq(rows.n, 2, "%s: %zu rows", rows_by_name(by), rows.n);
	cr_expect_eq(rows.row[0].samples, 4);
	cr_expect_eq(rows.row[1].samples, 3);
	cr_expect_str_eq(rows.row[1].name, name);
	rows_fini(&rows);
	profile_free(p);
}

Test(rows, tells_functions_of_one_name_apart)
{
	expect_rows(ROWS_FUNCTION, "cmp");
	expect_rows(ROWS_INLINED, "cmp");
	expect_rows(ROWS_INSTRUCTION, "cmp+0x4");
}
