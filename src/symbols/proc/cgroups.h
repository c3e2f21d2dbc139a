/* cgroups.h - directories of the cgroup2 hierarchy: their ids, paths and systemd units */
#ifndef PROFIL_SYMBOLS_PROC_CGROUPS_H
#define PROFIL_SYMBOLS_PROC_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "procfs.h"

/*
 * @path without the mount point of the hierarchy, or without a usual one, if it begins with that: a
 * part of @path, which can be empty.
 */
const char *cgroups_below_mount(const char *path);

/* Cache of paths by id (the directory's inode). Zeroed, it is empty. */
struct cgroups {
	struct cgroup_path *path;
	size_t n;
	size_t sorted; /* these have been looked up; the others are wanted */
	size_t walks;  /* of the whole hierarchy, so far */
};

/*
 * Finds the id of the cgroup at @path, relative to the root of the hierarchy or with its mount
 * point. Returns 0 or a negative errno: -ENOTSUP if no cgroup2 is mounted.
 */
int cgroups_id(__u64 *id, const char *path);

/* Finds the id of the cgroup of systemd unit @unit; ".service" can be omitted. Same errors. */
int cgroups_unit_id(__u64 *id, const char *unit);

/*
 * Finds the id of the cgroup of a container, by its name or the first digits of its id, or of the
 * pod with uid @name. Same errors, and -ENOTUNIQ if there are several.
 */
int cgroups_container_id(__u64 *id, const char *name, bool is_pod);

/*
 * The name of the cgroup, unit, container or pod that @s selects, and which of these it is; NULL:
 * none. cgroups_selected_id() finds its id. Same errors.
 */
const char *cgroups_selected(const char **what, const struct procfs_select *s);
int cgroups_selected_id(__u64 *id, const struct procfs_select *s);

/*
 * Walks cost a stat() for each directory, and any user may be able to create and remove
 * directories. So many ids are looked up in one walk: cgroups_want() notes an unknown id, and
 * cgroups_look_up() walks if there is one. A removed cgroup is remembered, too. cgroups_knows()
 * says whether @id has been looked up. cgroups_want() returns 0 or -ENOMEM.
 */
int cgroups_want(struct cgroups *c, __u64 id);
void cgroups_look_up(struct cgroups *c);
bool cgroups_knows(const struct cgroups *c, __u64 id);

/*
 * The path of cgroup @id, relative to the root of the hierarchy; NULL: it does not exist. Valid
 * until cgroups_fini(). Looks up an unknown id.
 */
const char *cgroups_path(struct cgroups *c, __u64 id);

void cgroups_fini(struct cgroups *c);

/*
 * Writes the systemd unit of cgroup @path, within a user manager the innermost one; "" if it has
 * none. Returns @out.
 */
const char *cgroups_unit(const char *path, char *out, size_t bytes);

#endif
