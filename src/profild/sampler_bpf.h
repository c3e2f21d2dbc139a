/* sampler_bpf.h - what the two files of the kernel's sampler share */
#ifndef PROFIL_SAMPLER_BPF_H
#define PROFIL_SAMPLER_BPF_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"
#include "sampler.h"

struct clocks;
struct holdings;
struct lifetimes;
struct ring_buffer;
struct store;

struct sampler_bpf {
	struct sampler s;
	struct store *store;
	struct maps maps;
	struct holdings *holdings;
	struct clocks *clocks;
	struct lifetimes *lifetimes;
	struct target *target[PROFIL_MAX_TARGETS];
	uint32_t end; /* no target from this one on */

	struct ring_buffer *ring;
	bool consuming;
	sd_event_source *ring_source;
};

/* The daemon looks at @t, which is in the maps, from now on. */
void sampler_bpf_add(struct sampler_bpf *b, struct target *t);

/* The programs run while there is a target for them: there is @t more, or less. */
int sampler_bpf_use(struct sampler_bpf *b, struct target *t);
void sampler_bpf_unuse(struct sampler_bpf *b, const struct target *t);

/* Every target that has an owner goes on; a reader's, whose connection is gone, does not. */
void sampler_bpf_recover(struct sampler *s);

#endif
