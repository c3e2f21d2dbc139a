/* function_reader.c - functions of interpreted languages, from a table */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* What becomes of @line of a function of JavaScript, which has it in @format. */
static struct interpreted_function read_function(__u32 line, __u8 format)
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
	f->name_bytes = 1;
	f->name[0] = 'f';
	f->file_encoding = 1;
	f->file_bytes = (__u16)strlen(path);
	memcpy(f->file, path, strlen(path));
	cr_assert_eq(functions_read(&functions, &t, PROFIL_LANGUAGE_JAVASCRIPT), 0);
	cr_assert_eq(functions.n, 1);
	free(head);
	return functions.function[0];
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
