/* profile_file.c - reads a profile from a file, or says what else the file is */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"

#include "json.h"
#include "profile_file.h"

#define READ_BY(what) "; " what " reads it"

/* The first bytes of files that are not profiles of profilctl. */
static const struct {
	const char *bytes;
	size_t n;
	const char *what;
} beginnings[] = {
#define BEGINS(bytes, what)                    \
	{                                      \
		bytes, sizeof(bytes) - 1, what \
	}
	BEGINS("PERFILE2", "a file of perf's" READ_BY("'perf report -i FILE'")),
	BEGINS("\x1f\x8b", "gzipped, as profiles for pprof are" READ_BY("'go tool pprof'")),
	BEGINS("\177ELF", "a program or a library; 'profilctl record -- PROGRAM' profiles one"),
	BEGINS("gmon", "a gmon.out" READ_BY("'gprof PROGRAM FILE'")),
	BEGINS("\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0",
	       "a profile of gperftools'" READ_BY("google-pprof")),
	BEGINS("# callgrind format", "a file of callgrind's" READ_BY("callgrind_annotate")),
	BEGINS("<!DOCTYPE html", "a page" READ_BY("a browser")),
	BEGINS("\x28\xb5\x2f\xfd", "compressed by zstd"),
	BEGINS("\xfd"
	       "7zXZ",
	       "compressed by xz"),
	BEGINS("BZh", "compressed by bzip2"),
	BEGINS("PK\3\4", "a zip archive"),
	BEGINS("#!", "a script; 'profilctl record -- SCRIPT' profiles one"),
#undef BEGINS
};

/* Describes the file; NULL: it begins like JSON. */
static const char *what_is(const char *text, size_t n)
{
	size_t blank = 0;

	if (!text || !n)
		return "empty";
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(*beginnings); i++) {
		if (n >= beginnings[i].n && !memcmp(text, beginnings[i].bytes, beginnings[i].n))
			return beginnings[i].what;
	}
	while (blank < n && text[blank] && strchr(" \t\r\n", text[blank]))
		blank++;
	if (blank < n && text[blank] == '{')
		return NULL;
	return memchr(text, 0, n < 4096 ? n : 4096) ? "binary, of no kind that is known here"
						    : "text of some other kind";
}

/*
 * Reads all of @in, NUL-terminated, into *@out, which the caller frees. Returns 0 or a negative
 * errno.
 */
static int read_all(char **out, size_t *n, FILE *in, size_t bytes_max)
{
	__cleanup(freep) char *text = NULL;
	size_t room = 0;

	*n = 0;
	do {
		char *more;

		room = room ? 2 * room : 1 << 16;
		if (room > bytes_max)
			return -EFBIG;
		more = realloc(text, room);
		if (!more)
			return -ENOMEM;
		text = more;
		*n += fread(text + *n, 1, room - 1 - *n, in);
	} while (*n == room - 1);
	if (ferror(in))
		return -errno;
	text[*n] = '\0';
	*out = steal(text);
	return 0;
}

/* Decompresses *@text if it is gzipped, as files of a spool are. */
static int unzip(char **text, size_t *n, size_t bytes_max)
{
	__cleanup(freep) char *whole = NULL;
	size_t bytes;
	int err;

	if (!gzip_is(*text, *n))
		return 0;
	err = gzip_read(&whole, &bytes, *text, *n, bytes_max);
	if (err < 0 || what_is(whole, bytes))
		return err == -EINVAL ? 0 : err;
	free(*text);
	*text = steal(whole);
	*n = bytes;
	return 0;
}

int profile_file_read(struct profile **out, FILE *in, size_t bytes_max, char *why, size_t bytes)
{
	__cleanup(freep) char *text = NULL;
	size_t n;
	int err = read_all(&text, &n, in, bytes_max) ?: unzip(&text, &n, bytes_max);

	if (!err && what_is(text, n)) {
		snprintf(why, bytes, "it is %s", what_is(text, n));
		return -EINVAL;
	}
	if (!err)
		err = json_load(out, text, n, why, bytes);
	if (err && err != -EINVAL)
		snprintf(why, bytes, "%s", strerror(-err));
	return err;
}
