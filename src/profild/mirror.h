/* mirror.h - counts from the maps into a process's buffer */
#ifndef PROFIL_MIRROR_H
#define PROFIL_MIRROR_H

#include "profild.h"
#include "session.h"

/* What the samplers hand over goes through here; see struct sampler_sink. */
void mirror_counts(struct target *t, uint32_t owner, uint32_t bin, const uint32_t *count,
		   uint32_t n, struct profil_journal *journal);

/* Takes to the buffer what a killed daemon had on its way there, if it was of @t. */
void mirror_redo(struct target *t, const struct profil_journal *j);

/* A tick that came as a pc: it is binned here, or it is what the buffer takes (PROFIL_START_PCS).
 */
void mirror_pc(struct target *t, uint64_t pc);

/* Brings the session's buffers up to date. Whoever calls it looks at session->over afterwards. */
void mirror_session(struct session *s);

/* Sees to it that there is a pass before long, after any event: it may have brought news. */
void mirror_arm(struct profild *d);

/* Makes a pass if it is time for one. Returns in how many ns the next is due; UINT64_MAX: never. */
uint64_t mirror_run(struct profild *d);

#endif
