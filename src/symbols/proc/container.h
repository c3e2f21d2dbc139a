/* container.h - the container and the pod of a cgroup, by its path */
#ifndef PROFIL_SYMBOLS_PROC_CONTAINER_H
#define PROFIL_SYMBOLS_PROC_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_SHORT 12 /* digits of an id, as docker ps and crictl ps show them */

/* Empty strings: not known. */
struct container {
	char runtime[16]; /* docker, containerd, cri-o, podman, ... */
	char id[65];	  /* mostly 64 hex digits */
	char name[65];	  /* of runtimes that name cgroups after it: lxc, systemd-nspawn */
	char pod[37];	  /* the uid of a pod in Kubernetes */
};

/*
 * Reads the path of a cgroup, of version 1 or 2, below the mount point of the hierarchy. Of nested
 * containers and pods takes the innermost ones. Says whether there is a container or a pod.
 */
bool container_of(struct container *c, const char *cgroup);

/*
 * Writes the name of @c for people: its name, or the first digits of its id; "" without a
 * container. Returns @out.
 */
const char *container_title(const struct container *c, char *out, size_t bytes);

/* Says whether @name is the name of @c, or at least four digits with which its id begins. */
bool container_is(const struct container *c, const char *name);

#endif
