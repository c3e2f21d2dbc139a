/* profiles.c - profiles for collectors have all samples, and leave what has no name to them */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "profil-http/answers/profiles.h"

static const struct host_identity host = { .name = "h" };

/* Samples in a file without symbols, most of which web.service has. */
static void open_names(struct names *n, struct difference *d, struct snapshot *to)
{
	struct group web = { .command = strdup("server"), .unit = strdup("web.service") };
	struct place place = { .offset = 0x1010, .width = 1, .count = 5 };
	__u32 index;

	*n = (struct names){ .profile = profile_new() };
	*to = (struct snapshot){ .head = { .period_ns = 1000000 } };
	*d = (struct difference){ .to = to, .began_ns = 1700000000123456789, .duration_ns = 1 };
	cr_assert_eq(profile_add_object(n->profile, "/nonexistent/file", 1, 1, -1, &index), 0);
	cr_assert_eq(profile_add_group(n->profile, &web, &index), 0);
	cr_assert_eq(places_add(&d->places, &place), 0);
	place = (struct place){ .group = index, .count = 4 };
	cr_assert_eq(places_add(&d->sums, &place), 0);
	d->outcomes = (struct outcomes){ .placed = 5, .lost = 2, .total = 7 };
}

static void close_names(struct names *n, struct difference *d)
{
	difference_fini(d);
	symbolize_cache_fini(&n->symbols);
	profile_free(n->profile);
}

/* The answer, decompressed; the caller frees it. */
static char *answer_in(enum profiles_format format, size_t *size)
{
	struct names n;
	struct difference d;
	struct snapshot to;
	struct answer *a = NULL;
	char *text = NULL;

	open_names(&n, &d, &to);
	cr_assert_eq(profiles_answer(&a, &n, &d, &host, format), 0);
	cr_expect_not(n.symbols.without_lines, "pages have inlined functions");
	if (gzip_is(a->bytes, a->n)) {
		cr_assert_eq(gzip_read(&text, size, a->bytes, a->n, 1 << 20), 0);
	} else {
		text = malloc(a->n);
		*size = a->n;
		cr_assert(text);
		memcpy(text, a->bytes, a->n);
	}
	answer_unref(a);
	close_names(&n, &d);
	return text;
}

static void expect_texts(enum profiles_format format, const char *const *has, const char *lacks)
{
	size_t size;
	char *text = answer_in(format, &size);

	for (; *has; has++)
		cr_expect(memmem(text, size, *has, strlen(*has)), "%s", *has);
	cr_expect_not(memmem(text, size, lacks, strlen(lacks)), "%s", lacks);
	free(text);
}

Test(http_profiles, leave_functions_without_a_name_to_collectors)
{
	static const char *const has[] = { "/nonexistent/file", "[lost]", "[none]", NULL };

	expect_texts(PROFILES_PPROF, has, "+0x");
	expect_texts(PROFILES_OTLP, has, "+0x");
}

Test(http_profiles, name_functions_in_text)
{
	static const char *const has[] = { "file+0x1000 5\n", "[lost] 2\n", NULL };

	expect_texts(PROFILES_FOLDED, has, "[none]");
}

/* Of five samples four have a group; their values are followed by nanoseconds, as varints. */
Test(http_profiles, by_group_have_whole_files_and_labels)
{
	static const char *const has[] = {
		"[file]",	    "[lost]",	   "comm",
		"server",	    "web.service", "\x04\x80\x92\xf4\x01",
		"\x01\xc0\x84\x3d", NULL
	};

	expect_texts(PROFILES_PPROF_BY_GROUP, has, "+0x");
}

/* A sample is where another one's call returns to. The values are the field and an address. */
Test(http_profiles, have_callers_before_their_return_addresses)
{
	static const char *const has[] = { "\x10\x80\x40", "\x10\xff\x3f", "\x10\x80\x60", NULL };
	struct names n;
	struct difference d;
	struct snapshot to;
	struct answer *a = NULL;
	__u32 at;

	open_names(&n, &d, &to);
	cr_assert_eq(call_tree_add(&d.stacks, CALL_WHOLE, 0, 0x2000, &at), 0);
	cr_assert_eq(call_tree_count(&d.stacks, at, 2), 0);
	cr_assert_eq(call_tree_add(&d.stacks, at, 0, 0x3000, &at), 0);
	cr_assert_eq(call_tree_count(&d.stacks, at, 3), 0);
	cr_assert_eq(profiles_answer(&a, &n, &d, &host, PROFILES_OTLP), 0);
	for (size_t i = 0; has[i]; i++)
		cr_expect(memmem(a->bytes, a->n, has[i], 3), "address %zu", i);
	answer_unref(a);
	close_names(&n, &d);
}
