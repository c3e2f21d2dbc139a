/* stacks.c - the functions of stacks, their ends, and the flame tree */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/find_function.h"
#include "analysis/function_rows.h"
#include "profile/each_stack.h"
#include "profile/flame_tree.h"
#include "profile/stack_ends.h"
#include "symbols/dwarf_lines.h"
#include "formats/format.h"
#include "profilctl/top/top_table.h"
#include "symbols/symbolize.h"
#include "symbols/symbolize_calls.h"

/* Adds a frame below @parent. */
static __u32 below(struct profile *p, __u32 parent, __u32 object, __u64 offset, __u64 count)
{
	__u32 index;

	cr_assert_eq(call_tree_add(&p->calls, parent, object, offset, &index), 0);
	p->calls.node[index].count += count;
	return index;
}

static __u32 object_of(struct profile *p, const char *path, int fd)
{
	__u32 index;

	cr_assert_eq(profile_add_object(p, path, 1, fd >= 0 ? 0 : p->nobjects + 1, fd, &index), 0);
	return index;
}

static const char *name_at(const struct profile *p, __u32 node)
{
	return p->calls.frame[p->calls.node[node].frame].name;
}

Test(symbolize_calls, assigns_a_return_address_to_the_calling_function)
{
	struct profile *p = profile_new();
	int fd = memfd_create("map", 0);
	__u32 object, caller, leaf;

	cr_assert_gt(dprintf(fd, "1000 10 callee\n2000 10 caller\n2010 10 next\n"), 0);
	object = object_of(p, PROFILE_ANON, fd);
	caller = below(p, CALL_WHOLE, object, 0x2010, 0); /* the call is the last of caller */
	below(p, caller, object, 0x1004, 3);
	leaf = below(p, CALL_WHOLE, object, 0x2011, 5);
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_expect_str_eq(name_at(p, caller), "caller");
	cr_expect_str_eq(name_at(p, caller + 1), "callee");
	cr_expect_str_eq(name_at(p, leaf), "next");
	cr_expect_eq(call_tree_sum(&p->calls), 8);
	profile_free(p);
}

/* A compiler at run time makes a function several times; so does that of another process. */
static struct profile *with_generated(void)
{
	struct profile *p = profile_new();

	for (int i = 0; i < 2; i++) {
		int fd = memfd_create("map", 0);
		__u32 object;

		cr_assert_gt(dprintf(fd, "1000 10 sort\n2000 10 main\n3000 10 sort\n"), 0);
		object = object_of(p, PROFILE_ANON, fd);
		p->objects[object].pid = 4711 + i;
		below(p, below(p, CALL_WHOLE, object, 0x2008, 0), object, 0x1004, 3);
		below(p, below(p, CALL_WHOLE, object, 0x2008, 0), object, 0x3004, 4);
		cr_assert_eq(profile_add_place(p, object, 0x1004, 1, 3), 0);
		cr_assert_eq(profile_add_place(p, object, 0x3004, 1, 4), 0);
	}
	p->total = 14;
	cr_assert_eq(symbolize(p, NULL), 0);
	return p;
}

Test(symbolize_calls, merges_instances_of_generated_functions_into_one_frame)
{
	struct profile *p = with_generated();

	cr_expect_eq(p->calls.nframes, 4, "two for each process");
	profile_free(p);
}

Test(function_rows, merges_instances_of_generated_functions)
{
	struct profile *p = with_generated();
	struct function_rows rows;
	struct top_rows top;

	cr_expect_eq(p->nfunctions, 4, "each instance keeps its place");
	cr_assert_eq(function_rows_init(&rows, p), 0);
	cr_assert_eq(rows.n, 2);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(rows.row[i].samples, 7);
	cr_expect_eq(rows.row[0].function, &p->functions[0]);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(rows.row[rows.of[i]].function->object, p->functions[i].object);
	function_rows_fini(&rows);
	cr_assert_eq(top_rows_init(&top, p, TOP_BY_TOTAL, NULL), 0);
	cr_assert_eq(top.n, 2);
	cr_expect_eq(top.row[0].samples, 7);
	cr_expect_eq(top.row[0].total, 7);
	top_rows_fini(&top);
	profile_free(p);
}

