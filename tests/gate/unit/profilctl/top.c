/* top.c - the table of new samples, and the keys */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/elf_symbols.h"
#include "symbols/symbolize.h"
#include "profilctl/top/top_table.h"
#include "profilctl/top/top_view.h"

static struct profile *with_object(void)
{
	struct profile *p = profile_new();
	__u32 object;

	cr_assert_eq(profile_add_object(p, "/bin/a", 1, 1, -1, &object), 0);
	p->tick_ns = 10000000;
	return p;
}

Test(ctl_top, shows_only_new_samples)
{
	struct profile *last = with_object(), *now = with_object(), *p = with_object();

	profile_add_place(last, 0, 0x1000, 1, 5);
	profile_add_place(last, 0, 0x2000, 1, 7);
	profile_add_place(now, 0, 0x1000, 1, 5);
	profile_add_place(now, 0, 0x2000, 1, 9);
	profile_add_place(now, 0, 0x3000, 1, 4);
	cr_assert_eq(profile_difference(p, last, now), 0);
	cr_expect_eq(p->places.n, 2);
	cr_expect_eq(p->binned, 6);
	cr_expect_eq(places_count(&p->places, &(struct place){ .offset = 0x3000, .width = 1 }), 4);
	profile_free(last);
	profile_free(now);
	profile_free(p);
}

Test(ctl_top, shows_every_sample_at_first)
{
	struct profile *last = with_object(), *now = with_object(), *p = with_object();

	profile_add_place(now, 0, 0x1000, 1, 5);
	cr_assert_eq(profile_difference(p, last, now), 0);
	cr_expect_eq(p->binned, 5);
	profile_free(last);
	profile_free(now);
	profile_free(p);
}

/* The name of the only function of @p, whose samples are in generated code. */
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

Test(ctl_top, rereads_names_of_generated_code_on_request)
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
	symbolize_cache_renew(&cache, p, 0);
	cr_expect_str_eq(name_in(p, &cache, name, sizeof(name)), "other");
	symbolize_cache_fini(&cache);
	profile_free(p);
}

static void reopen_program(void *p, __u32 object)
{
	((struct profile *)p)->objects[object].fd = open("/proc/self/exe", O_RDONLY);
}

/* Symbols keep their file mapped, so both are let go; a file system can be unmounted then. */
Test(ctl_top, releases_files_that_were_not_used_for_a_while)
{
	struct profile *p = profile_new();
	struct symbolize_cache cache = { .reopen = reopen_program, .reader = p };
	int program = open("/proc/self/exe", O_RDONLY);
	struct symbols *symbols;
	__u32 object;

	cr_assert_eq(profile_add_object(p, "/nonexistent", 0, 0, program, &object), 0);
	cr_assert_eq(symbolize_cached(&symbols, p, object, &cache), 0);
	cr_assert_not_null(symbols);
	symbolize_cache_renew(&cache, p, cache.objects[object].used_ns);
	cr_expect_eq(cache.objects[object].symbols, symbols);
	cr_expect_eq(p->objects[object].fd, program);
	symbolize_cache_renew(&cache, p, cache.objects[object].used_ns + 1);
	cr_expect_null(cache.objects[object].symbols);
	cr_expect_eq(p->objects[object].fd, -1);
	cr_expect_lt(fcntl(program, F_GETFD), 0);
	cr_assert_eq(symbolize_cached(&symbols, p, object, &cache), 0);
	cr_expect_not_null(symbols);
	symbolize_cache_fini(&cache);
	profile_free(p);
}

static size_t with_symbols(const struct symbolize_cache *cache)
{
	size_t n = 0;

	for (size_t i = 0; i < cache->n; i++)
		n += cache->objects[i].symbols != NULL;
	return n;
}

/* However many files run in an interval. What is dropped is read again, up to a number of times. */
Test(ctl_top, keeps_the_symbols_of_a_limited_number_of_files)
{
	enum { FILES = 20, MOST = 3, READS = SYMBOLIZE_CACHE_READS_MOST * MOST };
	struct symbolize_cache cache = { .most = MOST };
	struct profile *p = profile_new();
	struct symbols *symbols;
	__u32 object;

	for (__u64 i = 0; i < FILES; i++)
		cr_assert_eq(profile_add_object(p, "/nonexistent", 0, i,
						open("/proc/self/exe", O_RDONLY), &object),
			     0);
	for (__u32 i = 0; i < READS + 5; i++) {
		cr_assert_eq(symbolize_cached(&symbols, p, i % FILES, &cache), 0);
		cr_expect_eq(symbols != NULL, i < READS, "file %u", i);
		cr_expect_leq(with_symbols(&cache), MOST);
		cr_expect_eq(with_symbols(&cache), cache.held);
	}
	symbolize_cache_renew(&cache, p, 0);
	cr_assert_eq(symbolize_cached(&symbols, p, (READS + 5) % FILES, &cache), 0);
	cr_expect_not_null(symbols, "the next interval reads them again");
	cr_assert_eq(symbolize_cached(&symbols, p, (READS + 5) % FILES, &cache), 0);
	cr_expect_eq(cache.reads, 1, "once");
	cr_expect_leq(with_symbols(&cache), MOST);
	symbolize_cache_fini(&cache);
	profile_free(p);
}

