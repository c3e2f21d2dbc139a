/* profile.c - the profile in memory and in its file */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "profilctl/output/output.h"
#include "profile/profile.h"
#include "formats/synthetic_addresses.h"
#include "symbols/symbolize.h"
#include "base/utf8.h"

static __u32 object(struct profile *p, const char *path, __u64 ino)
{
	__u32 index;

	cr_assert_eq(profile_add_object(p, path, 1, ino, -1, &index), 0);
	return index;
}

/* Two objects without symbols, with samples that cross no page boundary. */
static struct profile *sample_profile(void)
{
	struct profile *p = profile_new();
	__u32 a = object(p, "/bin/a", 1), b = object(p, "[anon]", 0);

	p->command = strdup("a \"quoted\" comm\xc3\xa4nd");
	p->pid = 123;
	p->started = 1700000000;
	p->tick_ns = 10000000;
	p->duration_ns = 2500000000;
	p->cpu_ns = 1234567890;
	p->end = PROFILE_EXITED;
	p->end_code = 3;
	cr_assert_eq(profile_add_place(p, a, 0x1010, 1, 5), 0);
	cr_assert_eq(profile_add_place(p, a, 0x1020, 1, 7), 0);
	cr_assert_eq(profile_add_place(p, b, 0x7f0000000000, 1, 30), 0);
	p->unmatched = 2;
	p->lost = 1;
	p->total = p->binned + p->unmatched + p->lost;
	strcpy(p->objects[a].build_id, "0123abcd");
	cr_assert_eq(symbolize(p, NULL), 0);
	return p;
}

Test(ctl_profile, places_add_up)
{
	struct profile *p = profile_new();
	__u32 a = object(p, "/bin/a", 1);
	struct place *sorted;

	for (int round = 0; round < 3; round++) {
		for (__u64 i = 5000; i > 0; i--)
			cr_assert_eq(profile_add_place(p, a, i, 1, i), 0);
	}
	cr_expect_eq(p->places.n, 5000);
	cr_expect_eq(p->binned, 3ull * 5000 * 5001 / 2);
	sorted = places_sorted(&p->places);
	for (__u64 i = 0; i < 5000; i++) {
		cr_assert_eq(sorted[i].offset, i + 1);
		cr_assert_eq(sorted[i].count, 3 * (i + 1));
	}
	free(sorted);
	profile_free(p);
}

/* One address in two groups is two places. Folding replaces places in the kernel by the user's. */
Test(ctl_profile, folds_the_kernel_into_user_places)
{
	struct profile *p = profile_new();
	__u32 a = object(p, "/bin/a", 1), kernel = object(p, PROFILE_KERNEL, 0), group;
	struct group g = { .pid = 5, .command = strdup("a") };
	__u64 *samples;

	cr_assert_eq(profile_add_group(p, &g, &group), 0);
	cr_expect_eq(group, 1);
	cr_assert_eq(profile_add_place(p, a, 0x1000, 1, 10), 0);
	cr_assert_eq(profile_add_sample(p, &(struct place){ 0x1000, 5, a, 1, group }), 0);
	cr_assert_eq(profile_add_sample(p, &(struct place){ 0x40, 8, kernel, 1, group }), 0);
	cr_assert_eq(places_add(&p->folded, &(struct place){ 0x1000, 6, a, 1, group }), 0);
	p->total = p->binned;
	cr_expect_eq(p->places.n, 3);
	cr_expect_eq(profile_kernel_samples(p), 8);
	cr_assert_eq(profile_fold_kernel(p), 0);
	cr_expect_eq(p->total, 23);
	cr_expect_eq(p->binned, 21);
	cr_expect_eq(p->unmatched, 2, "a kernel thread has no user pc");
	cr_expect_eq(profile_kernel_samples(p), 0);
	samples = profile_group_samples(p);
	cr_expect_eq(samples[0], 10);
	cr_expect_eq(samples[1], 11);
	free(samples);
	profile_free(p);
}

/* Of 9 samples without a place, 4 are in the kernel, 3 of which have no place in user mode either.
 */
