/* source_file.c - source files that are none */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/source_file.h"

Test(source, refuses_a_fifo_without_waiting_for_a_writer)
{
	char path[] = "/tmp/profil-fifo-XXXXXX";
	struct source s;

	cr_assert_not_null(mkdtemp(path));
	cr_assert_eq(rmdir(path), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_eq(source_init(&s, path), -EINVAL);
	source_fini(&s);
	unlink(path);
}

/* A line of one byte takes forty. */
Test(source, refuses_a_million_lines)
{
	char path[] = "/tmp/profil-lines-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	struct source s;

	for (size_t i = 0; i < 1u << 20; i++)
		cr_assert_neq(putc('\n', f), EOF);
	cr_assert_eq(fclose(f), 0);
	cr_expect_eq(source_init(&s, path), -EFBIG);
	source_fini(&s);
	cr_assert_eq(truncate(path, 1000), 0);
	cr_expect_eq(source_init(&s, path), 0);
	cr_expect_eq(s.n, 1001);
	source_fini(&s);
	unlink(path);
}
