/* skeleton.h - the BPF object, as bpftool has made it a C structure */
#ifndef PROFIL_PROFILD_SKELETON_H
#define PROFIL_PROFILD_SKELETON_H

#include "core/shared_maps.h" /* first: the object's variables are of these types */

#include "bpf/profil.skel.h"

/*
 * Opens the object. Types that this kernel does not have are looked for in its BTF alone: without
 * the path libbpf would also search the modules, whose list only CAP_SYS_ADMIN may read.
 */
static inline struct profil_bpf *skeleton_open(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = "/sys/kernel/btf/vmlinux");

	return profil_bpf__open_opts(&opts);
}

#endif
