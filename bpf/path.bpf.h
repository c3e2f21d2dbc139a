/* path.bpf.h - a file's path in its mount namespace, read from the dentries and mounts */
#ifndef PROFIL_BPF_PATH_BPF_H
#define PROFIL_BPF_PATH_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "core/observe_maps.h"

struct qstr {
	const unsigned char *name;
} __attribute__((preserve_access_index));

struct super_block;

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
} __attribute__((preserve_access_index));

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct super_block *d_sb;
} __attribute__((preserve_access_index));

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
} __attribute__((preserve_access_index));

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} __attribute__((preserve_access_index));

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} __attribute__((preserve_access_index));

struct path_walk {
	struct profil_image *image;
	struct dentry *dentry;
	struct mount *mount;
	__u32 used; /* bytes of image->path */
	__u32 whole;
};

/* Components and mount points up to the root, at most. */
#define PATH_STEPS 64

/*
 * Appends one component. The verifier wants constant sizes, hence four of them; a name that fills
 * its size may have been cut. Returns its bytes, or 0 if there is no room.
 */
static __always_inline __u32 path_component(struct profil_image *image, __u32 used,
					    const unsigned char *name)
{
	long n = 0, most = 0;

	if (used <= 128) {
		most = 256;
		n = bpf_probe_read_kernel_str(image->path + used, 256, name);
	} else if (used <= 256) {
		most = 128;
		n = bpf_probe_read_kernel_str(image->path + used, 128, name);
	} else if (used <= 320) {
		most = 64;
		n = bpf_probe_read_kernel_str(image->path + used, 64, name);
	} else if (used <= 352) {
		most = 32;
		n = bpf_probe_read_kernel_str(image->path + used, 32, name);
	}
	return n > 1 && n < most ? (__u32)n : 0;
}

static long path_step(__u32 i, struct path_walk *w)
{
	struct dentry *dentry = w->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	struct mount *mount = w->mount;
	__u32 n;

	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root)) {
		struct mount *below = BPF_CORE_READ(mount, mnt_parent);

		w->whole = below == mount;
		if (w->whole)
			return 1;
		w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		w->mount = below;
		return 0;
	}
	if (parent == dentry && i) /* outside of the mount's root: no path reaches it */
		return 1;
	n = path_component(w->image, w->used, BPF_CORE_READ(dentry, d_name.name));
	if (!n)
		return 1;
	w->used += n;
	w->dentry = parent;
	w->whole = parent == dentry; /* a memfd has a name and no directory */
	return w->whole;
}

/* Reads @path, the last component first: if it does not fit, the file's name is kept. */
static __always_inline void path_read(struct profil_image *image, const struct path *path)
{
	struct path_walk w = { .image = image };
	__u64 mnt = (__u64)BPF_CORE_READ(path, mnt);

	w.dentry = BPF_CORE_READ(path, dentry);
	w.mount = (void *)(mnt - bpf_core_field_offset(struct mount, mnt));
	bpf_loop(PATH_STEPS, path_step, &w, 0);
	image->path_cut = !w.whole;
}

#endif
