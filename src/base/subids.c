/* subids.c - which user owns a subordinate user id: /etc/subuid */
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "count_while.h"
#include "cleanup.h"
#include "log.h"
#include "subids.h"

#define RANGES_MAX 100000

struct range {
	uid_t first;
	uid_t last;
	uid_t account;
	char *owner; /* while the file is being read */
};

struct subids {
	const char *subuid;
	const char *passwd;
	struct stat seen; /* of subuid, when it was read; all zero: there was none */
	struct range *range;
	size_t n;
	size_t room;
};

static void forget(struct subids *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->range[i].owner);
	free(s->range);
	s->range = NULL;
	s->n = s->room = 0;
}

/* A decimal user id; false: @text is anything else. */
static bool read_uid(const char *text, unsigned long long *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !errno && *end == '\0' && *out < (uid_t)-1;
}

/* One line, "owner:first:count". Others are ignored, as newuidmap(1) does. */
static int read_line(struct subids *s, char *line)
{
	char *rest = line, *owner, *first, *count;
	unsigned long long from, n;
	struct range *more;

	line[strcspn(line, "\n")] = '\0';
	owner = strsep(&rest, ":");
	first = strsep(&rest, ":");
	count = strsep(&rest, ":");
	if (!count || rest || !*owner || !read_uid(first, &from) || !read_uid(count, &n) || !n)
		return 0;
	if (s->n == RANGES_MAX)
		return -E2BIG;
	if (s->n == s->room) {
		more = reallocarray(s->range, 2 * s->room + 16, sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->range = more;
		s->room = 2 * s->room + 16;
	}
	owner = strdup(owner);
	if (!owner)
		return -ENOMEM;
	if (n > (uid_t)-1 - from)
		n = (uid_t)-1 - from;
	s->range[s->n++] = (struct range){ .first = (uid_t)from,
					   .last = (uid_t)(from + n - 1),
					   .account = (uid_t)-1,
					   .owner = owner };
	return 0;
}

static int by_owner(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	int order = strcmp(x->owner, y->owner);

	return order ? order : (x->first > y->first) - (x->first < y->first);
}

static int by_first(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* The ranges of @owner, which are sorted by owner; *@n: their number. */
static struct range *ranges_of(struct subids *s, const char *owner, size_t *n)
{
	size_t lo = COUNT_WHILE(s->n, i, strcmp(s->range[i].owner, owner) < 0);

	*n = 0;
	while (lo + *n < s->n && !strcmp(s->range[lo + *n].owner, owner))
		++*n;
	return s->range + lo;
}

static void set_account(struct subids *s, const char *owner, uid_t account)
{
	size_t n;
	struct range *r = ranges_of(s, owner, &n);

	for (size_t i = 0; i < n; i++)
		r[i].account = account;
}

/* Owners are names or user ids. A name that is not in passwd stands for its first id. */
static void set_accounts(struct subids *s)
{
	__cleanup(fclosep) FILE *f = fopen(s->passwd, "re");
	struct range *r = s->range;
	struct passwd *p;
	unsigned long long uid;

	if (!s->n)
		return;
	qsort(s->range, s->n, sizeof(*s->range), by_owner);
	for (size_t i = 0, first = 0; i < s->n; i++) {
		if (strcmp(r[i].owner, r[first].owner))
			first = i;
		r[i].account = read_uid(r[i].owner, &uid) ? (uid_t)uid : r[first].first;
	}
	while (f && (p = fgetpwent(f)))
		set_account(s, p->pw_name, p->pw_uid);
	qsort(s->range, s->n, sizeof(*s->range), by_first);
}

static void read_file(struct subids *s)
{
	__cleanup(fclosep) FILE *f = fopen(s->subuid, "re");
	__cleanup(freep) char *line = NULL;
	size_t room = 0;
	int err = 0;

	forget(s);
	while (f && !err && getline(&line, &room, f) >= 0)
		err = read_line(s, line);
	if (err)
		log_warning("%s: %s: its other users are accounts of their own", s->subuid,
			    strerror(-err));
	set_accounts(s);
}

static void refresh(struct subids *s)
{
	struct stat now;

	if (stat(s->subuid, &now) < 0)
		now = (struct stat){ 0 };
	if (now.st_ino == s->seen.st_ino && now.st_dev == s->seen.st_dev &&
	    now.st_size == s->seen.st_size && now.st_mtim.tv_sec == s->seen.st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == s->seen.st_mtim.tv_nsec)
		return;
	s->seen = now;
	read_file(s);
}

int subids_open(struct subids **out, const char *subuid, const char *passwd)
{
	struct subids *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->subuid = subuid;
	s->passwd = passwd;
	*out = s;
	return 0;
}

struct subids *subids_close(struct subids *s)
{
	if (s)
		forget(s);
	free(s);
	return NULL;
}

/* Where ranges overlap, the one that begins last has the id. */
uid_t subids_account(struct subids *s, uid_t uid)
{
	size_t lo;

	refresh(s);
	lo = COUNT_WHILE(s->n, i, s->range[i].first <= uid);
	return lo && uid <= s->range[lo - 1].last ? s->range[lo - 1].account : uid;
}
