/* target_use.h - what is attached while a target counts: the lifecycle hooks, and its clock */
#ifndef PROFIL_PROFILD_BPF_TARGET_USE_H
#define PROFIL_PROFILD_BPF_TARGET_USE_H

#include "sampler_bpf.h"

/*
 * Has the program of @t's clock loaded, then reserves as reservation_begin(): with -EINPROGRESS,
 * @done is called from the event loop, unless target_unreserve() is called before.
 */
int target_reserve(struct sampler_bpf *b, struct target *t, void (*done)(void *arg, int err),
		   void *arg);
void target_unreserve(struct sampler_bpf *b, struct target *t);

/* Counts @t as a user of the hooks and of its clock. Returns 0 or a negative errno. */
int target_use(struct sampler_bpf *b, struct target *t);
void target_unuse(struct sampler_bpf *b, const struct target *t);

#endif
