/* source_file.c - source files that are none */
#include <criterion/criterion.h>
#include <errno.h>
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
