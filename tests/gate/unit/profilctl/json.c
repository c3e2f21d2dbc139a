/* json.c - a profile's file is read back completely, and contradicting values are refused */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"
#include "profilctl/output/output.h"
#include "profilctl/util/time_words.h"

#define HEAD                                                                  \
	"{\"schema\":\"profil/1\",\"command\":\"a\",\"pid\":1,\"started\":1," \
	"\"command_status\":0,\"tick_ns\":1,\"duration_ns\":1,\"cpu_ns\":1,"
#define SAMPLES "\"samples\":{\"total\":10,\"binned\":7,\"unmatched\":2,\"lost\":1},"
#define OBJECTS "\"objects\":[{\"path\":\"/bin/a\",\"build_id\":\"\"}],"
#define PLACES "\"places\":[[0,4096,1,7]],"
#define PART(samples)                                               \
	"\"name\":\"f\",\"object\":\"/bin/a\",\"samples\":" samples \
	",\"offset\":4096,\"size\":16,"                             \
	"\"named\":true"
#define FUNCTION PART("7")
/* One stack of a frame, with 5 of the samples. */
#define TIMED(more)                                                                               \
	"\"stacks\":{\"samples\":5,\"without\":2,\"ends\":[{\"end\":\"whole\",\"samples\":5,"     \
	"\"without_frame\":0},{\"end\":\"deep\",\"samples\":0,\"without_frame\":0}],\"cuts\":[]," \
	"\"frames\":[[\"f\",0,4096]],\"nodes\":[[0,0,0,4096,5]]" more "}"
#define TIMES(slices) ",\"times\":" slices
#define HALF "9223372036854775807" /* of all that 64 bits can count */
#define FUNCTIONS "\"functions\":[{" FUNCTION "}]"
#define IN_SLICES "\"slice_ns\":5,\"functions\":[{" FUNCTION ",\"slices\":[3,4]}]"

static int load(struct profile **out, const char *text, char *why, size_t bytes)
{
	return json_load(out, text, strlen(text), why, bytes);
}

static void refuses(const char *text)
{
	struct profile *p;
	char why[256] = "";

	cr_expect_eq(load(&p, text, why, sizeof(why)), -EINVAL, "%s", text);
	cr_expect_neq(*why, '\0');
}

static struct profile *accepts(const char *text)
{
	struct profile *p = NULL;
	char why[256];

	cr_assert_eq(load(&p, text, why, sizeof(why)), 0, "%s: %s", why, text);
	return p;
}

Test(ctl_json, reads_back_slices_and_threads)
{
	struct profile *p = accepts(HEAD SAMPLES OBJECTS PLACES IN_SLICES "," TIMED(
		TIMES("[[2,3],[2,2]]")) ","
					"\"threads\":[{\"name\":\"t\",\"pid\":1,\"tid\":2,"
					"\"samples\":7}]}");
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct profile *q;
	__u64 *samples;

	cr_assert_eq(json_write(out, p, true), 0);
	fclose(out);
	q = accepts(text);
	cr_assert_eq(q->nslices, 2);
	cr_expect_eq(q->slice_ns, 5);
	cr_expect_eq(q->functions[0].slices[1], 4);
	cr_assert_eq(q->calls.ntimes, 2);
	cr_expect_eq(q->calls.time[1].node, CALL_ROOTS);
	cr_expect_eq(q->calls.time[1].slice, 1);
	cr_expect_eq(q->calls.time[1].count, 2);
	samples = profile_group_samples(q);
	cr_assert_eq(q->ngroups, 2);
	cr_expect_str_eq(q->groups[1].thread, "t");
	cr_expect_eq(q->groups[1].tid, 2);
	cr_expect_eq(samples[0], 0);
	cr_expect_eq(samples[1], 7);
	free(samples);
	free(text);
	profile_free(p);
	profile_free(q);
}

/* Files of older versions have one distance of address and offset for each object. */
Test(ctl_json, keeps_the_segments_of_objects)
{
	static const char objects[] =
		"\"objects\":[{\"path\":\"/bin/a\",\"build_id\":\"\",\"segments\":"
		"[[4096,100,8192],[8192,100,268435456]]},"
		"{\"path\":\"/bin/b\",\"build_id\":\"\",\"vaddr\":4194304}],";
	char text[2048], *again = NULL, why[64];
	struct profile *p, *q;
	size_t n;
	FILE *out = open_memstream(&again, &n);

	snprintf(text, sizeof(text), "%s%s%s%s%s}", HEAD, SAMPLES, objects, PLACES, FUNCTIONS);
	p = accepts(text);
	cr_assert_eq(json_write(out, p, true), 0);
	fclose(out);
	cr_assert_eq(json_load(&q, again, n, why, sizeof(why)), 0, "%s", why);
	cr_expect_eq(object_address(&q->objects[0], 4096 + 99), 8192 + 99);
	cr_expect_eq(object_address(&q->objects[0], 8192), 268435456);
	cr_expect_eq(object_offset(&q->objects[0], 268435456), 8192);
	cr_expect_eq(object_address(&q->objects[1], 16), 4194304 + 16);
	cr_expect_eq(object_offset(&q->objects[1], 4194304 + 16), 16);
	profile_free(p);
	profile_free(q);
	free(again);
}

