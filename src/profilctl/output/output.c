/* output.c - opens the output of a report, and writes it in the format of the options */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"

#include "formats/format.h"
#include "output.h"
#include "profilctl/util/exit_status.h"
#include "base/replace_file.h"
#include "profilctl/util/terminal.h"

/* The file that the output replaces; a process has one output. */
static struct replace_file pending;

static void abort_pending(void)
{
	replace_abort(&pending);
}

static const char *reason(int err)
{
	switch (-err) {
	case ENOSPC:
		return "no space left on device";
	case EDQUOT:
		return "disk quota exceeded";
	case EOVERFLOW:
		return "more samples at one place than the format holds (try -f pprof)";
	case EDOM:
		return "the format is for samples of time, and these are of events (try -f pprof)";
	case EOPNOTSUPP:
		return "the format is of code that runs, and these samples are also of threads "
		       "without a CPU (of --wall: try --state running)";
	case ENODATA:
		return "the file of the program with the most samples has no line numbers, for "
		       "-f bolt no symbols, or is no longer the one that was profiled (build it "
		       "with -g; clang also with -fdebug-info-for-profiling)";
	default:
		return strerror(-err);
	}
}

/* Says whether the report goes to standard error, as text. */
static bool is_apart(const struct options *o)
{
	return o->apart && !o->output;
}

static bool is_stdout(const struct options *o)
{
	return !o->output || !strcmp(o->output, "-");
}

static bool is_profile(const struct options *o)
{
	return o->output && !o->format;
}

int output_open(FILE **out, const struct options *o)
{
	int err;

	errno = 0; /* for replace_cause() */
	if (is_apart(o)) {
		*out = stderr;
		return CTL_OK;
	}
	if (is_stdout(o)) {
		if (o->format && o->format->binary && isatty(STDOUT_FILENO)) {
			log_err("%s is binary, and standard output is a terminal: use -o FILE or a "
				"pipe",
				o->format->name);
			return CTL_USAGE;
		}
		*out = stdout;
		return CTL_OK;
	}
	err = replace_begin(&pending, out, o->output, is_profile(o) ? 0600 : 0666, is_profile(o));
	if (err < 0) {
		log_err("cannot write %s: %s (-o names another file)", o->output, reason(err));
		return CTL_ERROR;
	}
	atexit(abort_pending);
	errno = 0;
	return CTL_OK;
}

bool output_is_text(const struct options *o)
{
	return !o->format ? !o->output : !o->format->write;
}

static struct text_options text_options_of(const struct options *o, FILE *out)
{
	struct text_options t = { .by = o->by,
				  .full_names = o->full_names,
				  .all = o->all,
				  .rows = o->rows,
				  .least_percent = o->least_percent };

	if (out == stdout || out == stderr) {
		t.colour = terminal_has_colours(fileno(out));
		t.columns = terminal_columns(fileno(out));
	}
	return t;
}

int output_write(FILE *out, const struct options *o, const struct profile *p)
{
	struct text_options t = text_options_of(o, out);
	int err = 0;

	if (o->format && o->format->write)
		err = o->format->write(out, p);
	else if (output_is_text(o))
		err = text_write(out, p, &t);
	else
		err = json_write(out, p, true);
	return output_end(out, o, err);
}

/* Completes the output, or discards it if writing has failed. Returns 0 or a negative errno. */
static int complete(FILE *out, int err)
{
	err = replace_cause(out, err);
	if (!err)
		err = replace_commit(&pending, out);
	replace_abort(&pending);
	if (out != stdout && out != stderr && fclose(out) && !err)
		err = -errno;
	return err == -EPIPE && pager_is_on() ? 0 : err; /* the user has quit the pager */
}

static const char *remedy(enum rows_by by)
{
	switch (by) {
	case ROWS_THREAD:
		return "record it with --threads";
	case ROWS_WAIT:
	case ROWS_LOCK:
		return "record it with --wall or --off-cpu";
	case ROWS_PROCESS:
		return "'profilctl record -a -o FILE' writes one that does";
	default:
		return "'profilctl record' and 'attach' write one that does";
	}
}

int output_end(FILE *out, const struct options *o, int err)
{
	bool replaces = pending.path && !access(pending.path, F_OK);
	bool lacks = err == -ENOENT;

	err = complete(out, err);
	if (!err)
		return CTL_OK;
	if (lacks)
		log_err("this profile does not distinguish one %s from another: %s",
			rows_by_name(o->by), remedy(o->by));
	else
		log_err("cannot write %s: %s%s", is_stdout(o) ? "the report" : o->output,
			reason(err), replaces ? "; the file that was there is unchanged" : "");
	return CTL_ERROR;
}

/* Writes @p to a new file in @folder, whose name is @path then. Returns 0 or a negative errno. */
static int write_elsewhere(char path[PATH_MAX], const char *folder, const struct profile *p)
{
	FILE *out;
	int fd, err;

	if (snprintf(path, PATH_MAX, "%s/profil.XXXXXX", folder) >= PATH_MAX)
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = json_write(out, p, true);
	if (!err && (fflush(out) || fsync(fd) < 0))
		err = -errno;
	if (fclose(out) && !err)
		err = -errno;
	if (err)
		unlink(path);
	return err;
}

void output_rescue(const struct options *o, const struct profile *p)
{
	struct text_options t = text_options_of(o, stderr);
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX];

	if (is_apart(o) || is_stdout(o))
		return;
	if (!write_elsewhere(path, folder && *folder ? folder : "/tmp", p)) {
		log_notice("the profile is in %s instead ('profilctl report' reads it)", path);
		return;
	}
	t.by = ROWS_FUNCTION;
	log_notice("the profile, which no file could take:");
	text_write(stderr, p, &t);
}