Test(ctl_profile, folding_the_kernel_counts_samples_without_a_place_anew)
{
	struct profile *p = profile_new();
	__u32 a = object(p, "/bin/a", 1), kernel = object(p, PROFILE_KERNEL, 0);

	cr_assert_eq(profile_add_place(p, a, 0, 0, 5), 0);
	cr_assert_eq(profile_add_place(p, kernel, 0, 0, 4), 0);
	cr_assert_eq(places_add(&p->folded, &(struct place){ .count = 3, .object = a }), 0);
	cr_assert_eq(places_add(&p->folded, &(struct place){ 0x1000, 1, a, 1, 0 }), 0);
	p->total = p->binned;
	p->place_full = 9;
	cr_assert_eq(profile_fold_kernel(p), 0);
	cr_expect_eq(p->place_full, 8);
	cr_expect_eq(p->total, 9);
	profile_free(p);
}

Test(ctl_profile, samples_without_a_place_have_a_difference)
{
	struct profile *last = profile_new(), *now = profile_new(), *p = profile_new();

	last->place_full = 3;
	now->place_full = 10;
	cr_assert_eq(profile_difference(p, last, now), 0);
	cr_expect_eq(p->place_full, 7);
	profile_clear_places(p);
	cr_expect_eq(p->place_full, 0);
	profile_free(last);
	profile_free(now);
	profile_free(p);
}

/* As in pprof and perf, the name is the object's in brackets. */
Test(ctl_profile, a_sample_without_an_offset_is_named_by_its_object)
{
	struct profile *p = profile_new();
	__u32 a = object(p, "/bin/a", 1), kernel = object(p, PROFILE_KERNEL, 0);

	cr_assert_eq(profile_add_place(p, a, 0, 0, 3), 0);
	cr_assert_eq(profile_add_place(p, kernel, 0, 0, 2), 0);
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(p->nfunctions, 2);
	cr_expect_str_eq(p->functions[0].name, "[a]");
	cr_expect_eq(p->functions[0].samples, 3);
	cr_expect_str_eq(p->functions[1].name, "[kernel]");
	cr_expect_eq(p->binned, 5);
	profile_free(p);
}

Test(ctl_profile, a_replaced_file_is_another_object)
{
	struct profile *p = profile_new();
	__u32 a = object(p, "/bin/a", 1), b = object(p, "/bin/a", 2), found;

	cr_expect_eq(profile_find_object(p, "/bin/a", 1, 2, &found), 0);
	cr_expect_eq(found, b);
	cr_expect_eq(profile_find_object(p, "/bin/a", 1, 1, &found), 0);
	cr_expect_eq(found, a);
	cr_expect_neq(profile_find_object(p, "/bin/a", 2, 1, &found), 0);
	profile_free(p);
}

Test(ctl_profile, functions_add_up_and_are_sorted_by_samples)
{
	struct profile *p = sample_profile();

	cr_assert_eq(p->nfunctions, 2);
	cr_expect_eq(p->functions[0].samples, 30);
	cr_expect_eq(p->functions[0].offset, 0x7f0000000000);
	cr_expect_eq(p->functions[1].samples, 12);
	cr_expect_eq(p->functions[1].offset, 0x1000, "an unknown function is called by its page");
	profile_free(p);
}

static char *written(const struct profile *p, bool places)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	cr_assert_eq(json_write(f, p, places), 0);
	fclose(f);
	return text;
}

static int load(struct profile **out, const char *text, char *why, size_t bytes)
{
	return json_load(out, text, strlen(text), why, bytes);
}

Test(ctl_profile, a_kept_profile_is_read_back_completely)
{
	struct profile *p = sample_profile(), *q;
	char *text = written(p, true), *again, why[256];

	cr_assert_eq(load(&q, text, why, sizeof(why)), 0, "%s", why);
	again = written(q, true);
	cr_expect_str_eq(again, text);
	cr_expect_str_eq(q->command, p->command);
	cr_expect_eq(q->binned, 42);
	cr_expect_eq(q->end, PROFILE_EXITED);
	cr_expect_eq(q->end_code, 3);
	free(text);
	free(again);
	profile_free(p);
	profile_free(q);
}

/* A profile that is truncated or changed at any byte is refused or read; none crashes the reader.
 */
