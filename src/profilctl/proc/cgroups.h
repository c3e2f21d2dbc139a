/* cgroups.h - directories of the cgroup2 hierarchy: their ids, paths and systemd units */
#ifndef PROFIL_PROFILCTL_PROC_CGROUPS_H
#define PROFIL_PROFILCTL_PROC_CGROUPS_H

#include <stddef.h>
#include <linux/types.h>

/*
 * @path without the mount point of the hierarchy, or without a usual one, if it begins with that: a
 * part of @path, which can be empty.
 */
const char *cgroups_below_mount(const char *path);

/* Cache of paths by id (the directory's inode). Zeroed, it is empty. */
struct cgroups {
	struct cgroup_path *path;
	size_t n;
	size_t walks; /* of the whole hierarchy, so far */
};

/*
 * Finds the id of the cgroup at @path, relative to the root of the hierarchy or with its mount
 * point. Returns 0 or a negative errno: -ENOTSUP if no cgroup2 is mounted.
 */
int cgroups_id(__u64 *id, const char *path);

/* Finds the id of the cgroup of systemd unit @unit; ".service" can be omitted. Same errors. */
int cgroups_unit_id(__u64 *id, const char *unit);

/*
 * The path of cgroup @id, relative to the root of the hierarchy; NULL: it does not exist. Valid
 * until cgroups_fini(). Rereads the hierarchy for an unknown id.
 */
const char *cgroups_path(struct cgroups *c, __u64 id);

void cgroups_fini(struct cgroups *c);

/*
 * Writes the systemd unit of cgroup @path, within a user manager the innermost one; "" if it has
 * none. Returns @out.
 */
const char *cgroups_unit(const char *path, char *out, size_t bytes);

#endif
