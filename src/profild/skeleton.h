/* skeleton.h - the BPF object, as bpftool has made it a C structure */
#ifndef PROFIL_PROFILD_SKELETON_H
#define PROFIL_PROFILD_SKELETON_H

#include "core/shared_maps.h" /* first: the object's variables are of these types */

#include "bpf/profil.skel.h"

/* Opens the object. NULL, with errno: there is no memory. */
struct profil_bpf *skeleton_open(void);

#endif