Test(ctl_json, refuses_segments_that_are_none)
{
	refuses(HEAD SAMPLES "\"objects\":[{\"path\":\"/bin/a\",\"build_id\":\"\","
			     "\"segments\":[[1,2]]}]," PLACES FUNCTIONS "}");
}

Test(ctl_json, keeps_groups_folded_places_and_sums)
{
	struct profile *p = accepts(
		HEAD "\"samples\":{\"total\":10,\"unmatched\":2,\"lost\":1,"
		     "\"place_full\":3}," OBJECTS
		     "\"places\":[[0,4096,1,4,1],[0,0,0,3]],\"processes\":2,"
		     "\"folded\":[[0,4097,1,2,1]],\"sums\":[[0,0,0,5,1]],"
		     "\"event\":\"page-faults\",\"period\":100,"
		     "\"groups\":[{\"pid\":0,\"tid\":0},{\"pid\":8,\"tid\":0,"
		     "\"uid\":1000,\"command\":\"sh\",\"unit\":\"u.service\"}]," FUNCTIONS "}");
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct profile *q;
	__u64 *samples;

	cr_assert_eq(json_write(out, p, true), 0);
	fclose(out);
	q = accepts(text);
	samples = profile_group_samples(q);
	cr_expect_eq(q->processes, 2);
	cr_expect_eq(q->place_full, 3);
	cr_expect_eq(q->folded.sum, 2);
	cr_expect_str_eq(q->event, "page-faults");
	cr_expect_eq(q->period, 100);
	cr_assert_eq(q->ngroups, 2);
	cr_expect_eq(q->groups[1].pid, 8);
	cr_expect_eq(q->groups[1].uid, 1000);
	cr_expect_str_eq(q->groups[1].command, "sh");
	cr_expect_str_eq(q->groups[1].unit, "u.service");
	cr_expect_null(q->groups[1].cgroup);
	cr_expect_eq(samples[0], 2);
	cr_expect_eq(samples[1], 5);
	free(samples);
	free(text);
	profile_free(p);
	profile_free(q);
}

Test(ctl_json, reads_back_the_signal_of_a_killed_command)
{
	static const char text[] =
		"{\"schema\":\"profil/1\",\"command\":\"a\",\"pid\":1,"
		"\"started\":1,\"command_status\":137,\"tick_ns\":1,"
		"\"duration_ns\":1,\"cpu_ns\":1," SAMPLES OBJECTS PLACES FUNCTIONS "}";
	struct profile *p = accepts(text);

	cr_expect_eq(p->end, PROFILE_KILLED);
	cr_expect_eq(p->end_code, 9);
	profile_free(p);
}

Test(ctl_json, says_what_else_the_file_is)
{
	static const char *const files[][2] = {
		{ "{\"$schema\":\"a\",\"shared\":{}}", "it is a profile for speedscope" },
		{ "{\"traceEvents\":[]}", "it is a trace of Chrome's" },
		{ "{\"meta\":{},\"threads\":[]}", "it is a profile for profiler.firefox.com" },
		{ "{\"schema\":\"profil/0\"}", "it is JSON of another kind or version: profil/0" },
		{ "[]", "it is JSON of something else" },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		struct profile *p;
		char why[256] = "";

		cr_expect_eq(load(&p, files[i][0], why, sizeof(why)), -EINVAL);
		cr_expect_str_eq(why, files[i][1]);
	}
}