Test(symbolize_calls, merges_addresses_of_a_function_into_one_frame)
{
	struct profile *p = profile_new();
	int fd = memfd_create("map", 0);
	__u32 object;

	cr_assert_gt(dprintf(fd, "1000 100 only\n"), 0);
	object = object_of(p, PROFILE_ANON, fd);
	below(p, below(p, CALL_WHOLE, object, 0x1010, 0), object, 0x1020, 1);
	below(p, CALL_DEEP, object, 0x1030, 2);
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_expect_eq(p->calls.nframes, 1);
	cr_expect_eq(p->calls.n, CALL_ROOTS + 3);
	cr_expect_eq(call_tree_samples(&p->calls, CALL_DEEP), 2);
	profile_free(p);
}

#define INLINED_AT "ctl_stacks_inner"
#include "inlined.h"

/* Where inlined_here() is, in this unit and in another. */
extern const char ctl_stacks_inner[], ctl_stacks_outer[];

static __attribute__((noinline, noipa)) int has_inlined(int n)
{
	return 3 * inlined_here(2 * n);
}

struct place_search {
	ElfW(Addr) address;
	__u64 offset;
};

/* The file offset of an address. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place_search *s = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		ElfW(Addr) start = info->dlpi_addr + h->p_vaddr;

		if (h->p_type != PT_LOAD || s->address < start || s->address >= start + h->p_memsz)
			continue;
		s->offset = s->address - start + h->p_offset;
		return 1;
	}
	return 0;
}

static __u64 offset_of(const void *address)
{
	struct place_search s = { .address = (ElfW(Addr))address };

	cr_assert(dl_iterate_phdr(find_offset, &s));
	return s.offset;
}

/* A profile whose object 0 is the program of the tests, with debug information. */
static struct profile *of_this_program(void)
{
	struct profile *p = profile_new();
	struct lines *lines = NULL;
	struct stat st;
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	__u32 object;

	cr_assert_eq(has_inlined(1), 9);
	cr_assert_eq(ctl_stacks_alias(1), 20);
	cr_assert_gt(n, 0);
	path[n] = '\0';
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(
		profile_add_object(p, path, st.st_dev, st.st_ino, open(path, O_RDONLY), &object),
		0);
	if (lines_open(&lines, &p->objects[object]) < 0)
		cr_skip_test("the tests have no debug information");
	lines_close(lines);
	return p;
}

Test(symbolize_calls, makes_nodes_of_inlined_functions)
{
	struct profile *p = of_this_program();
	__u32 node = below(p, CALL_WHOLE, 0, offset_of(ctl_stacks_inner), 7);

	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(p->calls.n, CALL_ROOTS + 2);
	cr_expect_str_eq(name_at(p, node), "has_inlined");
	cr_expect_str_eq(name_at(p, node + 1), "inlined_here");
	cr_expect_not(call_tree_is_inlined(&p->calls, node));
	cr_expect(call_tree_is_inlined(&p->calls, node + 1));
	cr_expect_eq(p->calls.node[node + 1].count, 7);
	profile_free(p);
}

Test(symbolize_calls, makes_one_frame_of_a_function_that_two_units_inline)
{
	struct profile *p = of_this_program();

	below(p, CALL_WHOLE, 0, offset_of(ctl_stacks_inner), 1);
	below(p, CALL_WHOLE, 0, offset_of(ctl_stacks_outer), 1);
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(p->calls.n, CALL_ROOTS + 4);
	cr_expect_eq(p->calls.nframes, 3, "%zu frames", p->calls.nframes);
	cr_expect_str_eq(name_at(p, CALL_ROOTS + 1), "inlined_here");
	cr_expect_eq(p->calls.node[CALL_ROOTS + 1].frame, p->calls.node[CALL_ROOTS + 3].frame);
	profile_free(p);
}

Test(matches, finds_the_alias_of_a_frame_which_has_no_size)
{
	struct profile *p = of_this_program();
	struct function f = { .name = strdup("other"), .offset = offset_of(ctl_stacks_elsewhere) };
	struct matches m;

	cr_assert_eq(profile_add_function(p, &f), 0);
	f.name = strdup("not_ctl_stacks_alias");
	f.offset += 4096;
	cr_assert_eq(profile_add_function(p, &f), 0);
	cr_assert_eq(matches_find(&m, p, "ctl_stacks_alias"), 0);
	cr_assert_eq(m.n, 1);
	cr_expect_str_eq(m.function[0]->name, "other");
	matches_fini(&m);
	profile_free(p);
}

