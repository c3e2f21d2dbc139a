/* listing.c - which lines of a function are shown */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/listing.h"

/* The listing as a string: a letter for each line, [lines:samples] for each gap. */
static char shown[512];

static void on_line(void *ctx, const struct listed *line)
{
	snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), "%s", line->text);
}

static void on_gap(void *ctx, size_t lines, __u64 samples)
{
	snprintf(shown + strlen(shown), sizeof(shown) - strlen(shown), "[%zu:%llu]", lines,
		 samples);
}

/* Lines a to z, with samples at some. */
static void shows(const char *lines, const __u64 *samples, struct listing_bounds bounds,
		  const char *expected)
{
	static const struct listing_writer writer = { on_line, on_gap };
	struct listing l = { .n = 26 };
	char letter[26][2] = { "" };

	l.line = calloc(26, sizeof(*l.line));
	for (size_t i = 0; i < 26; i++) {
		letter[i][0] = (char)('a' + i);
		l.line[i] = (struct listed){ .text = letter[i], .at = i };
	}
	for (size_t i = 0; lines[i]; i++)
		l.line[lines[i] - 'a'].samples = samples[i];
	*shown = '\0';
	cr_assert_eq(listing_excerpt(&l, bounds, &writer, NULL), 0);
	cr_expect_str_eq(shown, expected);
	free(l.line);
}

#define SHOWS(lines, hot, context, expected, ...)                                             \
	shows(lines, (const __u64[]){ __VA_ARGS__ }, (struct listing_bounds){ hot, context }, \
	      expected)

Test(ctl_listing, shows_hot_lines_with_their_context)
{
	SHOWS("h", 10, 2, "[5:0]fghij[16:0]", 7);
	SHOWS("a", 10, 2, "abc[23:0]", 7);
	SHOWS("z", 10, 2, "[23:0]xyz", 7);
	SHOWS("hk", 10, 2, "[5:0]fghijklm[13:0]", 7, 1);
}

Test(ctl_listing, never_leaves_out_a_single_line)
{
	SHOWS("cg", 10, 1, "[1:0]bcdefgh[18:0]", 3, 4);
}

Test(ctl_listing, adds_up_lines_beyond_the_bound)
{
	SHOWS("cms", 2, 0, "[2:0]c[9:0]m[13:1]", 5, 4, 1);
	SHOWS("cms", 1, 1, "[11:3]lmn[12:1]", 3, 4, 1);
}

Test(ctl_listing, shows_every_line_without_a_bound)
{
	shows("c", (const __u64[]){ 5 }, LISTING_WHOLE, "abcdefghijklmnopqrstuvwxyz");
}

Test(ctl_listing, shows_nothing_without_samples)
{
	SHOWS("", 10, 2, "[26:0]", 0);
}

Test(ctl_listing, lists_the_hottest_first)
{
	char text[4][2] = { "a", "b", "c", "d" };
	struct listed line[4];
	struct listing l = { .line = line, .n = 4 };
	const struct listed **hottest;
	size_t n;

	for (size_t i = 0; i < 4; i++)
		line[i] = (struct listed){ text[i], i, (const __u64[]){ 1, 5, 0, 5 }[i] };
	hottest = listing_hottest(&l, &n);
	cr_assert_eq(n, 3u);
	cr_expect_eq(hottest[0], &line[1]);
	cr_expect_eq(hottest[1], &line[3]);
	cr_expect_eq(hottest[2], &line[0]);
	free(hottest);
}
