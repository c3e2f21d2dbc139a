/* sampler_bpf.h - the kernel's sampler, as its files share it */
#ifndef PROFIL_PROFILD_BPF_SAMPLER_BPF_H
#define PROFIL_PROFILD_BPF_SAMPLER_BPF_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"
#include "profild/profile/sampler.h"

struct clocks;
struct event_links;
struct late_programs;
struct reservations;
struct lifecycle_hooks;
struct ring_buffer;
struct store;

struct sampler_bpf {
	struct sampler s;
	struct store *store;
	struct maps maps;
	struct reservations *reservations;
	struct clocks *clocks;
	struct event_links *events;
	struct late_programs *programs;
	struct lifecycle_hooks *hooks;
	struct target *target[PROFIL_MAX_TARGETS];
	uint32_t end; /* 1 + the highest index in use */

	struct ring_buffer *ring;
	bool consuming;
	uint64_t turn_ends_ns; /* when it stops; 0: at the last event */
	sd_event_source *ring_source;
};

/* Adds @t, which is in the maps, to the targets that passes drain. */
void sampler_bpf_add(struct sampler_bpf *b, struct target *t);

/* Continues the targets of an earlier daemon's profiles; clears those of its attachments. */
void sampler_bpf_recover(struct sampler *s);

/* Attachments as the BPF programs see them: slots, tables, targets (observers.c). */
int observers_open(struct place_source **out, struct sampler_bpf *b, sd_event *event);
struct place_source *observers_close(struct place_source *source);

#endif
