/* file_sum.c - adds up the profiles of files, of one machine or of many */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/sanitize.h"

#include "load.h"
#include "file_sum.h"
#include "profilctl/util/exit_status.h"

void file_list_fini(struct file_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->path[i]);
	free(l->path);
	*l = (struct file_list){ 0 };
}

int file_list_add(struct file_list *l, char *path)
{
	__cleanup(freep) char *own = path;
	char **grown = own ? grow(l->path, l->n, sizeof(*grown)) : NULL;

	if (!grown)
		return -ENOMEM;
	l->path = grown;
	l->path[l->n++] = steal(own);
	return 0;
}

/* Samples of other events, or that stand for other times, cannot be added up. */
static void say_other(const char *path, const struct profile *p, const struct profile *sum)
{
	char file[1024], own[256], theirs[256];

	sanitize(file, sizeof(file), path);
	if (p->tick_ns != sum->tick_ns && !p->event && !sum->event)
		log_err("%s: its samples stand for %.6g ms, those before it for %.6g ms: take "
			"files without such a change",
			file, (double)p->tick_ns / 1e6, (double)sum->tick_ns / 1e6);
	else
		log_err("%s: its samples are of %s, those before it of %s: they cannot be added up",
			file, sanitize(own, sizeof(own), p->event ?: "CPU time"),
			sanitize(theirs, sizeof(theirs), sum->event ?: "CPU time"));
}

static int add_file(struct merge *m, const char *path)
{
	__cleanup(profile_freep) struct profile *p = NULL;
	char file[1024];
	int status, err;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return CTL_OK; /* removed since the list was read */
	status = load_profile(&p, path);
	if (status)
		return status;
	err = merge_add(m, p);
	if (err == -EDOM)
		say_other(path, p, m->into);
	else if (err < 0)
		log_err("cannot add %s: %s", sanitize(file, sizeof(file), path), strerror(-err));
	if (!err && m->into->command && strcmp(m->into->command, p->command) != 0)
		strcpy(m->into->command, "");
	return err < 0 ? CTL_ERROR : CTL_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t file_sum_hosts(const struct profile *p)
{
	__cleanup(freep) const char **name = calloc(p->ngroups + 1, sizeof(*name));
	size_t n = 0, hosts = 0;

	if (!name)
		return 0;
	for (size_t i = 1; i < p->ngroups; i++) {
		if (p->groups[i].host)
			name[n++] = p->groups[i].host;
	}
	qsort(name, n, sizeof(*name), by_name);
	for (size_t i = 0; i < n; i++)
		hosts += !i || strcmp(name[i - 1], name[i]) != 0;
	return n ? hosts : 1;
}

/* Names the sum by what it is of: the command, if all have the same. */
static int name(struct profile *p, size_t profiles)
{
	const char *what = *p->command ? p->command : "several commands";
	size_t hosts = file_sum_hosts(p);
	char *command;
	int n = hosts > 1 ? asprintf(&command, "%s (%zu profiles of %zu hosts)", what, profiles,
				     hosts)
			  : asprintf(&command, "%s (%zu profile%s)", what, profiles,
				     profiles == 1 ? "" : "s");

	if (n < 0)
		return -ENOMEM;
	free(p->command);
	p->command = command;
	p->processes = profile_count_processes(p);
	return 0;
}

int file_sum(struct profile **out, const struct file_list *files)
{
	__cleanup(profile_freep) struct profile *p = profile_new();
	struct merge m = { .into = p };
	size_t bad = 0;
	int err;

	for (size_t i = 0; p && i < files->n; i++)
		bad += add_file(&m, files->path[i]) != CTL_OK;
	err = p ? merge_end(&m) : -ENOMEM;
	if (!err && m.added)
		err = name(p, m.added);
	if (err < 0) {
		log_err("cannot add up %zu profiles: %s", files->n, strerror(-err));
		return CTL_ERROR;
	}
	if (!m.added)
		return CTL_ERROR;
	*out = steal(p);
	return bad ? CTL_PARTIAL : CTL_OK;
}
