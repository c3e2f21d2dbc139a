/* intern_table.c - strings, each once, by number */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/intern_table.h"

Test(ctl_intern_table, numbers_each_string_once_and_replaces_invalid_utf8)
{
	struct intern_table t = { 0 };
	char text[16], *bytes;
	size_t n;
	FILE *f;

	cr_assert_eq(intern_string(&t, ""), 0);
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "s%u", i % 2500);
		cr_assert_eq(intern_string(&t, text), i % 2500 + 1);
	}
	intern_fini(&t);
	cr_assert_eq(intern_string(&t, "a\xff"), 1);
	f = open_memstream(&bytes, &n);
	intern_clean(&t);
	intern_write(&t, f, 6);
	fclose(f);
	/* Field 6, bytes: none; then 'a' and U+FFFD. */
	cr_assert_eq(n, 8);
	cr_assert_arr_eq(bytes,
			 "\x32\x00\x32\x04"
			 "a\xef\xbf\xbd",
			 8);
	free(bytes);
	intern_fini(&t);
}
