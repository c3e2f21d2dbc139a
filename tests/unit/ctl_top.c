/* ctl_top.c - what has come since the last table */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "profilctl/symbolize.h"
#include "profilctl/top.h"

static struct profile *with_object(void)
{
	struct profile *p = profile_new();
	__u32 object;

	cr_assert_eq(profile_add_object(p, "/bin/a", 1, 1, -1, &object), 0);
	p->tick_ns = 10000000;
	return p;
}

Test(ctl_top, shows_what_is_new_only)
{
	struct profile *last = with_object(), *now = with_object(), *p = with_object();

	profile_add_place(last, 0, 0x1000, 1, 5);
	profile_add_place(last, 0, 0x2000, 1, 7);
	profile_add_place(now, 0, 0x1000, 1, 5);
	profile_add_place(now, 0, 0x2000, 1, 9);
	profile_add_place(now, 0, 0x3000, 1, 4);
	cr_assert_eq(profile_difference(p, last, now), 0);
	cr_expect_eq(p->nplaces, 2);
	cr_expect_eq(p->binned, 6);
	cr_expect_eq(profile_place_count(p, &(struct place){ .offset = 0x3000, .width = 1 }), 4);
	profile_free(last);
	profile_free(now);
	profile_free(p);
}

Test(ctl_top, all_is_new_at_first)
{
	struct profile *last = with_object(), *now = with_object(), *p = with_object();

	profile_add_place(now, 0, 0x1000, 1, 5);
	cr_assert_eq(profile_difference(p, last, now), 0);
	cr_expect_eq(p->binned, 5);
	profile_free(last);
	profile_free(now);
	profile_free(p);
}

/* The name of the one function of @p, whose ticks are in generated code. */
static const char *name_in(struct profile *p, struct symbolize_cache *cache, char *out,
			   size_t bytes)
{
	struct profile *now = profile_borrow(p);

	cr_assert_eq(profile_add_place(now, 0, 0x1000, 1, 1), 0);
	cr_assert_eq(symbolize(now, cache), 0);
	cr_assert_eq(now->nfunctions, 1);
	profile_function_name(now, &now->functions[0], out, bytes);
	profile_give_back(now);
	return out;
}

Test(ctl_top, looks_for_new_names_of_generated_code_when_told_to)
{
	struct profile *p = profile_new();
	struct symbolize_cache cache = { 0 };
	int fd = memfd_create("map", 0);
	char name[64];
	__u32 object;

	cr_assert_eq(dprintf(fd, "1000 10 first\n"), 14);
	cr_assert_eq(profile_add_object(p, PROFILE_ANON, 1, 0, fd, &object), 0);
	cr_expect_str_eq(name_in(p, &cache, name, sizeof(name)), "first");
	cr_assert_eq(dprintf(fd, "1000 10 other\n"), 14);
	cr_expect_str_eq(name_in(p, &cache, name, sizeof(name)), "first");
	symbolize_cache_renew(&cache, p);
	cr_expect_str_eq(name_in(p, &cache, name, sizeof(name)), "other");
	symbolize_cache_fini(&cache);
	profile_free(p);
}

Test(ctl_top, fits_the_room_that_there_is)
{
	struct top_table table = { 1000000000, 1, 10, 80 };
	struct profile *p = with_object();
	char *text = NULL;
	size_t n, lines = 0;
	FILE *out = open_memstream(&text, &n);

	for (__u64 i = 0; i < 100; i++)
		profile_add_place(p, 0, i * 4096, 1, i + 1);
	p->total = p->binned;
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(top_write(out, p, &table), 0);
	fclose(out);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		cr_expect_leq(strlen(line), 80, "%s", line);
		lines++;
	}
	cr_expect_eq(lines, 10);
	free(text);
	profile_free(p);
}
