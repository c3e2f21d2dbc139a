/* pclntab.c - Go's table of functions, in each of its layouts */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf/go_pclntab.h"

#define TEXT 0x401000u

/* A table under construction, with two functions of 64 and 32 bytes. */
struct table {
	unsigned char bytes[512];
	size_t n;
};

static void put(struct table *t, __u64 value, size_t bytes)
{
	memcpy(t->bytes + t->n, &value, bytes);
	t->n += bytes;
}

static void put_at(struct table *t, size_t at, __u64 value, size_t bytes)
{
	memcpy(t->bytes + at, &value, bytes);
}

static void put_header(struct table *t, __u32 magic)
{
	put(t, magic, 4);
	put(t, 0x08010000, 4); /* instructions of a byte, pointers of eight */
}

static void put_name(struct table *t, const char *name)
{
	memcpy(t->bytes + t->n, name, strlen(name) + 1);
	t->n += strlen(name) + 1;
}

/* Go 1.2: all offsets are from the start of the table. */
static void make_1_2(struct table *t)
{
	size_t pairs;

	put_header(t, 0xfffffffb);
	put(t, 2, 8);
	pairs = t->n;
	t->n += 5 * 8 + 4;
	for (size_t i = 0; i < 2; i++) {
		put_at(t, pairs + 16 * i, TEXT + 64 * i, 8);
		put_at(t, pairs + 16 * i + 8, t->n, 8);
		put(t, TEXT + 64 * i, 8);
		put(t, t->n + 4, 4);
		put_name(t, i ? "main.second" : "main.first");
	}
	put_at(t, pairs + 32, TEXT + 96, 8);
}

/* Go 1.16: the names come first; offsets are from the function table. */
static void make_1_16(struct table *t)
{
	size_t names, functions;

	put_header(t, 0xfffffffa);
	put(t, 2, 8);
	t->n += 6 * 8;
	names = t->n;
	put_name(t, "main.first");
	put_name(t, "main.second");
	functions = t->n;
	t->n += 5 * 8;
	for (size_t i = 0; i < 2; i++) {
		put_at(t, functions + 16 * i, TEXT + 64 * i, 8);
		put_at(t, functions + 16 * i + 8, t->n - functions, 8);
		put(t, TEXT + 64 * i, 8);
		put(t, i * sizeof("main.first"), 4);
	}
	put_at(t, functions + 32, TEXT + 96, 8);
	put_at(t, 8 + 2 * 8, names, 8);
	put_at(t, 8 + 6 * 8, functions, 8);
}

/* Go 1.18 and 1.20: the start of the text is in the header; all other numbers have four bytes. */
static void make_1_18(struct table *t, __u32 magic, __u64 text)
{
	size_t names, functions;

	put_header(t, magic);
	put(t, 2, 8);
	put(t, 0, 8);
	put(t, text, 8);
	t->n += 5 * 8;
	names = t->n;
	put_name(t, "main.first");
	put_name(t, "main.second");
	functions = t->n;
	t->n += 5 * 4;
	for (size_t i = 0; i < 2; i++) {
		put_at(t, functions + 8 * i, 64 * i, 4);
		put_at(t, functions + 8 * i + 4, t->n - functions, 4);
		put(t, 64 * i, 4);
		put(t, i * sizeof("main.first"), 4);
	}
	put_at(t, functions + 16, 96, 4);
	put_at(t, 8 + 3 * 8, names, 8);
	put_at(t, 8 + 7 * 8, functions, 8);
}

static void has_both(const struct table *t, __u64 text)
{
	struct go_functions f;

	cr_assert_eq(go_pclntab_parse(&f, t->bytes, t->n, text), 0);
	cr_assert_eq(f.n, 2u);
	cr_expect_str_eq(f.function[0].name, "main.first");
	cr_expect_eq(f.function[0].start, TEXT);
	cr_expect_eq(f.function[0].end, TEXT + 64);
	cr_expect_str_eq(f.function[1].name, "main.second");
	cr_expect_eq(f.function[1].start, TEXT + 64);
	cr_expect_eq(f.function[1].end, TEXT + 96);
	go_functions_fini(&f);
}

Test(ctl_pclntab, reads_go_1_2)
{
	struct table t = { .n = 0 };

	make_1_2(&t);
	has_both(&t, 0);
}

Test(ctl_pclntab, reads_go_1_16)
{
	struct table t = { .n = 0 };

	make_1_16(&t);
	has_both(&t, 0);
}

Test(ctl_pclntab, reads_go_1_18)
{
	struct table t = { .n = 0 };

	make_1_18(&t, 0xfffffff0, TEXT);
	has_both(&t, 0);
}

Test(ctl_pclntab, reads_go_1_20)
{
	struct table t = { .n = 0 };

	make_1_18(&t, 0xfffffff1, TEXT);
	has_both(&t, 0);
}

/* In a position-independent program the loader fills in the start of the text. */
Test(ctl_pclntab, accepts_the_start_of_the_text_from_its_caller)
{
	struct table t = { .n = 0 };

	make_1_18(&t, 0xfffffff1, 0);
	has_both(&t, TEXT);
}

Test(ctl_pclntab, refuses_an_unknown_version)
{
	struct table t = { .n = 0 };
	struct go_functions f;

	make_1_18(&t, 0xfffffff3, TEXT);
	cr_expect_lt(go_pclntab_parse(&f, t.bytes, t.n, 0), 0);
}

/* No byte beyond the table is read, and every name is terminated. */
static void survives(void (*make)(struct table *t))
{
	for (int i = 0; i < 20000; i++) {
		struct table t = { .n = 0 };
		struct go_functions f;
		unsigned char *own;
		size_t n;

		make(&t);
		for (int k = 0; k < 3; k++)
			t.bytes[(size_t)rand() % t.n] = (unsigned char)rand();
		n = i % 4 ? t.n : (size_t)rand() % t.n;
		own = malloc(n + !n); /* its end is the sanitizer's */
		memcpy(own, t.bytes, n);
		if (!go_pclntab_parse(&f, own, n, 0)) {
			for (size_t k = 0; k < f.n; k++)
				cr_assert(memchr(f.function[k].name, 0,
						 (size_t)((char *)own + n - f.function[k].name)));
			go_functions_fini(&f);
		}
		free(own);
	}
}

static void make_1_20(struct table *t)
{
	make_1_18(t, 0xfffffff1, TEXT);
}

Test(ctl_pclntab, survives_damage)
{
	srand(1);
	survives(make_1_2);
	survives(make_1_16);
	survives(make_1_20);
}
