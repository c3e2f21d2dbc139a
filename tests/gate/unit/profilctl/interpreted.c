/* interpreted.c - functions of interpreted languages: look-up, line tables, merging */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/observe_maps.h"
#include "profile/interpreted.h"
#include "profile/json.h"
#include "profile/merge.h"

/*
 * The line tables below are those that CPython has written for
 *
 *	def f(a, b):                     # 1
 *	    x = a + b
 *
 *	    for i in range(
 *	            a):
 *	        x += i                   # 6
 *	    try:
 *	        g(x,
 *	          b)
 *	    except ValueError:           # 10
 *	        pass
 *	    return [y
 *	            for y in x]          # 13
 *
 * beside the line of each unit of its code as that version prints it; 0: none.
 */
static void expect_lines(__u32 format, const char *hex, const int *lines, size_t n)
{
	struct interpreted_function f = { .start = 1000, .length = (__u32)n, .line = 1 };
	__u8 table[256];

	for (size_t i = 0; hex[2 * i]; i++) {
		char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		table[f.lines_bytes++] = (__u8)strtoul(digits, NULL, 16);
	}
	f.lines = table;
	f.line_format = format;
	for (size_t i = 0; i < n; i++) {
		if (lines[i])
			cr_expect_eq(interpreted_line(&f, 1000 + i), lines[i],
				     "unit %zu: %d, not %d", i, interpreted_line(&f, 1000 + i),
				     lines[i]);
	}
}

Test(interpreted, decodes_line_table_of_python_3_9)
{
	static const int lines[] = { 2,	 2,  2,	 2,  4,	 5,  4,	 4,  4,	 4,  6,	 6,  6,
				     6,	 6,  7,	 8,  8,	 9,  8,	 8,  8,	 8,  10, 10, 10,
				     10, 10, 10, 11, 11, 11, 12, 12, 12, 13, 12, 12, 12 };

	expect_lines(PROFIL_LINES_LNOTAB,
		     "00010802020102ff08020a010201040102ff08020c010601060102ff", lines,
		     sizeof(lines) / sizeof(*lines));
}

Test(interpreted, decodes_line_table_of_python_3_10)
{
	static const int lines[] = { 2,	 2,  2,	 2,  4,	 5,  4,	 4,  4,	 4,  6,	 6,  6,
				     6,	 6,  7,	 8,  8,	 9,  8,	 8,  8,	 8,  10, 10, 10,
				     10, 10, 10, 11, 11, 10, 12, 12, 12, 13, 12, 12, 12 };

	expect_lines(PROFIL_LINES_PEP_626,
		     "08010202020108ff0a0202010401020108ff0c02040102ff0602020106ff", lines,
		     sizeof(lines) / sizeof(*lines));
}

Test(interpreted, decodes_line_table_of_python_3_11)
{
	static const int lines[] = { 1, 2, 2, 2,  2,  2,  4,  4,  4,  4,  4,  4,  5,  4,  4,
				     4, 4, 4, 4,  4,  4,  4,  4,  6,  6,  6,  6,  6,  6,  7,
				     8, 8, 8, 8,  8,  8,  8,  9,  8,  8,  8,  8,  8,  8,  8,
				     8, 8, 0, 10, 10, 10, 10, 10, 10, 10, 10, 10, 11, 11, 10,
				     0, 0, 0, 12, 12, 13, 12, 12, 12, 12, 12, 12, 12, 12, 12 };

	expect_lines(PROFIL_LINES_PEP_657,
		     "8000d80809884189058041e50d12d80c0df103010e0ff400010e0ff00002050f"
		     "f00002050f8801e008098851890688018801f00204050ddd08098821d80a0bf1"
		     "0301090df40001090df00001090df00001090df8e50b15f00001050df0000105"
		     "0df00001050dd8080c8804f00301050df8f8f8f004010c18f000010c18d81516"
		     "f003010c18f100010c18f400010c18f000010518",
		     lines, sizeof(lines) / sizeof(*lines));
}

Test(interpreted, decodes_line_table_of_python_3_13)
{
	static const int lines[] = { 1,	 2,  2,	 2,  2,	 4,  4,	 4,  4,	 4,  5,	 4,  4,	 4,  4,	 4,
				     4,	 4,  4,	 6,  6,	 6,  6,	 6,  6,	 4,  4,	 7,  8,	 8,  8,	 8,
				     8,	 8,  9,	 8,  8,	 8,  8,	 8,  13, 13, 12, 12, 12, 12, 13, 13,
				     13, 12, 12, 12, 12, 13, 13, 12, 12, 12, 0,	 10, 10, 10, 10, 10,
				     10, 10, 10, 10, 11, 11, 10, 0,  0,	 0,  0,	 0,  12, 12, 12 };

	expect_lines(PROFIL_LINES_PEP_657,
		     "8000d8080989058041e40d12d80c0df603010e0f8801e0080989068a01f10501"
		     "0e0ff00604050ddc08098821d80a0bf40301090df10a001617f303010c18d915"
		     "169001f303000d0ed91516f103010c18f000010518f8f405000c16f30001050d"
		     "d9080cf00301050dfcf204010c18",
		     lines, sizeof(lines) / sizeof(*lines));
}

