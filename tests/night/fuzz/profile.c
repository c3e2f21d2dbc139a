/* profile.c - fuzzes a stored profile: each one that is accepted can be written in every format */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "formats/format.h"
#include "profilctl/output/output.h"
#include "base/cleanup.h"
#include "fuzz.h"

static struct profile *load(const void *bytes, size_t n)
{
	struct profile *p = NULL;
	char why[256] = "";
	int err = json_load(&p, bytes, n, why, sizeof(why));

	must(err == 0 || err == -EINVAL);
	must(err == 0 || *why);
	return p;
}

static void write_all(const struct profile *p)
{
	static const char *const names[] = { "pprof",	   "gmon",    "folded", "callgrind",
					     "speedscope", "firefox", "perf",	"html",
					     "llvm",	   "bolt",    "json" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		__cleanup(freep) char *text = NULL;
		size_t n;
		FILE *out = open_memstream(&text, &n);
		int err;

		must(out && format_find(names[i]));
		err = format_find(names[i])->write(out, p);
		must(err == 0 || err == -EOVERFLOW || err == -ENODATA);
		fclose(out);
	}
}

/* A profile that is written and read again is unchanged. */
static void round_trip(const struct profile *p)
{
	__cleanup(freep) char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct profile *again;

	must(out && json_write(out, p, true) == 0);
	fclose(out);
	again = load(text, n);
	must(again != NULL);
	must(again->total == p->total && again->binned == p->binned && again->lost == p->lost);
	must(again->nfunctions == p->nfunctions && again->nobjects == p->nobjects);
	profile_free(again);
}

/* Groupings by contents of the profile; lines, inlined functions and instructions need files. */
static void write_text(const struct profile *p)
{
	static const struct text_options options[] = {
		{ .by = ROWS_FUNCTION },
		{ .by = ROWS_FUNCTION, .colour = true },
		{ .by = ROWS_OBJECT },
		{ .by = ROWS_LINE, .all = true, .columns = 40 },
		{ .by = ROWS_INSTRUCTION, .full_names = true, .rows = 3 },
		{ .by = ROWS_THREAD },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		__cleanup(freep) char *text = NULL;
		size_t n;
		FILE *out = open_memstream(&text, &n);

		int err;

		must(out != NULL);
		err = text_write(out, p, &options[i]);
		fclose(out);
		must(err == 0 || (err == -ENOENT && options[i].by == ROWS_THREAD));
		if (err)
			continue;
		must(n > 0 && text[n - 1] == '\n');
		must(!memchr(text, '\033', n) || options[i].colour);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct profile *p = load(bytes, n);

	if (!p)
		return 0;
	must(p->total == p->binned + p->unmatched + p->lost);
	write_all(p);
	write_text(p);
	round_trip(p);
	profile_free(p);
	return 0;
}
