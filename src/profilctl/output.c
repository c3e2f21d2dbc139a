/* output.c - where a report goes, and who writes it */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/scope.h"

#include "format.h"
#include "output.h"
#include "verb.h"

int output_open(FILE **out, const struct options *o)
{
	__cleanup(closep) int fd = -1;

	if (!o->output && o->format && o->format->binary && isatty(STDOUT_FILENO)) {
		log_err("%s is nothing for a terminal: take -o FILE, or a pipe", o->format->name);
		return CTL_USAGE;
	}
	if (!o->output) {
		*out = stdout;
		return CTL_OK;
	}
	fd = open(o->output, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	*out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!*out) {
		log_err("cannot write %s: %s; name another place by -o", o->output,
			strerror(errno));
		return CTL_ERROR;
	}
	(void)steal_fd(fd);
	return CTL_OK;
}

static bool wants_colour(FILE *out)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

int output_write(FILE *out, const struct options *o, const struct profile *p)
{
	int err = 0;

	/* What is no file has no length to cut: that is no error. */
	if (out != stdout && ftruncate(fileno(out), 0) < 0)
		errno = 0;
	if (o->format && o->format->write)
		err = o->format->write(out, p);
	else if (o->format || out == stdout)
		err = text_write(out, p, &(struct text_options){ o->by, wants_colour(out) });
	else
		err = json_write(out, p, true);
	return output_end(out, o, err);
}

int output_end(FILE *out, const struct options *o, int err)
{
	if (!err && (fflush(out) || ferror(out)))
		err = -errno;
	if (out != stdout && fclose(out) && !err)
		err = -errno;
	if (!err)
		return CTL_OK;
	log_err("cannot write %s: %s", o->output ? o->output : "the report",
		err == -EOVERFLOW ? "more ticks at one place than the format holds; try -f pprof"
				  : strerror(-err));
	return CTL_ERROR;
}
