/* function_reader.c - functions of interpreted languages, from a table */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/proc/file_account.h"
#include "table/function_reader.h"

static char path[] = "/tmp/profil-source-XXXXXX";

static void remove_source(void)
{
	unlink(path);
}

TestSuite(function_reader, .fini = remove_source);

static void write_source(size_t lines)
{
	static char text[1 << 16];
	int fd = mkstemp(path);

	memset(text, '\n', sizeof(text));
	for (size_t n = 0; n < lines; n += sizeof(text))
		cr_assert_eq(write(fd, text, sizeof(text)), (ssize_t)sizeof(text));
	close(fd);
}

static __u32 process; /* whose function it is; 0: unknown */

/* What becomes of @line of a function of JavaScript, which has it in @format. */
static struct interpreted_function read_again(__u32 line, __u8 format,
					      const struct interpreted *before)
{
	struct profil_table *head = calloc(2, PROFIL_TABLE_PAGE);
	struct profil_function *f = (void *)((char *)head + PROFIL_TABLE_PAGE);
	struct interpreted functions = { 0 };
	struct table t = { .head = head };

	head->function_page = 1;
	head->functions = 1;
	f->id = 1;
	f->ready = 1;
	f->start = 1;
	f->language = PROFIL_LANGUAGE_JAVASCRIPT;
	f->line_format = format;
	f->line = line;
	f->tgid = process;
	f->name_bytes = 1;
	f->name[0] = 'f';
	f->file_encoding = 1;
	f->file_bytes = (__u16)strlen(path);
	memcpy(f->file, path, strlen(path));
	cr_assert_eq(functions_read(&functions, &t, PROFIL_LANGUAGE_JAVASCRIPT, before), 0);
	cr_assert_eq(functions.n, 1);
	free(head);
	return functions.function[0];
}

static struct interpreted_function read_function(__u32 line, __u8 format)
{
	return read_again(line, format, NULL);
}

/* The line of a function at character @position of the source. */
static __u32 line_of(__u32 position)
{
	return read_function(position, PROFIL_LINES_POSITION).line;
}

/* A profile with these could not be read. The memory of the process may have anything. */
Test(function_reader, takes_no_line_or_format_that_there_cannot_be)
{
	cr_expect_eq(read_function(INT32_MAX, PROFIL_LINES_UNITS).line, INT32_MAX);
	cr_expect_eq(read_function(1u << 31, PROFIL_LINES_UNITS).line, 0);
	cr_expect_eq(read_function(1, PROFIL_LINES_UNITS).line_format, PROFIL_LINES_UNITS);
	cr_expect_eq(read_function(1, PROFIL_LINES_UNITS + 1).line_format, PROFIL_LINES_NONE);
}

Test(function_reader, finds_the_line_of_a_position)
{
	write_source(200000);
	cr_expect_eq(line_of(0), 1);
	cr_expect_eq(line_of(1), 2);
	cr_expect_eq(line_of(100000), 100001);
}

/* A process can name files of root in turn, which have no account. */
Test(function_reader, reads_no_source_beyond_the_account_of_any_maker)
{
	struct file_account *any = file_account_of_any();

	write_source(1000);
	cr_expect_eq(line_of(10), 11);
	file_account_use_time(any, FILE_TIME, file_account_time_left(any, FILE_TIME));
	cr_expect_eq(line_of(10), 0);
}

/* The process chooses the path, and a line takes more memory than its text. */
Test(function_reader, reads_no_source_of_more_than_16_mib)
{
	write_source((16u << 20) + 1);
	cr_expect_eq(line_of(1), 0);
}

/* Starts a process whose root directory is @root, and which lives until @until is closed. */
static pid_t process_below(const char *root, int *until)
{
	int ready[2], wait[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(wait, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		close(wait[1]);
		if (chroot(root) || chdir("/") || write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(read(wait[0], &c, 1) != 0);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &c, 1), 1);
	*until = wait[1];
	return pid;
}

/* The path that it names is another file here, or none. */
Test(function_reader, reads_the_source_that_the_process_sees)
{
	char root[] = "/tmp/profil-root-XXXXXX", file[128];
	struct interpreted before = { 0 };
	struct interpreted_function f;
	int fd, until;
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root, to give a process another root directory");
	cr_assert_not_null(mkdtemp(root));
	snprintf(path, sizeof(path), "/source-in-XXXXX");
	snprintf(file, sizeof(file), "%s%s", root, path);
	fd = open(file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	cr_assert_eq(write(fd, "one\ntwo\nthree\n", 14), 14);
	close(fd);
	cr_expect_eq(line_of(5), 0, "of no process");
	pid = process_below(root, &until);
	process = (__u32)pid;
	f = read_function(5, PROFIL_LINES_POSITION);
	cr_expect_eq(f.line, 2);
	close(until);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_eq(line_of(5), 0, "the process has ended");
	cr_assert_eq(interpreted_add(&before, &f), 0);
	interpreted_sort(&before);
	cr_expect_eq(read_again(5, PROFIL_LINES_POSITION, &before).line, 2, "it was read before");
	unlink(file);
	rmdir(root);
}

/* An absolute link, or one with .., is followed as the process would. */
Test(function_reader, follows_no_link_out_of_the_process_s_root)
{
	char root[] = "/tmp/profil-root-XXXXXX", link[128];
	int until;
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root, to give a process another root directory");
	write_source(1000);
	cr_assert_not_null(mkdtemp(root));
	snprintf(link, sizeof(link), "%s/tmp", root);
	cr_assert_eq(symlink("/tmp", link), 0);
	cr_expect_eq(line_of(10), 11);
	pid = process_below(root, &until);
	process = (__u32)pid;
	cr_expect_eq(line_of(10), 0);
	close(until);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	unlink(link);
	rmdir(root);
}
