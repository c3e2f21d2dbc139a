/* function_reader.c - reads the functions of interpreted languages from a table */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_while.h"
#include "base/cleanup.h"
#include "base/grow.h"
#include "symbols/elf/read_budget.h"
#include "symbols/proc/guarded_file.h"

#include "function_reader.h"

static size_t put_utf8(char *out, __u32 c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	if (c > 0x10ffff)
		return put_utf8(out, 0xfffd);
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/*
 * Characters of @encoding bytes, as Python keeps its strings, as UTF-8; 0: UTF-8. PHP's anonymous
 * classes have a NUL before their place.
 */
static char *text_of(const char *raw, size_t bytes, size_t encoding)
{
	char *out = calloc(bytes + 1, 4);
	size_t n = 0;

	if (!out)
		return NULL;
	for (; !encoding && n < bytes; n++)
		out[n] = raw[n] ? raw[n] : ' ';
	for (size_t i = 0; encoding && i + encoding <= bytes; i += encoding) {
		__u32 c = 0;

		memcpy(&c, raw + i, encoding <= sizeof(c) ? encoding : sizeof(c));
		if (c)
			n += put_utf8(out + n, c);
	}
	out[n] = '\0';
	return out;
}

static size_t most(size_t n, size_t limit)
{
	return n < limit ? n : limit;
}

/*
 * A name in angle brackets, as <module> or <lambda>, is one of many: the file distinguishes them,
 * and the line unless it is the first.
 */
static char *full_name(struct interpreted_function *f)
{
	const char *bracket = strrchr(f->name, '<'), *base = f->file ? strrchr(f->file, '/') : NULL;
	char *name = NULL;

	base = base ? base + 1 : f->file;
	if (!*f->name) {
		free(f->name);
		f->name = strdup("(anonymous)");
		bracket = f->name;
	}
	if (!f->name || !bracket || !strchr(">)", f->name[strlen(f->name) - 1]) || !base || !*base)
		return f->name;
	if (asprintf(&name, f->line > 1 ? "%s (%s:%u)" : "%s (%s)", f->name, base, f->line) < 0)
		name = NULL;
	free(f->name);
	return name;
}

/* --- lines by position ------------------------------------------------------------------------ */

/*
 * A profiled process chooses the files and how often they alternate, those of root among them. So
 * what they take is charged to their makers, or to any. A line takes four bytes, and can have one.
 */
#define SOURCE_BYTES_MAX (16u << 20)
#define BLOCK_BYTES (64u << 10)

/* The file that was read last: most functions follow others of their file. */
struct source {
	char *path;
	__u32 root;	/* the process in whose root directory it is; 0: in ours */
	__u32 pid;	/* the process that was asked for last, ... */
	bool elsewhere; /* ... and whether it sees other files than this one */
	__u32 *end;	/* of each line: the position behind it, in UTF-16's characters */
	size_t lines;
	struct read_budget budget;
};

static void source_forget(struct source *s)
{
	free(s->path);
	free(s->end);
	read_budget_end(&s->budget);
	*s = (struct source){ 0 };
}

/* Adds the lines that end in @text. *@at: the position behind it. */
static int find_lines(struct source *s, const char *text, size_t n, __u32 *at)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		__u32 *grown;

		if ((c & 0xc0) != 0x80)
			*at += c >= 0xf0 ? 2 : 1;
		if (c != '\n')
			continue;
		grown = grow(s->end, s->lines, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		s->end = grown;
		s->end[s->lines++] = *at;
	}
	return 0;
}

/* Returns 0, -EFBIG or -ENOMEM. */
static int read_lines(struct source *s, int fd)
{
	char text[BLOCK_BYTES];
	size_t bytes = 0;
	__u32 at = 0;
	ssize_t n;
	int err = 0;

	while (!err && read_budget_left(&s->budget) && (n = read(fd, text, sizeof(text))) > 0) {
		bytes += (size_t)n;
		err = bytes > SOURCE_BYTES_MAX ? -EFBIG : find_lines(s, text, (size_t)n, &at);
	}
	if (err || !read_budget_left(&s->budget))
		return err ?: -EFBIG;
	return find_lines(s, "\n", 1, &at); /* of the last line */
}

/* Says whether the link @name of process @pid in /proc leads to the same as ours. */
static bool is_ours(__u32 pid, const char *name)
{
	char path[64], theirs[PATH_MAX], ours[PATH_MAX];
	ssize_t n, m;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	n = readlink(path, theirs, sizeof(theirs));
	snprintf(path, sizeof(path), "/proc/self/%s", name);
	m = readlink(path, ours, sizeof(ours));
	return n < 0 || (n == m && !memcmp(theirs, ours, (size_t)n));
}

/*
 * Opens @path as process @pid sees it, which can be in another mount namespace or have another root
 * directory. One that has ended, or that this process may not inspect, is taken for one of ours.
 */
static int source_open(const char *path, __u32 pid)
{
	char root[64];

	if (!pid)
		return guarded_file_open(path, NULL);
	snprintf(root, sizeof(root), "/proc/%u/root", pid);
	return guarded_file_open_below(root, path, NULL);
}

/*
 * Reads the source at @path of a function of process @pid. It has no lines if it cannot be read.
 */