/* A running process can make its map of names anew; that of an ended one was read. */
Test(ctl_top, keeps_the_perf_map_of_a_process_until_it_has_ended)
{
	struct profile *p = profile_new();
	struct symbolize_cache cache = { 0 };
	pid_t child = fork();
	__u32 object;

	if (!child)
		pause();
	cr_assert_eq(profile_add_object(p, PROFILE_ANON, 1, 0, memfd_create("map", 0), &object), 0);
	p->objects[object].pid = child;
	symbolize_cache_renew(&cache, p, 1);
	cr_expect_geq(p->objects[object].fd, 0);
	cr_assert_eq(kill(child, SIGKILL), 0);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	symbolize_cache_renew(&cache, p, 1);
	cr_expect_eq(p->objects[object].fd, -1);
	symbolize_cache_fini(&cache);
	profile_free(p);
}

Test(ctl_top, retries_an_object_without_symbols_once_it_renews_the_cache)
{
	struct profile *p = profile_new();
	struct symbolize_cache cache = { 0 };
	struct symbols *symbols;
	int fd = memfd_create("empty", 0), program = open("/proc/self/exe", O_RDONLY);
	__u32 object;

	cr_assert_eq(profile_add_object(p, "/nonexistent/empty", 0, 0, fd, &object), 0);
	cr_assert_eq(symbolize_cached(&symbols, p, object, &cache), 0);
	cr_assert_null(symbols);
	cr_assert_eq(dup2(program, fd), fd);
	cr_assert_eq(symbolize_cached(&symbols, p, object, &cache), 0);
	cr_expect_null(symbols);
	symbolize_cache_renew(&cache, p, 0);
	cr_assert_eq(symbolize_cached(&symbols, p, object, &cache), 0);
	cr_expect_not_null(symbols);
	close(program);
	symbolize_cache_fini(&cache);
	profile_free(p);
}

/* The table of 100 functions, as text that the caller frees. */
static char *table_of(size_t columns, const char *filter)
{
	struct top_table table = { .period_ns = 1000000000, .lines = 10, .columns = columns };
	struct profile *p = with_object();
	struct top_rows rows;
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	for (__u64 i = 0; i < 100; i++)
		profile_add_place(p, 0, i * 4096, 1, i + 1);
	p->total = p->binned;
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(top_rows_init(&rows, p, TOP_BY_SAMPLES, filter), 0);
	top_write(out, p, &rows, &table);
	top_rows_fini(&rows);
	fclose(out);
	profile_free(p);
	return text;
}

Test(ctl_top, fits_the_terminal)
{
	char *text = table_of(80, NULL);
	size_t lines = 0;

	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		cr_expect_leq(strlen(line), 80, "%s", line);
		lines++;
	}
	cr_expect_eq(lines, 10);
	free(text);
}

