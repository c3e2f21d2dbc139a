/* image_lookup.h - chooses how the BPF programs find the image of a pc */
#ifndef PROFIL_PROFILD_BPF_IMAGE_LOOKUP_H
#define PROFIL_PROFILD_BPF_IMAGE_LOOKUP_H

#include "core/observers.h"

struct profil_bpf;

/*
 * Tests the methods of enum profil_image_lookup in order and makes the BPF programs use the first
 * that works. Logs a warning if that is not the walk of the VMA tree.
 */
enum profil_image_lookup image_lookup_choose(const struct profil_bpf *skel);

#endif