static void source_read(struct source *s, const char *path, __u32 pid)
{
	__cleanup(closep) int fd = -1;
	__u32 root;

	if (s->pid != pid) {
		s->pid = pid;
		s->elsewhere = !is_ours(pid, "ns/mnt") || !is_ours(pid, "root");
	}
	root = s->elsewhere ? pid : 0;
	if (s->path && s->root == root && !strcmp(s->path, path))
		return;
	source_forget(s);
	s->path = strdup(path);
	s->root = root;
	fd = source_open(path, root);
	if (fd < 0)
		return;
	read_budget_begin(&s->budget, file_account_of(fd) ?: file_account_of_any(), FILE_TIME);
	if (read_lines(s, fd) < 0)
		s->lines = 0;
	read_budget_pause(&s->budget);
}

/* The line of character @position; 0: unknown. */
static __u32 line_at(const struct source *s, __u32 position)
{
	size_t lo = COUNT_WHILE(s->lines, i, s->end[i] <= position);

	return lo < s->lines ? (__u32)lo + 1 : 0;
}

/* Node.js names ES modules by URL: makes a path of it. */
static void path_of_url(char *file)
{
	static const char url[] = "file://";
	char *to = file, *from = file + strlen(url);
	unsigned int byte;

	if (strncmp(file, url, strlen(url)))
		return;
	while (*from) {
		bool coded = *from == '%' && isxdigit((unsigned char)from[1]) &&
			     isxdigit((unsigned char)from[2]) &&
			     sscanf(from + 1, "%2x", &byte) == 1 && byte;

		*to++ = coded ? (char)byte : *from;
		from += coded ? 3 : 1;
	}
	*to = '\0';
}

static void place_in_source(struct interpreted_function *f, struct source *s, __u32 pid)
{
	const char *path = f->file;

	f->line_format = PROFIL_LINES_NONE;
	if (f->file)
		path_of_url(f->file);
	if (path && *path == '/')
		source_read(s, path, pid);
	f->line = path && *path == '/' ? line_at(s, f->line) : 0;
}

/* Takes the line from @before: the process whose file it is may have ended since. */
static bool place_as_before(struct interpreted_function *f, const struct interpreted *before)
{
	const struct interpreted_function *known =
		before ? interpreted_find(before, f->start) : NULL;

	if (!known || known->start != f->start || !known->line)
		return false;
	f->line = known->line;
	f->line_format = known->line_format;
	return true;
}

/* PHP's and Perl's code outside of functions has no name, nor has Perl's in strings. */
static void name_file(struct interpreted_function *f, __u32 language)
{
	bool is_perl = language == PROFIL_LANGUAGE_PERL;
	bool is_string = is_perl && f->file && !strncmp(f->file, "(eval ", 6);

	if (!f->name || *f->name || (language != PROFIL_LANGUAGE_PHP && !is_perl))
		return;
	free(f->name);
	f->name = strdup(is_string ? "(eval)" : "<main>");
}

/* The process's own memory has what is read, which may be anything. */
static void clear_impossible(struct interpreted_function *f)
{
	if (f->line > INT32_MAX)
		f->line = 0;
	if (f->line_format > PROFIL_LINES_UNITS)
		f->line_format = PROFIL_LINES_NONE;
}

/* HotSpot separates packages as in class files. Its stubs, "I2C/C2I adapters", have no dot. */
static void name_packages(char *name)
{
	const char *dot = strchr(name, '.');

	for (char *c = name; dot && c < dot; c++)
		*c = *c == '/' ? '.' : *c;
}

static int add(struct interpreted *out, const struct profil_function *from,
	       const struct interpreted *before, struct source *source)
{
	struct interpreted_function f = { .start = from->start,
					  .length = from->length,
					  .line = from->line,
					  .line_format = from->line_format };

	f.name = text_of(from->name, most(from->name_bytes, sizeof(from->name)),
			 from->name_encoding);
	if (from->file_encoding)
		f.file = text_of(from->file, most(from->file_bytes, sizeof(from->file)),
				 from->file_encoding);
	if (from->lines_bytes && from->lines_bytes <= sizeof(from->lines)) {
		f.lines = malloc(from->lines_bytes);
		if (f.lines)
			memcpy(f.lines, from->lines, from->lines_bytes);
		f.lines_bytes = f.lines ? from->lines_bytes : 0;
	}
	name_file(&f, from->language);
	if (f.name && from->language == PROFIL_LANGUAGE_JAVA)
		name_packages(f.name);
	if (f.line_format == PROFIL_LINES_POSITION && !place_as_before(&f, before))
		place_in_source(&f, source, from->tgid);
	clear_impossible(&f);
	if (f.name)
		f.name = full_name(&f);
	if (!f.name) {
		free(f.file);
		free(f.lines);
		return -ENOMEM;
	}
	return interpreted_add(out, &f);
}

int functions_read(struct interpreted *out, const struct table *t, __u32 language,
		   const struct interpreted *before)
{
	struct source source = { 0 };
	int err = 0;

	for (__u32 i = 0; i < t->head->functions && !err; i++) {
		const struct profil_function *f = table_function(t, i);

		if (f && f->language == language && f->start)
			err = add(out, f, before, &source);
	}
	source_forget(&source);
	interpreted_sort(out);
	return err;
}
