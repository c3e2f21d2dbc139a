/* escape.c - no writer lets a name end a line, a frame, a string or a tag of its format */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "formats/format.h"
#include "profilctl/output/output.h"
#include "profile/profile.h"

/* Each character that ends something in one of the formats, and a byte that is not UTF-8. */
#define SPECIAL "a;b\"c<d>&e\\f\ng\033[2Jh\xff"

/* As it is to be where control characters mean something, and in folded stacks. */
#define CLEAN "a;b\"c<d>&e\\f g [2Jh\xef\xbf\xbd"
#define FRAME "a:b\"c<d>&e\\f g [2Jh\xef\xbf\xbd"
#define VALID "a;b\"c<d>&e\\f\ng\033[2Jh\xef\xbf\xbd"
#define SHOWN "a;b\"c<d>&e\\f g [2Jh?"
#define MARKUP "a;b&#34;c&#60;d&#62;&#38;e\\f g [2Jh&#xfffd;"

static struct profile *special_profile(void)
{
	struct profile *p = profile_new();
	struct function f = { .name = strdup(SPECIAL), .size = 1, .samples = 1 };

	p->command = strdup(SPECIAL);
	cr_assert_eq(profile_add_object(p, "/bin/" SPECIAL, 1, 1, -1, &f.object), 0);
	cr_assert_eq(profile_add_function(p, &f), 0);
	cr_assert_eq(profile_add_place(p, f.object, 0, 1, 1), 0);
	p->total = p->binned;
	return p;
}

/* What @format's writer makes of it, which the caller frees. */
static char *written(const char *format, size_t *n)
{
	struct profile *p = special_profile();
	char *text = NULL;
	FILE *out = open_memstream(&text, n);

	cr_assert(out);
	if (!strcmp(format, "text"))
		cr_assert_eq(text_write(out, p,
					&(struct text_options){ .by = ROWS_FUNCTION,
								.full_names = true }),
			     0);
	else
		cr_assert_eq(format_find(format)->write(out, p), 0);
	fclose(out);
	profile_free(p);
	return text;
}

static void has(const char *format, const char *text, const char *part)
{
	cr_expect(strstr(text, part), "%s has no %s: %s", format, part, text);
}

static void has_not(const char *format, const char *text, const char *part)
{
	cr_expect(!strstr(text, part), "%s has %s: %s", format, part, text);
}

Test(escape, folded_has_one_line_of_three_frames)
{
	size_t n;
	char *text = written("folded", &n);

	cr_expect_str_eq(text, FRAME ";" FRAME ";" FRAME " 1\n");
	free(text);
}

Test(escape, callgrind_has_each_name_in_a_line)
{
	size_t n;
	char *text = written("callgrind", &n);

	has("callgrind", text, "\ncmd: " CLEAN "\n");
	has("callgrind", text, "\nob=/bin/" CLEAN "\n");
	has("callgrind", text, "\nfn=" CLEAN "\n");
	free(text);
}

Test(escape, text_has_no_character_that_controls_a_terminal)
{
	size_t n;
	char *text = written("text", &n);

	has("text", text, "  " SHOWN "  ");
	has_not("text", text, "\033");
	has_not("text", text, "\ng");
	free(text);
}

Test(escape, json_has_each_name_as_a_string)
{
	size_t n;
	char *text = written("json", &n);
	json_t *root = json_loads(text, 0, NULL), *function;

	cr_assert(root, "no JSON: %s", text);
	function = json_array_get(json_object_get(root, "functions"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(root, "command")), VALID);
	cr_expect_str_eq(json_string_value(json_object_get(function, "name")), VALID);
	cr_expect_str_eq(json_string_value(json_object_get(function, "object")), "/bin/" VALID);
	json_decref(root);
	free(text);
}

Test(escape, speedscope_has_each_name_as_a_string)
{
	size_t n;
	char *text = written("speedscope", &n);
	json_t *root = json_loads(text, 0, NULL), *frame;

	cr_assert(root, "no JSON: %s", text);
	frame = json_array_get(json_object_get(json_object_get(root, "shared"), "frames"), 0);
	cr_expect_str_eq(json_string_value(json_object_get(root, "name")), VALID);
	cr_expect_str_eq(json_string_value(json_object_get(frame, "name")), VALID);
	cr_expect_str_eq(json_string_value(json_object_get(frame, "file")), "/bin/" VALID);
	json_decref(root);
	free(text);
}

/* The page has <wbr> behind some characters, which are no part of a name. */
Test(escape, html_has_no_tag_and_no_attribute_of_a_name)
{
	size_t n, to = 0;
	char *text = written("html", &n);

	has("html", text, "=\"" MARKUP "\"");
	has("html", text, "=\"/bin/" MARKUP "\"");
	for (size_t i = 0; i < n; i++) {
		i += strncmp(text + i, "<wbr>", 5) ? 0 : 5;
		text[to++] = text[i];
	}
	text[to] = '\0';
	has("html", text, ">" MARKUP "<");
	has_not("html", text, "c<d");
	has_not("html", text, "b\"c");
	has_not("html", text, "&e");
	free(text);
}

Test(escape, pprof_has_names_of_utf8_without_control_characters)
{
	char *text = NULL;
	size_t n, bytes;
	char *packed = written("pprof", &n);

	cr_assert_eq(gzip_read(&text, &bytes, packed, n, 1 << 20), 0);
	cr_expect(memmem(text, bytes, CLEAN, strlen(CLEAN)));
	cr_expect(memmem(text, bytes, "/bin/" CLEAN, strlen("/bin/" CLEAN)));
	cr_expect(!memmem(text, bytes, "\033[2J", 4));
	free(text);
	free(packed);
}
