/* disassembly.h - the instructions of a function, with sample counts */
#ifndef PROFIL_ANALYSIS_DISASSEMBLY_H
#define PROFIL_ANALYSIS_DISASSEMBLY_H

#include "listing.h"
#include "sample_location.h"

/* Of a larger function, this much around its hottest place is disassembled. */
#define DISASSEMBLY_BYTES_MAX (256u << 10)

struct symbols;

/* Disassembles functions of one profile; reads the symbols of each object once. */
struct disassembler {
	const struct profile *profile;
	const struct spots *spots;
	struct symbols **symbols; /* of each object; NULL: not read, or none */
	bool *tried;
};

/* @p and @s must outlive it. Returns 0 or -ENOMEM. disassembler_fini() in any case. */
int disassembler_init(struct disassembler *d, const struct profile *p, const struct spots *s);

void disassembler_fini(struct disassembler *d);

/*
 * Lists the instructions of @f, as objdump prints them. Returns 0, -ENOENT if its file was removed
 * or replaced, -ENOSYS without objdump, or another negative errno. listing_fini() in any case.
 */
int disassemble(struct listing *out, struct disassembler *d, const struct function *f);

#endif
