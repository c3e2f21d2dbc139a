/* cgroups.c - directories of the cgroup2 hierarchy: their ids, paths and systemd units */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#include "cgroups.h"
#include "container.h"
#include "base/grow.h"

struct cgroup_path {
	__u64 id;
	char *path; /* NULL: not found */
};

/*
 * Finds the first mount of cgroup2 whose root is the root of the hierarchy, in this cgroup
 * namespace.
 */
static int find_mount(char *out, size_t bytes)
{
	__cleanup(fclosep) FILE *f = fopen("/proc/self/mountinfo", "re");
	__cleanup(freep) char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) >= 0) {
		char root[PATH_MAX], at[PATH_MAX];

		if (!strstr(line, " - cgroup2 ") ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", root, at) != 2 || strcmp(root, "/"))
			continue;
		snprintf(out, bytes, "%s", at);
		return 0;
	}
	return -ENOTSUP;
}

/* Says whether a hierarchy is mounted at the first @n bytes of @path. */
static bool is_mount_point(const char *path, size_t n)
{
	static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		if (strlen(mounts[i]) == n && !strncmp(path, mounts[i], n))
			return true;
	}
	return false;
}

const char *cgroups_below_mount(const char *path)
{
	char mount[PATH_MAX];
	size_t own = find_mount(mount, sizeof(mount)) < 0 ? 0 : strlen(mount);

	if (own > 1 && !strncmp(path, mount, own) && (path[own] == '/' || !path[own]))
		return path + own;
	for (size_t n = strlen(path); n > 0; n--) {
		if ((path[n] == '/' || !path[n]) && is_mount_point(path, n))
			return path + n;
	}
	return path;
}