/* The text in callgrind's format, which the caller frees. */
static char *callgrind_of(const struct profile *p)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	cr_assert_not_null(out);
	cr_assert_eq(callgrind_write(out, p), 0);
	cr_assert_eq(fclose(out), 0);
	return text;
}

/* Says whether @function is in @text, directly after @file. */
static bool is_in_file(const char *text, const char *function, const char *file)
{
	const char *at = strstr(text, function);

	cr_assert_not_null(at, "%s", text);
	return (size_t)(at - text) > strlen(file) &&
	       !strncmp(at - strlen(file), file, strlen(file));
}

Test(callgrind, names_the_file_of_a_function_and_not_of_what_is_inlined)
{
	struct profile *p = of_this_program();
	struct symbolize_cache cache = { 0 };
	__u64 at = offset_of(ctl_stacks_outer);
	char *text;

	p->command = strdup("tests");
	cr_assert_eq(profile_add_place(p, 0, at, 1, 4), 0);
	p->total = p->binned;
	cr_assert_eq(symbolize(p, NULL), 0);
	text = callgrind_of(p);
	cr_expect(is_in_file(text, "fn=ctl_stacks_elsewhere", "fl=???\n"), "%s", text);
	cr_expect(strstr(text, "/inlined.h\n0x"), "%s", text);
	free(text);

	below(p, CALL_WHOLE, 0, at, 4);
	cr_assert_eq(symbolize_calls(p, &cache), 0);
	symbolize_cache_fini(&cache);
	text = callgrind_of(p);
	cr_expect(is_in_file(text, "\nfn=ctl_stacks_elsewhere", "fl=???"), "%s", text);
	cr_expect(is_in_file(text, "\nfn=inlined_here", "/inlined.h"), "%s", text);
	free(text);
	profile_free(p);
}

/* A frame by name, for profiles that are not symbolized. */
static void name(struct profile *p, __u32 node, const char *name)
{
	struct call_frame f = { .name = strdup(name),
				.object = p->calls.node[node].object,
				.offset = p->calls.node[node].offset };

	cr_assert_eq(call_tree_add_frame(&p->calls, &f, &p->calls.node[node].frame), 0);
}

/*
 * main calls work (10 samples); work below a stack that was cut in a library has 5, and an
 * expression has 1; one sample is in no mapping, two have no stack, two are lost.
 */
static struct profile *with_stacks(const char *folder)
{
	struct profile *p = profile_new();
	char path[64];
	__u32 node;

	snprintf(path, sizeof(path), "%s/program", folder);
	object_of(p, path, -1);
	snprintf(path, sizeof(path), "%s/library", folder);
	object_of(p, path, -1);
	node = below(p, CALL_WHOLE, 0, 0x100, 0);
	name(p, node, "main");
	name(p, below(p, node, 0, 0x200, 10), "work");
	node = below(p, CALL_NO_TABLE, 1, 0x300, 0);
	name(p, node, "cut");
	name(p, below(p, node, 0, 0x200, 5), "work");
	name(p, below(p, CALL_BEYOND, 1, 0x400, 1), "plt");
	p->calls.node[CALL_NOWHERE].count = 1;
	p->total = 21;
	p->lost = 2;
	return p;
}

Test(stack_ends, names_the_reason_and_place_of_cuts)
{
	struct profile *p = with_stacks("/a");
	struct stack_ends e;

	cr_assert_eq(stack_ends_init(&e, p), 0);
	cr_expect_eq(e.sum, 17);
	cr_expect_eq(e.ended[CALL_WHOLE], 10);
	cr_expect_eq(e.ended[CALL_NO_TABLE], 5);
	cr_expect_eq(e.ended[CALL_NOWHERE], 1);
	cr_expect_eq(e.without, 2);
	cr_assert_eq(e.ncuts, 2);
	cr_expect_eq(e.cut[0].end, CALL_NO_TABLE, "the most samples come first");
	cr_expect_eq(e.cut[0].object, 1, "the outermost frame is to blame, not the innermost");
	cr_expect_eq(e.cut[1].end, CALL_BEYOND);
	cr_expect_float_eq(stack_ends_percent(&e, e.ended[CALL_WHOLE]), 100 * 10.0 / 17, 1e-9);
	stack_ends_fini(&e);
	profile_free(p);
}

