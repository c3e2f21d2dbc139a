/* json_stacks.c - stacks, their wake-ups and interpreted functions are read back, or refused */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/observe_maps.h"
#include "profile/interpreted.h"
#include "profile/json.h"

#define OBJECTS                                    \
	"{\"path\":\"/bin/a\",\"build_id\":\"\"}," \
	"{\"path\":\"python\",\"build_id\":\"\","  \
	"\"interpreted\":["                        \
	"[1,9,7,\"main\",\"/a.py\",1,\"0102ff\"]," \
	"[11,9,0,\"<module>\",null,0,\"\"]]}"
#define FRAMES "[\"f\",0,4096],[null,1,3],[\"lock\",0,8192]"
#define NODES "[0,0,0,4096,2],[2,1,1,3,5]" /* a frame below the first end, and one below that */
#define GROUPS "[0,1]"
#define WAKES "[3,2,4,\"futex\",2],[2,0,1,\"\",null],[2,0,1]"

/* A profile whose parts are as above but for those that are given. The caller frees it. */
static char *profile_with(const char *objects, const char *frames, const char *nodes,
			  const char *groups, const char *wakes)
{
	char *text;

	cr_assert_gt(
		asprintf(
			&text,
			"{\"schema\":\"profil/1\",\"command\":\"a\",\"pid\":1,\"started\":1,"
			"\"command_status\":0,\"tick_ns\":1,\"duration_ns\":1,\"cpu_ns\":1,"
			"\"samples\":{\"total\":7,\"binned\":7,\"unmatched\":0,\"lost\":0},"
			"\"objects\":[%s],\"places\":[[0,4096,1,2],[1,3,1,5]],"
			"\"groups\":[{\"pid\":0,\"tid\":0},{\"pid\":8,\"tid\":0,\"command\":\"sh\"}],"
			"\"functions\":[{\"name\":\"f\",\"object\":\"/bin/a\",\"samples\":7,"
			"\"offset\":4096,\"size\":16,\"named\":true}],"
			"\"stacks\":{\"samples\":7,\"without\":0,\"ends\":["
			"{\"end\":\"whole\",\"samples\":7,\"without_frame\":0},"
			"{\"end\":\"of another version\",\"samples\":0,\"without_frame\":0}],"
			"\"cuts\":[],\"frames\":[%s],\"nodes\":[%s],\"groups\":[%s],\"wakes\":[%s]}}",
			objects, frames, nodes, groups, wakes),
		0);
	return text;
}

static struct profile *accepts(const char *text)
{
	struct profile *p = NULL;
	char why[256] = "";

	cr_assert_eq(json_load(&p, text, strlen(text), why, sizeof(why)), 0, "%s: %s", why, text);
	return p;
}

static void refuses(char *text)
{
	struct profile *p;
	char why[256] = "";

	cr_expect_eq(json_load(&p, text, strlen(text), why, sizeof(why)), -EINVAL, "%s", text);
	free(text);
}

/* Loads the profile, writes it, and loads what was written. */
static struct profile *written(void)
{
	char *text = profile_with(OBJECTS, FRAMES, NODES, GROUPS, WAKES), *again = NULL;
	struct profile *p = accepts(text), *q;
	size_t n;
	FILE *out = open_memstream(&again, &n);

	cr_assert_eq(json_write(out, p, true), 0);
	fclose(out);
	q = accepts(again);
	profile_free(p);
	free(text);
	free(again);
	return q;
}

Test(ctl_json_stacks, reads_back_nodes_and_their_groups)
{
	struct profile *p = written();
	const struct call_node *node = p->calls.node + CALL_ROOTS;

	cr_assert_eq(p->calls.n, CALL_ROOTS + 2);
	cr_expect_eq(node[0].group, 1);
	cr_expect_eq(node[0].count, 2);
	cr_expect_eq(node[1].parent, CALL_ROOTS);
	cr_expect_eq(node[1].object, 1);
	cr_expect_eq(node[1].offset, 3);
	cr_expect_eq(node[1].count, 5);
	cr_expect_null(p->calls.frame[node[1].frame].name);
	profile_free(p);
}

Test(ctl_json_stacks, reads_back_what_woke_sleepers)
{
	struct profile *p = written();
	const struct call_wake *wake = p->calls.wake;

	cr_assert_eq(p->calls.nwakes, 3);
	cr_expect_eq(wake[0].sleeper, CALL_ROOTS + 1);
	cr_expect_eq(wake[0].waker, CALL_ROOTS);
	cr_expect_eq(wake[0].count, 4);
	cr_expect_eq(wake[0].lock, 3);
	cr_expect_eq(wake[0].wait, PROFIL_WAIT_FUTEX);
	cr_expect_eq(wake[1].sleeper, CALL_ROOTS);
	cr_expect_eq(wake[1].waker, 0);
	cr_expect_eq(wake[1].lock, 0);
	profile_free(p);
}

Test(ctl_json_stacks, reads_back_functions_of_interpreters)
{
	struct profile *p = written();
	const struct interpreted *i = p->objects[1].interpreted;

	cr_assert_not_null(i);
	cr_assert_eq(i->n, 1, "a function without a sample is left out");
	cr_expect_str_eq(i->function[0].name, "main");
	cr_expect_str_eq(i->function[0].file, "/a.py");
	cr_expect_eq(i->function[0].line, 7);
	cr_expect_eq(i->function[0].line_format, 1);
	cr_expect_eq(i->function[0].length, 9);
	cr_assert_eq(i->function[0].lines_bytes, 3);
	cr_expect_eq(memcmp(i->function[0].lines, "\x01\x02\xff", 3), 0);
	profile_free(p);
}