Test(ctl_json, refuses_contradicting_values)
{
	static const char *const functions[] = {
		"\"functions\":[]", /* fewer samples than binned */
		"\"functions\":[{\"name\":\"f\"}]",
		"\"functions\":[{\"name\":\"f\",\"object\":\"/bin/b\",\"samples\":7,"
		"\"offset\":0,\"size\":1,\"named\":true}]",
		"\"functions\":[{\"name\":\"f\",\"object\":\"/bin/a\",\"samples\":0,"
		"\"offset\":0,\"size\":1,\"named\":true}]",
		"\"functions\":[{" FUNCTION ",\"slices\":[1]},{" FUNCTION ",\"slices\":[1,2]}]",
		"\"functions\":[{" PART("3") ",\"slices\":[3]},{" PART("4") "}]",
		"\"functions\":[{" PART("3") "},{" PART("4") ",\"slices\":[4]}]",
		"\"functions\":[{" FUNCTION ",\"slices\":[8,-1]}]",
		"\"functions\":[{" FUNCTION ",\"slices\":[7,null]}]",
		IN_SLICES "," TIMED(TIMES("[[2,3]]")),	     /* another number */
		IN_SLICES "," TIMED(TIMES("[[2,3],[2,3]]")), /* more than the node has */
		IN_SLICES "," TIMED(TIMES("[[2,3],[3,1]]")), /* no such node */
		IN_SLICES "," TIMED(TIMES("[[2,3],[-1,1]]")),
		IN_SLICES "," TIMED(TIMES("[[2,3],[2]]")),
		IN_SLICES "," TIMED(TIMES("[[2,3],[2,0]]")),
		IN_SLICES "," TIMED(TIMES("[[2,3],7]")),
		FUNCTIONS "," TIMED(TIMES("[[2,3]]")), /* no slice_ns */
		FUNCTIONS ",\"threads\":[{\"name\":\"t\",\"pid\":1,\"tid\":2}]",
		FUNCTIONS ",\"threads\":[{\"name\":\"t\",\"pid\":1,\"tid\":2,\"samples\":0}]",
	};
	char text[2048];

	profile_free(accepts(HEAD SAMPLES OBJECTS PLACES FUNCTIONS "}"));
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		snprintf(text, sizeof(text), HEAD SAMPLES OBJECTS PLACES "%s}", functions[i]);
		refuses(text);
	}
	refuses(HEAD SAMPLES OBJECTS FUNCTIONS "}");
	refuses(HEAD OBJECTS PLACES FUNCTIONS "}");
	refuses(HEAD SAMPLES "\"objects\":[{\"path\":\"/bin/a\"}]," PLACES FUNCTIONS "}");
	refuses(HEAD SAMPLES PLACES FUNCTIONS "}");
	refuses(HEAD SAMPLES OBJECTS "\"places\":[[0,4096,0,7]]," FUNCTIONS "}");
	refuses(HEAD SAMPLES OBJECTS "\"places\":[[0,4096,1,6]]," FUNCTIONS "}");
	refuses(HEAD SAMPLES OBJECTS "\"places\":[[0,4096,1,7,1]]," FUNCTIONS "}");
	refuses(HEAD SAMPLES OBJECTS PLACES "\"event\":\"x\",\"period\":-1," FUNCTIONS "}");
	refuses(HEAD
		"\"samples\":{\"total\":7,\"unmatched\":-1,\"lost\":1}," OBJECTS PLACES FUNCTIONS
		"}");
	refuses(HEAD "\"samples\":{\"total\":0,\"unmatched\":0,\"lost\":0}," OBJECTS
		     "\"places\":[[0,0,1," HALF "],[0,4,1," HALF "],[0,8,1,2]]," /* 2^64 in all */
		     "\"functions\":[{" PART(HALF) "},{" PART(HALF) "},{" PART("2") "}]}");
	refuses("");
}

/* The number of jansson's allocations that still succeed. */
static long left;

static void *failing(size_t bytes)
{
	return left-- > 0 ? malloc(bytes) : NULL;
}

/* Each allocation in turn is the first one that fails. */
Test(ctl_json, reports_that_it_has_no_memory)
{
	struct profile *p = accepts(HEAD SAMPLES OBJECTS PLACES IN_SLICES "," TIMED(
		TIMES("[[2,3],[2,2]]")) ","
					"\"threads\":[{\"name\":\"t\",\"pid\":1,\"tid\":2,"
					"\"samples\":7}]}");
	int err = -ENOMEM;
	long n;

	json_set_alloc_funcs(failing, free);
	for (n = 0; err && n < 10000; n++) {
		char *text = NULL;
		size_t bytes;
		FILE *out = open_memstream(&text, &bytes);

		left = n;
		err = json_write(out, p, true);
		fclose(out);
		cr_expect(!err || err == -ENOMEM || err == -EIO);
		cr_expect(err || text[bytes - 1] == '\n');
		free(text);
	}
	cr_expect_eq(err, 0);
	cr_expect_gt(n, 50);
	profile_free(p);
}