Test(interpreted, ends_at_the_end_of_a_damaged_line_table)
{
	__u8 table[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct interpreted_function f = { .start = 1, .length = 99, .line = 7, .lines = table };

	for (__u32 format = 0; format <= PROFIL_LINES_PEP_657; format++) {
		for (f.lines_bytes = 0; f.lines_bytes <= sizeof(table); f.lines_bytes++) {
			f.line_format = format;
			for (__u64 at = 1; at < 100; at++)
				interpreted_line(&f, at);
		}
	}
	f.line_format = PROFIL_LINES_PEP_657;
	f.lines_bytes = 1;
	cr_expect_eq(interpreted_line(&f, 50), 7);
}

static void add(struct interpreted *i, const char *name, const char *file, __u32 line, __u32 start,
		__u32 length)
{
	const struct interpreted_function f = { .name = strdup(name),
						.file = strdup(file),
						.line = line,
						.start = start,
						.length = length };

	cr_assert_eq(interpreted_add(i, &f), 0);
}

Test(interpreted, finds_the_function_of_an_offset)
{
	struct interpreted i = { 0 };

	add(&i, "second", "a.py", 9, 100, 10);
	add(&i, "first", "a.py", 1, 1, 5);
	interpreted_sort(&i);
	cr_expect_null(interpreted_find(&i, 0));
	cr_expect_str_eq(interpreted_find(&i, 1)->name, "first");
	cr_expect_str_eq(interpreted_find(&i, 6)->name, "first",
			 "a return address behind the last");
	cr_expect_null(interpreted_find(&i, 7));
	cr_expect_str_eq(interpreted_find(&i, 110)->name, "second");
	cr_expect_null(interpreted_find(&i, 112));
	interpreted_fini(&i);
}

/* A profile with @n samples of each of two functions, the second of which is at @start. */
static struct profile *recorded(const char *second, __u32 start, __u64 n)
{
	struct profile *p = profile_new();
	struct function f = { 0 };
	__u32 object;

	p->command = strdup("python3");
	p->tick_ns = 1000000;
	cr_assert_eq(profile_add_object(p, "python", 0, 0, -1, &object), 0);
	cr_assert_eq(p->objects[object].kind, OBJECT_INTERPRETED);
	p->objects[object].interpreted = calloc(1, sizeof(struct interpreted));
	add(p->objects[object].interpreted, "hot", "a.py", 1, 1, 10);
	add(p->objects[object].interpreted, second, "a.py", 20, start, 10);
	for (int k = 0; k < 2; k++) {
		cr_assert_eq(profile_add_place(p, object, (k ? start : 1) + 3, 1, n), 0);
		f = (struct function){ .name = strdup(k ? second : "hot"),
				       .object = object,
				       .offset = k ? start : 1,
				       .size = 11,
				       .samples = n };
		cr_assert_eq(profile_add_function(p, &f), 0);
	}
	p->total = p->binned = 2 * n;
	return p;
}

static const struct function *named(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->nfunctions; i++) {
		if (p->functions[i].name && !strcmp(p->functions[i].name, name))
			return &p->functions[i];
	}
	return NULL;
}

Test(interpreted, merges_functions_by_name_whatever_their_offsets)
{
	struct profile *a = recorded("left", 12, 5), *b = recorded("right", 12, 7);
	struct profile *c = recorded("left", 400, 9);
	struct merge m = { .into = profile_new() };

	cr_assert_eq(merge_add(&m, a) | merge_add(&m, b) | merge_add(&m, c), 0);
	merge_end(&m);
	cr_expect_eq(m.into->nobjects, 1);
	cr_expect_eq(m.into->nfunctions, 3);
	cr_expect_eq(named(m.into, "hot")->samples, 5 + 7 + 9);
	cr_expect_eq(named(m.into, "left")->samples, 5 + 9);
	cr_expect_eq(named(m.into, "right")->samples, 7);
	places_each(place, &m.into->places) {
		const struct interpreted_function *f =
			interpreted_find(m.into->objects[0].interpreted, place->offset);

		cr_expect_eq(place->count, named(m.into, f->name)->samples, "%s", f->name);
	}
	profile_free(a);
	profile_free(b);
	profile_free(c);
	profile_free(m.into);
}
