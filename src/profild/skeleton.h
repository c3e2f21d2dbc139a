/* skeleton.h - the BPF object, as bpftool has made it a C structure */
#ifndef PROFIL_SKELETON_H
#define PROFIL_SKELETON_H

#include "core/layout.h" /* first: the object's variables are of these types */

#include "bpf/profil.skel.h"

#endif