Test(ctl_profile, a_broken_file_is_refused)
{
	struct profile *p = sample_profile(), *q;
	char *text = written(p, true), why[256];
	size_t n = strlen(text);

	for (size_t i = 0; i + 2 < n; i++) {
		char c = text[i];

		text[i] = '\0';
		cr_assert_neq(i ? load(&q, text, why, sizeof(why)) : -1, 0);
		text[i] = (char)(c ^ 1);
		if (!load(&q, text, why, sizeof(why)))
			profile_free(q);
		text[i] = c;
	}
	free(text);
	profile_free(p);
}

Test(ctl_profile, a_report_without_places_is_refused)
{
	struct profile *p = sample_profile(), *q;
	char *text = written(p, false), why[256];

	cr_expect_neq(load(&q, text, why, sizeof(why)), 0);
	free(text);
	profile_free(p);
}

/* Runs every writer under the sanitizers; the output is checked by formats.sh. */
Test(ctl_profile, every_format_is_written)
{
	static const char *const names[] = { "json",   "pprof",	    "otlp",	  "gmon",
					     "folded", "callgrind", "speedscope", "firefox",
					     "perf",   "html",	    "markdown" };
	struct profile *full = sample_profile(), *empty = profile_new();

	empty->command = strdup("");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct format *format = format_find(names[i]);
		char *text = NULL;
		size_t n;
		FILE *out = open_memstream(&text, &n);

		cr_assert_not_null(format, "%s", names[i]);
		cr_expect_eq(format->write(out, full), 0);
		cr_expect_eq(format->write(out, empty), 0);
		fclose(out);
		cr_expect_gt(n, 0);
		free(text);
	}
	cr_expect_null(format_find("xml"));
	profile_free(full);
	profile_free(empty);
}

/* The bins have 16 bits. */
Test(ctl_profile, gmon_refuses_counts_that_its_bins_cannot_hold)
{
	struct profile *p = profile_new();
	__u32 a = object(p, "/bin/a", 1);
	FILE *out = fopen("/dev/null", "w");

	cr_assert_eq(profile_add_place(p, a, 0x1000, 1, 1 << 26), 0);
	p->total = p->binned;
	cr_expect_eq(format_find("gmon")->write(out, p), -EOVERFLOW);
	profile_clear_places(p);
	cr_assert_eq(profile_add_place(p, a, 0x1000, 1, 1024 * 65535 - 1), 0);
	p->total = p->binned;
	cr_expect_eq(format_find("gmon")->write(out, p), 0);
	p->total += 1 << 26; /* elsewhere, in all bins of a page */
	cr_expect_eq(format_find("gmon")->write(out, p), 0);
	p->total += 1ull << 38;
	cr_expect_eq(format_find("gmon")->write(out, p), -EOVERFLOW);
	fclose(out);
	profile_free(p);
}

Test(ctl_profile, text_escapes_control_characters)
{
	struct profile *p = sample_profile();
	struct function f = { .name = strdup("evil\033[2Jname"), .samples = 100 };
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	cr_assert_eq(profile_add_function(p, &f), 0);
	cr_expect_eq(text_write(out, p, &(struct text_options){ .by = ROWS_FUNCTION }), 0);
	fclose(out);
	cr_expect_null(strchr(text, '\033'));
	cr_expect_not_null(strstr(text, "exited with status 3"));
	free(text);
	profile_free(p);
}

/* The borrowed arrays may have been reallocated. */
Test(ctl_profile, borrowing_again_shows_new_objects)
{
	struct profile *from = profile_new(), *p = profile_borrow(from);
	__u32 object;

	for (int i = 0; i < 100; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/bin/%d", i);
		cr_assert_eq(profile_add_object(from, path, 1, (__u64)i, -1, &object), 0);
	}
	cr_expect_eq(p->nobjects, 0);
	profile_borrow_again(p, from);
	cr_assert_eq(p->nobjects, 100);
	cr_expect_str_eq(p->objects[99].path, "/bin/99");
	profile_give_back(p);
	profile_free(from);
}

