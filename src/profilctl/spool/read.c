/* read.c - reads the profiles of a spool by time */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#include "profile/spool_files.h"
#include "profilctl/util/exit_status.h"
#include "spool.h"

static int no_spool(const char *path, int err)
{
	if (err == -ENOENT)
		log_err("there is no spool %s; 'systemctl start profil-spool' keeps one, and "
			"--spool names another",
			path);
	else if (err == -EACCES)
		log_err("cannot read the spool %s: permission denied (run as root, or join group "
			"profil)",
			path);
	else
		log_err("cannot read the spool %s: %s", path, strerror(-err));
	return err == -EACCES ? CTL_DENIED : CTL_ERROR;
}

static int nothing(const char *path, const struct spool_entry *all, size_t n,
		   const struct time_span *span)
{
	char since[64], until[64], first[64], last[64];

	time_text(since, sizeof(since), span->since);
	strcpy(until, "now");
	if (span->until < SPOOL_NO_END)
		time_text(until, sizeof(until), span->until);
	if (!n) {
		log_err("the spool %s has no profiles", path);
		return CTL_ERROR;
	}
	time_text(first, sizeof(first), all[0].start);
	time_text(last, sizeof(last), all[n - 1].start + all[n - 1].seconds);
	log_err("the spool %s has no profile from %s to %s: what it has is from %s to %s", path,
		since, until, first, last);
	return CTL_ERROR;
}

/* Adds the chosen files. */
static int add_files(struct file_list *l, const char *path, const struct spool_entry *all, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		char *file;

		err = file_list_add(l,
				    asprintf(&file, "%s/%s", path, all[i].name) < 0 ? NULL : file);
	}
	return err ? CTL_ERROR : CTL_OK;
}

/* Adds the files of @span, which begin at *@since and end at *@until. */
static int files(struct file_list *l, const struct options *o, const struct time_span *span,
		 time_t *since, time_t *until)
{
	const char *path = o->spool ? o->spool : SPOOL_DIR_DEFAULT;
	__cleanup(freep) struct spool_entry *all = NULL;
	size_t n, chosen;
	int err = spool_files_list(&all, &n, path, false);

	if (err < 0)
		return no_spool(path, err);
	chosen = spool_files_choose(all, n, span->since, span->until);
	if (!chosen)
		return nothing(path, all, n, span);
	*since = all[0].start;
	*until = all[chosen - 1].start + all[chosen - 1].seconds;
	return add_files(l, path, all, chosen);
}

int spool_files(struct file_list *l, const struct options *o, const struct time_span *span)
{
	time_t since, until;

	return files(l, o, span, &since, &until);
}

/* Names the sum by its span of time, too. */
static int name(struct profile *p, time_t since, time_t until)
{
	char begin[64], end[64], *command;

	time_text(begin, sizeof(begin), since);
	time_text(end, sizeof(end), until);
	if (asprintf(&command, "%s, %s to %s", p->command, begin, end) < 0)
		return -ENOMEM;
	free(p->command);
	p->command = command;
	return 0;
}

int spool_read(struct profile **out, const struct options *o, const struct time_span *span)
{
	struct file_list l = { 0 };
	time_t since, until;
	int status = files(&l, o, span, &since, &until);

	if (!status)
		status = file_sum(out, &l);
	file_list_fini(&l);
	if ((!status || status == CTL_PARTIAL) && name(*out, since, until) < 0)
		return CTL_ERROR;
	return status;
}
