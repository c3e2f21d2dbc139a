/* hot.c - the functions of the page have the names of a report */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "profil-http/answers/hot.h"
#include "symbols/symbolize.h"

#define PLACES 400

struct libc {
	const char *path;
	__u64 offset, bytes; /* of its text in the file */
};

static int find_libc(struct dl_phdr_info *info, size_t n, void *ctx)
{
	struct libc *libc = ctx;

	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	libc->path = info->dlpi_name;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_LOAD && (h->p_flags & PF_X)) {
			libc->offset = h->p_offset;
			libc->bytes = h->p_filesz;
		}
	}
	return 1;
}

/* libc is stripped on most systems: many of its functions are known by their unwind rules only. */
static struct profile *of_libc(struct libc *libc)
{
	struct profile *p = profile_new();
	struct stat st;
	__u32 object;
	int fd;

	cr_assert(dl_iterate_phdr(find_libc, libc) && libc->bytes);
	fd = open(libc->path, O_RDONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && !fstat(fd, &st));
	cr_assert_eq(profile_add_object(p, libc->path, st.st_dev, st.st_ino, fd, &object), 0);
	return p;
}

/* Adds places of all widths that a table can have, all over the text, with unlike counts. */
static void add_places(struct places *to, const struct libc *libc)
{
	for (__u64 i = 0; i < PLACES; i++) {
		struct place place = { .offset =
					       (libc->offset + i * (libc->bytes / PLACES)) & ~15ull,
				       .count = 1 + i % 7,
				       .width = 1u << (i % 5) };

		cr_assert_eq(places_add(to, &place), 0);
	}
	cr_assert_eq(places_add(to, &(struct place){ .count = 3 }), 0); /* anywhere in it */
}

static json_t *answer_of(struct names *n, const struct places *places)
{
	static const struct host_identity host = { .name = "host" };
	static struct snapshot to;
	struct owner owner = { 0 };
	struct difference d = { .to = &to, .places = *places, .owner = &owner };
	struct answer *a = NULL;
	json_t *root;

	cr_assert_eq(hot_answer(&a, n, &d, &host), 0);
	root = json_loadb(a->bytes, a->n, 0, NULL);
	cr_assert_not_null(root);
	answer_unref(a);
	return json_object_get(root, "functions");
}

Test(http_hot, names_functions_as_a_report_does)
{
	struct libc libc = { 0 };
	struct names names = { .profile = of_libc(&libc) };
	struct profile *report = profile_borrow(names.profile);
	struct places places = { 0 };
	json_t *functions;
	size_t unnamed = 0;

	add_places(&places, &libc);
	add_places(&report->places, &libc);
	cr_assert_eq(symbolize(report, NULL), 0);
	functions = answer_of(&names, &places);
	cr_assert_gt(json_array_size(functions), 100);
	for (size_t i = 0; i < json_array_size(functions); i++) {
		json_t *f = json_array_get(functions, i);
		char name[4096];

		profile_function_name(report, &report->functions[i], name, sizeof(name));
		cr_expect_str_eq(json_string_value(json_object_get(f, "name")), name);
		cr_expect_eq(json_integer_value(json_object_get(f, "samples")),
			     report->functions[i].samples);
		unnamed += !report->functions[i].name;
	}
	if (!unnamed)
		cr_skip_test("this libc has a symbol for each function");
	profile_give_back(report);
	places_fini(&places);
}

Test(http_hot, shortens_names_as_a_report_does)
{
	struct names names = { .profile = profile_new() };
	struct places places = { 0 };
	int fd = memfd_create("map", 0);
	json_t *f;
	__u32 object;

	cr_assert_gt(dprintf(fd, "1000 10 void std::sort<int*, std::less<int> >(int*, int*)\n"), 0);
	cr_assert_eq(profile_add_object(names.profile, PROFILE_ANON, 1, 0, fd, &object), 0);
	cr_assert_eq(
		places_add(&places, &(struct place){ .offset = 0x1000, .width = 1, .count = 1 }),
		0);
	f = json_array_get(answer_of(&names, &places), 0);
	cr_expect_str_eq(json_string_value(json_object_get(f, "name")),
			 "void std::sort<int*, std::less<int> >(int*, int*)");
	cr_expect_str_eq(json_string_value(json_object_get(f, "short")), "std::sort<int*>");
	places_fini(&places);
}