/* Code whose rules found no room needs no other build. */
Test(stack_ends, names_the_remedy_for_rules_without_room)
{
	struct profile *p = profile_new();
	struct stack_ends e;

	object_of(p, "/a/program", -1);
	name(p, below(p, CALL_NO_ROOM, 0, 0x100, 7), "cut");
	p->total = 7;
	cr_assert_eq(stack_ends_init(&e, p), 0);
	cr_assert_eq(e.ncuts, 1);
	cr_expect_eq(e.cut[0].end, CALL_NO_ROOM);
	cr_expect_str_eq(stack_end_key(CALL_NO_ROOM), "no_room");
	cr_expect(strstr(stack_end_cure(CALL_NO_ROOM, &p->objects[0]), "fewer programs"));
	cr_expect_not(strstr(stack_end_cure(CALL_NO_ROOM, &p->objects[0]), "build it"));
	stack_ends_fini(&e);
	profile_free(p);
}

Test(stack_ends, names_the_remedy_of_the_runtime_at_hand)
{
	static const struct {
		const char *path, *runtime;
		enum call_root end;
		const char *cure; /* a part; NULL: none */
	} cases[] = {
		{ "[anon]", "java", CALL_NO_TABLE, "java -XX:+PreserveFramePointer" },
		{ "[anon]", "java", CALL_NOWHERE, "java -XX:+PreserveFramePointer" },
		{ "[anon]", "python", CALL_NO_TABLE, "-fno-omit-frame-pointer" },
		{ "[anon]", "node", CALL_NO_TABLE, NULL }, /* its code keeps frame pointers */
		{ "[anon]", "dotnet", CALL_NOWHERE, NULL },
		{ "[anon]", "", CALL_NO_TABLE, "its compiler must keep frame pointers" },
		{ "[anon]", "java", CALL_BEYOND, NULL },
		{ "/a", "", CALL_NO_TABLE, "-fasynchronous-unwind-tables" },
		{ "/a", "", CALL_NOWHERE, NULL }, /* it has rules: rebuilding does not help */
		{ "[vdso]", "", CALL_NO_TABLE, NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile *p = profile_new();
		__u32 object;
		const char *cure;

		cr_assert_eq(profile_add_object(p, cases[i].path, 0, 0, -1, &object), 0);
		strcpy(p->objects[object].unnamed, cases[i].runtime);
		cure = stack_end_cure(cases[i].end, &p->objects[object]);
		cr_expect_eq(!cure, !cases[i].cure, "case %zu: %s", i, cure ? cure : "none");
		if (cure && cases[i].cure)
			cr_expect(strstr(cure, cases[i].cure), "case %zu: %s", i, cure);
		profile_free(p);
	}
}

Test(stack_ends, sums_up_in_a_line)
{
	struct profile *p = with_stacks("/a");
	char text[1024], small[32];

	stack_ends_summary(text, sizeof(text), p);
	cr_expect_eq(strncmp(text,
			     "58.82 % of the stacks reach the start of their thread; 29.41 % cut "
			     "in library: no unwind rules",
			     90),
		     0, "%s", text);
	cr_expect(strstr(text, "; 5.88 % cut in library: an unwind rule that is an expression"),
		  "%s", text);
	cr_expect(strstr(text, "; 2 samples have no stack"), "%s", text);
	cr_expect_eq(strlen(stack_ends_summary(small, sizeof(small), p)), sizeof(small) - 1);
	profile_free(p);
}

struct listed {
	const struct profile *profile;
	char text[1024];
	__u64 sum;
};

static int list(void *arg, const struct stack *s)
{
	struct listed *l = arg;
	char frame[64];

	for (size_t i = 0; i < s->n; i++) {
		strcat(l->text, i ? "<" : "");
		strcat(l->text, stack_frame_name(l->profile, s->frame[i], frame, sizeof(frame)));
	}
	snprintf(frame, sizeof(frame), " %llu\n", s->samples);
	strcat(l->text, frame);
	l->sum += s->samples;
	return 0;
}

Test(each_stack, adds_up_to_all_samples)
{
	struct profile *p = with_stacks("/a");
	struct listed l = { .profile = p };

	cr_assert_eq(each_stack(p, list, &l), 0);
	cr_expect_eq(l.sum, 21);
	cr_expect_str_eq(l.text, "[unmatched] 1\n"
				 "work<main 10\n"
				 "work<cut<[cut: no unwind rules] 5\n"
				 "plt<[cut: unwind expression] 1\n"
				 "[no stack] 2\n"
				 "[lost] 2\n");
	profile_free(p);
}

/* Two samples are in no mapping, one of which the tree has; another one has no stack. */
Test(each_stack, adds_up_over_intervals_by_what_samples_lack)
{
	struct profile *p = with_stacks("/a");
	struct listed l = { .profile = p };

	p->unmatched = 2;
	cr_assert_eq(each_stack(p, list, &l), 0);
	cr_expect_eq(l.sum, 21);
	cr_expect(strstr(l.text, "\n[unmatched] 1\n[no stack] 1\n[lost] 2\n"), "%s", l.text);
	profile_free(p);
}

static int stop(void *arg, const struct stack *s)
{
	return ++*(int *)arg == 2 ? -7 : 0;
}

Test(each_stack, ends_with_what_the_function_returns)
{
	struct profile *p = with_stacks("/a");
	int calls = 0;

	cr_expect_eq(each_stack(p, stop, &calls), -7);
	cr_expect_eq(calls, 2);
	profile_free(p);
}

/* The node of that name below @parent. */
static __u32 flame(const struct flame_tree *t, __u32 parent, const char *name)
{
	for (__u32 i = CALL_ROOTS; i < t->tree.n; i++) {
		const struct call_node *n = &t->tree.node[i];

		if (n->parent == parent && !strcmp(t->frame[n->offset].name, name))
			return i;
	}
	cr_assert_fail("no %s", name);
	return 0;
}

Test(flame_tree, joins_two_builds_by_name)
{
	struct profile *a = with_stacks("/a"), *b = with_stacks("/b");
	struct flame_tree t;
	__u32 at;

	below(b, below(b, CALL_WHOLE, 0, 0x100, 0), 0, 0x200, 10);
	b->total += 10;
	cr_assert_eq(flame_tree_init(&t, a, b), 0);
	cr_expect_eq(t.total[0][CALL_WHOLE], 21);
	cr_expect_eq(t.total[1][CALL_WHOLE], 31);
	at = flame(&t, CALL_WHOLE, "main");
	cr_expect_eq(t.total[0][at], 10);
	cr_expect_eq(t.total[1][at], 20);
	cr_expect_eq(t.self[1][at], 0);
	at = flame(&t, at, "work");
	cr_expect_eq(t.self[1][at], 20);
	cr_expect_float_eq(flame_tree_width(&t, at), (10.0 / 21 + 20.0 / 31) / 2, 1e-9);
	at = flame(&t, flame(&t, CALL_WHOLE, "[cut: no unwind rules]"), "cut");
	cr_expect_eq(t.total[0][at], 5);
	flame_tree_fini(&t);
	profile_free(a);
	profile_free(b);
}

Test(flame_tree, has_children_in_order_of_width)
{
	struct profile *p = with_stacks("/a");
	__u32 *order = NULL, *first = NULL;
	struct flame_tree t;

	cr_assert_eq(flame_tree_init(&t, p, NULL), 0);
	cr_assert_eq(flame_tree_order(&t, &order, &first), 0);
	cr_assert_eq(first[CALL_WHOLE + 1] - first[CALL_WHOLE], 6);
	for (__u32 i = first[CALL_WHOLE] + 1; i < first[CALL_WHOLE + 1]; i++)
		cr_expect_geq(t.total[0][order[i - 1]], t.total[0][order[i]]);
	cr_expect_eq(order[first[CALL_WHOLE]], flame(&t, CALL_WHOLE, "main"));
	free(order);
	free(first);
	flame_tree_fini(&t);
	profile_free(p);
}