Test(ctl_top, cuts_functions_last)
{
	static const struct {
		size_t columns;
		const char *heading;
	} cases[] = {
		{ 30, "\nself %  function\n" },
		{ 60, "\nself %      pid  command     function\n" },
		{ 80,
		  "\nself %      pid  command     function                             object\n" },
		{ 120, "\nself %   95 % of it  samples   seconds      pid  command     function" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = table_of(cases[i].columns, NULL);

		cr_expect(strstr(text, cases[i].heading), "%zu columns:\n%s", cases[i].columns,
			  text);
		cr_expect(strstr(text, "+0x63000"), "%zu columns:\n%s", cases[i].columns, text);
		free(text);
	}
}

/* A function that calls the hottest one, with few samples of its own. */
Test(ctl_top, shows_inclusive_samples_with_stacks)
{
	struct top_table table = { .period_ns = 1000000000, .lines = 10, .columns = 80 };
	struct profile *p = with_object();
	struct top_rows rows;
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	__u32 node;

	profile_add_place(p, 0, 0x1000, 1, 10);
	profile_add_place(p, 0, 0x5000, 1, 90);
	p->total = p->binned;
	cr_assert_eq(call_tree_add(&p->calls, CALL_WHOLE, 0, 0x1000, &node), 0);
	p->calls.node[node].count = 10;
	cr_assert_eq(call_tree_add(&p->calls, CALL_WHOLE, 0, 0x1002, &node), 0);
	cr_assert_eq(call_tree_add(&p->calls, node, 0, 0x5000, &node), 0);
	p->calls.node[node].count = 90;
	cr_assert_eq(symbolize(p, NULL), 0);
	cr_assert_eq(top_rows_init(&rows, p, TOP_BY_TOTAL, NULL), 0);
	cr_assert_eq(rows.n, 2);
	cr_expect_eq(rows.row[0].total, 100);
	cr_expect_eq(rows.row[0].function->samples, 10);
	cr_expect_eq(rows.row[1].total, 90);
	top_write(out, p, &rows, &table);
	fclose(out);
	cr_expect(strstr(text, "\nself %  incl %  "), "%s", text);
	cr_expect(strstr(text, "\n 10.00  100.00  "), "%s", text);
	top_rows_fini(&rows);
	profile_free(p);
	free(text);
}

/* The longest names are those of templates: what is left out is at both of their ends. */
Test(ctl_top, shortens_names_of_any_length)
{
	struct top_table table = { .period_ns = 1000000000, .lines = 10, .columns = 80 };
	struct profile *p = with_object();
	char name[2000] = "void std::sort<std::", *text = NULL;
	struct function f = { .samples = 1, .size = 16, .name = name };
	struct top_rows rows;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	for (size_t i = strlen(name); i < sizeof(name) - 20; i++)
		name[i] = 'x';
	strcat(name, ">(int*, deepest)");
	f.name = strdup(name);
	cr_assert_eq(profile_add_place(p, 0, 0, 1, 1), 0);
	cr_assert_eq(profile_add_function(p, &f), 0);
	p->total = p->binned;
	cr_assert_eq(top_rows_init(&rows, p, TOP_BY_SAMPLES, "deepest"), 0);
	cr_expect_eq(rows.n, 1);
	top_write(out, p, &rows, &table);
	fclose(out);
	cr_expect(strstr(text, "  std::sort<...>  "), "%s", text);
	top_rows_fini(&rows);
	profile_free(p);
	free(text);
}

Test(ctl_top, filters_by_any_name)
{
	char *text = table_of(80, "0x62");

	cr_expect(strstr(text, "+0x62000"), "%s", text);
	cr_expect_null(strstr(text, "+0x63000"), "%s", text);
	free(text);
	text = table_of(80, "nothing");
	cr_expect_null(strstr(text, "+0x"), "%s", text);
	free(text);
}

static enum top_answer press(struct top_view *v, const char *keys)
{
	enum top_answer last = TOP_NOTHING;

	for (; *keys; keys++)
		last = top_view_key(v, *keys == '\n' ? TOP_KEY_ENTER : *keys, 10);
	return last;
}

Test(ctl_top, keys_change_the_view)
{
	struct top_view v = { 0 };
	char note[128];

	cr_expect_eq(press(&v, "s"), TOP_REDRAW);
	cr_expect_eq(v.order, TOP_BY_FUNCTION);
	cr_expect_eq(press(&v, "sss"), TOP_REDRAW);
	cr_expect_eq(v.order, TOP_BY_SAMPLES);
	press(&v, "/quit\n"); /* letters are no keys there */
	cr_expect_str_eq(v.filter, "quit");
	top_view_note(&v, note, sizeof(note));
	cr_expect_str_eq(note, "filter: quit");
	cr_expect_eq(top_view_key(&v, TOP_KEY_ESCAPE, 10), TOP_REDRAW);
	cr_expect_str_empty(v.filter);
	press(&v, "jjk");
	cr_expect_eq(v.cursor, 1);
	top_view_key(&v, TOP_KEY_PAGE_UP, 10);
	cr_expect_eq(v.cursor, 0);
	press(&v, "p");
	cr_expect(v.paused);
	press(&v, " ");
	cr_expect_not(v.paused);
	cr_expect_eq(press(&v, "\n"), TOP_ZOOM);
	cr_expect_eq(press(&v, "c"), TOP_NOTHING, "there are no stacks");
	v.stacks = true;
	cr_expect_eq(press(&v, "c"), TOP_CALLS);
	cr_expect_eq(v.page, TOP_CALLERS);
	cr_expect_eq(press(&v, "t"), TOP_NOTHING, "not from another page");
	cr_expect_eq(press(&v, "qt"), TOP_CALLS);
	cr_expect_eq(v.page, TOP_TREE);
	press(&v, "q");
	press(&v, "ssss");
	cr_expect_eq(v.order, TOP_BY_TOTAL);
	press(&v, "s");
	cr_expect_eq(press(&v, "?"), TOP_REDRAW);
	cr_expect_eq(v.page, TOP_HELP);
	press(&v, "q");
	for (const char *key = "qh? s/jx\n"; *key; key++) {
		const char one[] = { *key, '\0' };
		enum top_order order = v.order;

		press(&v, "h");
		cr_expect_eq(v.page, TOP_HELP);
		cr_expect_eq(press(&v, one), TOP_REDRAW);
		cr_expect_eq(v.page, TOP_TABLE, "key %d closes the help", *key);
		cr_expect_eq(v.order, order, "and does nothing else");
	}
	press(&v, "h");
	cr_expect_eq(press(&v, "q"), TOP_REDRAW, "q leaves the page first");
	cr_expect_eq(press(&v, "q"), TOP_QUIT);
	cr_expect_eq(top_view_key(&v, TOP_KEY_ESCAPE, 10), TOP_NOTHING);
}