int cgroups_id(__u64 *id, const char *path)
{
	char mount[PATH_MAX], full[2 * PATH_MAX];
	struct stat st;
	int err = find_mount(mount, sizeof(mount));

	if (err < 0)
		return err;
	snprintf(full, sizeof(full), "%s/%s", mount, cgroups_below_mount(path));
	if (stat(full, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	*id = st.st_ino;
	return 0;
}

/*
 * Calls @take for each directory until it returns true. Its @path is relative to the hierarchy's
 * root.
 */
static int walk(bool (*take)(void *ctx, const char *path, const FTSENT *e), void *ctx)
{
	char mount[PATH_MAX];
	char *const roots[] = { mount, NULL };
	bool done = false;
	FTSENT *e;
	FTS *fts;
	int err = find_mount(mount, sizeof(mount));

	if (err < 0)
		return err;
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	if (!fts)
		return -errno;
	while (!done && (e = fts_read(fts))) {
		const char *path = e->fts_path + strlen(mount);

		if (e->fts_info == FTS_D)
			done = take(ctx, *path ? path : "/", e);
	}
	fts_close(fts);
	return done ? 0 : -ENOENT;
}

struct wanted_unit {
	const char *name;
	__u64 id;
};

static bool take_unit(void *ctx, const char *path, const FTSENT *e)
{
	struct wanted_unit *w = ctx;
	size_t n = strlen(w->name);

	if (strncmp(e->fts_name, w->name, n) != 0 ||
	    (e->fts_name[n] && strcmp(e->fts_name + n, ".service") != 0))
		return false;
	w->id = e->fts_statp->st_ino;
	return true;
}

int cgroups_unit_id(__u64 *id, const char *unit)
{
	struct wanted_unit w = { .name = unit };
	int err = walk(take_unit, &w);

	*id = w.id;
	return err;
}

struct wanted_container {
	const char *name;
	bool is_pod;
	char found[65]; /* the id of the container, or the pod, to which @id belongs */
	__u64 id;
	bool several;
};

/* Directories come before those in them: the first one has all of the container. */
static bool take_container(void *ctx, const char *path, const FTSENT *e)
{
	struct wanted_container *w = ctx;
	struct container c;
	const char *own;

	if (!container_of(&c, path))
		return false;
	own = w->is_pod ? c.pod : c.id;
	if (w->is_pod ? strcmp(c.pod, w->name) != 0 : !container_is(&c, w->name))
		return false;
	if (!w->id) {
		w->id = e->fts_statp->st_ino;
		snprintf(w->found, sizeof(w->found), "%s", own);
	}
	w->several |= strcmp(w->found, own) != 0;
	return w->several;
}

int cgroups_container_id(__u64 *id, const char *name, bool is_pod)
{
	struct wanted_container w = { .name = name, .is_pod = is_pod };
	int err = walk(take_container, &w);

	*id = w.id;
	if (w.several)
		return -ENOTUNIQ;
	return err == -ENOENT && w.id ? 0 : err;
}

const char *cgroups_selected(const char **what, const struct procfs_select *s)
{
	*what = s->unit ? "unit" : s->container ? "container" : s->pod ? "pod" : "cgroup";
	return s->unit ? s->unit : s->container ? s->container : s->pod ? s->pod : s->cgroup;
}

int cgroups_selected_id(__u64 *id, const struct procfs_select *s)
{
	if (s->unit)
		return cgroups_unit_id(id, s->unit);
	if (s->container || s->pod)
		return cgroups_container_id(id, s->container ?: s->pod, !s->container);
	return cgroups_id(id, s->cgroup);
}

static int add(struct cgroups *c, __u64 id, const char *path)
{
	struct cgroup_path *more = grow(c->path, c->n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	c->path = more;
	more[c->n] = (struct cgroup_path){ .id = id, .path = path ? strdup(path) : NULL };
	c->n += !path || more[c->n].path;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct cgroup_path *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Searches the sorted elements. */
static struct cgroup_path *find(const struct cgroups *c, __u64 id)
{
	const struct cgroup_path wanted = { .id = id };

	return c->sorted ? bsearch(&wanted, c->path, c->sorted, sizeof(wanted), by_id) : NULL;
}

/* Sorts all elements. Of several with one id, which have no path yet, one remains. */
static void sort(struct cgroups *c)
{
	size_t n = 0;

	qsort(c->path, c->n, sizeof(*c->path), by_id);
	for (size_t i = 0; i < c->n; i++) {
		if (!n || c->path[n - 1].id != c->path[i].id)
			c->path[n++] = c->path[i];
		else
			free(c->path[i].path);
	}
	c->n = c->sorted = n;
}

/* Ends early only if out of memory. */
static bool take_path(void *ctx, const char *path, const FTSENT *e)
{
	struct cgroups *c = ctx;
	struct cgroup_path *known = find(c, e->fts_statp->st_ino);

	if (known && !known->path)
		known->path = strdup(path);
	return !known && add(c, e->fts_statp->st_ino, path) < 0;
}

int cgroups_want(struct cgroups *c, __u64 id)
{
	return !id || find(c, id) ? 0 : add(c, id, NULL);
}

void cgroups_look_up(struct cgroups *c)
{
	if (c->n == c->sorted)
		return;
	sort(c);
	c->walks++;
	walk(take_path, c);
	sort(c);
}

bool cgroups_knows(const struct cgroups *c, __u64 id)
{
	return !id || find(c, id);
}

const char *cgroups_path(struct cgroups *c, __u64 id)
{
	const struct cgroup_path *known;

	if (cgroups_want(c, id) < 0)
		return NULL;
	cgroups_look_up(c);
	known = find(c, id);
	return known ? known->path : NULL;
}

void cgroups_fini(struct cgroups *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->path[i].path);
	free(c->path);
	*c = (struct cgroups){ 0 };
}

/* Slices contain units and do not count as units. */
static bool is_unit(const char *name, size_t n)
{
	static const char *const types[] = { ".service", ".scope",  ".socket", ".mount",
					     ".swap",	 ".device", ".timer" };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		size_t suffix = strlen(types[i]);

		if (n > suffix && !strncmp(name + n - suffix, types[i], suffix))
			return true;
	}
	return false;
}

/*
 * The first component that is a unit owns everything below, except below a user manager
 * (user@UID.service), which has units of its own.
 */
const char *cgroups_unit(const char *path, char *out, size_t bytes)
{
	*out = '\0';
	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (is_unit(path, n)) {
			snprintf(out, bytes, "%.*s", (int)n, path);
			if (strncmp(path, "user@", 5) != 0)
				break;
		}
		path += n;
	}
	return out;
}
