/* markup.c - the page's text, attributes and JSON have no character that ends them */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/page/page.h"

#define SPECIAL "a\"b'c<d>&e"

Test(markup, attributes_are_escaped)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	cr_assert(f);
	page_attribute(f, SPECIAL, 100);
	fclose(f);
	cr_expect_str_eq(text, "a&#34;b'c&#60;d&#62;&#38;e");
	free(text);
}

Test(markup, text_is_escaped)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	cr_assert(f);
	page_text(f, SPECIAL);
	fclose(f);
	cr_expect_str_eq(text, "a&#34;b'c&#60;<wbr>d&#62;&#38;e");
	free(text);
}