/* A profile of one function @name, which the caller frees. */
static struct profile *of_function(const char *command, const char *path, const char *name)
{
	struct profile *p = profile_new();
	struct function f = {
		.name = strdup(name), .object = object(p, path, 1), .size = 1, .samples = 1
	};

	p->command = strdup(command);
	cr_assert_eq(profile_add_function(p, &f), 0);
	cr_assert_eq(profile_add_place(p, f.object, 0, 1, 1), 0);
	p->total = p->binned;
	return p;
}

Test(ctl_profile, text_formats_are_utf8)
{
	static const char *const names[] = { "folded", "callgrind" };
	struct profile *p = of_function("a\xff", "/b\xc3", "c\xe2\x82\n;\xc3\xa4");

	for (size_t i = 0; i < 2; i++) {
		char *text;
		size_t n;
		FILE *out = open_memstream(&text, &n);

		cr_assert_eq(format_find(names[i])->write(out, p), 0);
		fclose(out);
		cr_expect(utf8_is_valid(text), "%s: %s", names[i], text);
		cr_expect(strstr(text, "c\xef\xbf\xbd\xef\xbf\xbd "), "%s: %s", names[i], text);
		free(text);
	}
	profile_free(p);
}

static void expect_program(const char *command, const char *path, const char *program)
{
	struct profile *p = of_function(command, path, "f");
	char out[64];

	cr_expect_str_eq(profile_program(out, sizeof(out), p), program);
	profile_free(p);
}

Test(ctl_profile, a_program_can_have_blanks_in_its_name)
{
	expect_program("/opt/my program/spin -a b", "/opt/my program/spin", "/opt/my program/spin");
	expect_program("./my spin", "/opt/my spin", "my spin");
	expect_program("/bin/sh -c x y", "/lib/x y", "/bin/sh");
	expect_program("spin -a b", "/usr/bin/spin", "spin");
	expect_program("spin", "/usr/bin/other", "spin");
	expect_program("", "/usr/bin/other", "");
	expect_program("the whole machine (3 profiles)", "/usr/bin/other", "the whole machine");
}

Test(ctl_profile, the_segments_of_an_object_have_extents_of_their_own)
{
	static const struct segment text = { 0x1000, 0x1000, 0x401000 };
	static const struct segment far = { 0x4000, 0x1000, 0x10000000 };
	struct profile *p = profile_new();
	__u32 file = object(p, "/bin/a", 0);
	struct extents all;

	cr_assert_eq(segments_add(&p->objects[file].segments, &text), 0);
	cr_assert_eq(segments_add(&p->objects[file].segments, &far), 0);
	cr_assert_eq(profile_add_place(p, file, 0x1010, 1, 1), 0);
	cr_assert_eq(profile_add_place(p, file, 0x4010, 1, 1), 0);
	p->tick_ns = 1000000;
	cr_assert_eq(extents_init(&all, p), 0);
	cr_expect_eq(extents_of(&all, file, 0x1010)->offset, 0x1000);
	cr_expect_eq(extents_of(&all, file, 0x4010)->offset, 0x4000);
	extents_fini(&all);
	profile_free(p);
}

/* arm64 has the kernel's modules before _text, from which offsets count. */
Test(ctl_profile, the_extent_of_an_object_can_begin_below_its_offset_0)
{
	struct profile *p = profile_new();
	__u32 kernel = object(p, PROFILE_KERNEL, 0), other = object(p, "/bin/a", 1);
	__u64 module = 0 - (__u64)0x5008;
	const struct extent *e;
	struct extents all;

	cr_assert_eq(profile_add_place(p, kernel, 0x1234, 1, 1), 0);
	cr_assert_eq(profile_add_place(p, kernel, module, 1, 1), 0);
	cr_assert_eq(profile_add_place(p, other, 0x1000, 1, 1), 0);
	cr_assert_eq(extents_init(&all, p), 0);
	e = extents_of(&all, kernel, module);
	cr_expect_eq(e->end - e->start, 0x8000);
	cr_expect_eq(extents_address(&all, kernel, module), e->start + 0xff8);
	cr_expect_gt(extents_of(&all, other, 0x1000)->start, e->end);
	extents_fini(&all);
	profile_free(p);
}