#define STACKS(nodes)                                                                          \
	",\"stacks\":{\"samples\":8,\"without\":1,\"ends\":[{\"end\":\"whole\",\"samples\":7," \
	"\"without_frame\":0},{\"end\":\"nowhere\",\"samples\":1,\"without_frame\":1}],"       \
	"\"cuts\":[],\"frames\":[[\"f\",0,4096],[null,0,8192]],\"nodes\":[" nodes "]}}"

Test(ctl_json, reads_back_stacks)
{
	struct profile *p = accepts(
		HEAD SAMPLES OBJECTS PLACES FUNCTIONS STACKS("[0,1,0,8200,0],[2,0,0,4096,7]"));
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct profile *q;

	cr_assert_eq(json_write(out, p, true), 0);
	fclose(out);
	q = accepts(text);
	cr_expect_eq(q->calls.n, CALL_ROOTS + 2);
	cr_expect_eq(call_tree_sum(&q->calls), 8);
	cr_expect_eq(call_tree_samples(&q->calls, CALL_WHOLE), 7);
	cr_expect_eq(call_tree_samples(&q->calls, CALL_NOWHERE), 1);
	cr_expect_str_eq(q->calls.frame[q->calls.node[CALL_ROOTS + 1].frame].name, "f");
	cr_expect_null(q->calls.frame[q->calls.node[CALL_ROOTS].frame].name);
	profile_free(p);
	profile_free(q);
	free(text);
}

Test(ctl_json, refuses_contradicting_stacks)
{
	refuses(HEAD SAMPLES OBJECTS PLACES FUNCTIONS STACKS("[0,0,0,4096,10]"));
	refuses(HEAD SAMPLES OBJECTS PLACES FUNCTIONS STACKS("[2,0,0,4096,1]"));
	refuses(HEAD SAMPLES OBJECTS PLACES FUNCTIONS STACKS("[0,2,0,4096,1]"));
	refuses(HEAD SAMPLES OBJECTS PLACES FUNCTIONS STACKS("[0,0,1,4096,1]"));
	refuses(HEAD SAMPLES OBJECTS PLACES FUNCTIONS STACKS("[0,0,0,9,1],[0,0,0,9,1]"));
}

/* The output is printed on terminals. */
static void says_without_escapes(const char *text)
{
	struct profile *p;
	char why[256] = "";

	cr_expect_eq(load(&p, text, why, sizeof(why)), -EINVAL);
	cr_expect_neq(*why, '\0');
	for (const char *c = why; *c; c++)
		cr_expect_geq(*c, ' ', "%s", why);
}

Test(ctl_json, sanitizes_what_it_quotes)
{
	struct profile *p;

	says_without_escapes("{\"schema\":\"profil\\u001b[2J\\n<0>/9\"}");
	says_without_escapes("{\"schema\":\033[2J}");
	p = accepts(HEAD SAMPLES OBJECTS PLACES "\"event\":\"a\\u001b[2Jb\\u009b\"," FUNCTIONS "}");
	cr_expect_str_eq(p->event, "a [2Jb ");
	profile_free(p);
}

Test(ctl_json, refuses_a_build_id_that_is_not_hexadecimal)
{
	refuses(HEAD SAMPLES
		"\"objects\":[{\"path\":\"/bin/a\",\"build_id\":\"<script>\"}]," PLACES FUNCTIONS
		"}");
	refuses(HEAD SAMPLES
		"\"objects\":[{\"path\":\"/bin/a\",\"build_id\":\"../../x\"}]," PLACES FUNCTIONS
		"}");
}

Test(ctl_json, is_escaped_in_html)
{
	struct profile *p =
		accepts(HEAD SAMPLES OBJECTS PLACES "\"event\":\"<event>\"," FUNCTIONS "}");
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	strcpy(p->objects[0].build_id, "<build-id>");
	cr_assert_eq(html_write(out, p), 0);
	fclose(out);
	cr_expect_null(strstr(text, "<build-id>"));
	cr_expect_not_null(strstr(text, "build-id"));
	cr_expect_null(strstr(text, "<event>"));
	free(text);
	profile_free(p);
}

Test(ctl_json, has_a_page_although_its_time_is_out_of_range)
{
	struct profile *p = accepts(HEAD SAMPLES OBJECTS PLACES FUNCTIONS "}");
	char *text = NULL, when[32];
	size_t n;
	FILE *out = open_memstream(&text, &n);

	p->started = INT64_MAX;
	cr_assert_eq(html_write(out, p), 0);
	fclose(out);
	cr_expect_not_null(strstr(text, "<dt>begun</dt><dd>unknown</dd>"));
	cr_expect_str_eq(time_text(when, sizeof(when), INT64_MAX), "@9223372036854775807");
	free(text);
	profile_free(p);
}