Test(ctl_json_stacks, refuses_functions_of_interpreters_that_there_cannot_be)
{
	static const char *const functions[] = {
		"[0,9,7,\"f\",null,0,\"\"]",				/* places begin with 1 */
		"[1,9,7,\"f\",null,0,\"\"],[10,9,7,\"g\",null,0,\"\"]", /* they overlap */
		"[1,-1,7,\"f\",null,0,\"\"]",
		"[1,1048577,7,\"f\",null,0,\"\"]",
		"[4294967290,9,7,\"f\",null,0,\"\"]",
		"[1,9,-1,\"f\",null,0,\"\"]",
		"[1,9,2147483648,\"f\",null,0,\"\"]",
		"[1,9,7,\"f\",null,6,\"\"]",
		"[1,9,7,\"f\",null,0]",
		"[1,9,7,null,null,0,\"\"]",
		"7",
	};
	char objects[512];

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		snprintf(objects, sizeof(objects),
			 "{\"path\":\"/bin/a\",\"build_id\":\"\"},"
			 "{\"path\":\"python\",\"build_id\":\"\",\"interpreted\":[%s]}",
			 functions[i]);
		refuses(profile_with(objects, FRAMES, NODES, GROUPS, WAKES));
	}
	refuses(profile_with("{\"path\":\"/bin/a\",\"build_id\":\"\",\"interpreted\":[]},"
			     "{\"path\":\"python\",\"build_id\":\"\"}",
			     FRAMES, NODES, GROUPS, WAKES));
}

Test(ctl_json_stacks, refuses_what_refers_to_nothing)
{
	static const char *const frames[] = { "[\"f\",2,4096]", "[\"f\",-1,4096]", "[7,0,4096]",
					      "[\"f\",0]", "7" };
	static const char *const nodes[] = {
		"[0,3,0,4096,2]",  "[0,-1,0,4096,2]", "[2,0,0,4096,2]",
		"[-1,0,0,4096,2]", "[0,0,2,4096,2]",  "[0,0,0,4096,-1]",
		"[0,0,0,4096,8]",  "[0,0,0,4096]",    "[0,0,0,4096,1],[0,0,0,4096,1]", /* twice */
	};
	static const char *const groups[] = { "[2,1]", "[0,2]", "[-1,1]", "[0,-1]", "[0]", "7" };
	static const char *const wakes[] = { "[4,0,1,\"\",null]",  "[-1,0,1,\"\",null]",
					     "[2,4,1,\"\",null]",  "[2,0,-1,\"\",null]",
					     "[2,0,1,\"\",3]",	   "[2,0,1,\"\",-1]",
					     "[2,0,1,\"\",\"f\"]", "[2,0]" };

	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++)
		refuses(profile_with(OBJECTS, frames[i], NODES, GROUPS, WAKES));
	for (size_t i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
		refuses(profile_with(OBJECTS, FRAMES, nodes[i], "", ""));
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		refuses(profile_with(OBJECTS, FRAMES, NODES, groups[i], WAKES));
	for (size_t i = 0; i < sizeof(wakes) / sizeof(*wakes); i++)
		refuses(profile_with(OBJECTS, FRAMES, NODES, GROUPS, wakes[i]));
}

/* The profile with @to in place of its first @from. */
static char *changed(const char *from, const char *to)
{
	char *text = profile_with(OBJECTS, FRAMES, NODES, GROUPS, WAKES), *at = strstr(text, from),
	     *new;

	cr_assert_not_null(at);
	cr_assert_gt(asprintf(&new, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)), 0);
	free(text);
	return new;
}

Test(ctl_json_stacks, refuses_ends_that_there_cannot_be)
{
	static const char end[] = "{\"end\":\"whole\",\"samples\":0,\"without_frame\":0},";
	char many[65 * sizeof(end)] = "\"ends\":[";

	for (int i = 0; i < 65; i++)
		strcat(many, end);
	refuses(changed("\"ends\":[", many));
	refuses(changed("\"without_frame\":0", "\"without_frame\":-1"));
	refuses(changed("\"without_frame\":0", "\"without_frame\":8"));
	refuses(changed("\"without_frame\":0", "\"with\":0"));
}

/* The number of jansson's allocations that still succeed. */
static long left;

static void *failing(size_t bytes)
{
	return left-- > 0 ? malloc(bytes) : NULL;
}

/* Each allocation in turn is the first one that fails. */
Test(ctl_json_stacks, reports_that_it_has_no_memory)
{
	struct profile *p = written();
	int err = -ENOMEM;

	json_set_alloc_funcs(failing, free);
	for (long n = 0; err && n < 10000; n++) {
		char *text = NULL;
		size_t bytes;
		FILE *out = open_memstream(&text, &bytes);

		left = n;
		err = json_write(out, p, true);
		fclose(out);
		cr_expect(!err || err == -ENOMEM || err == -EIO);
		free(text);
	}
	cr_expect_eq(err, 0);
	profile_free(p);
}
