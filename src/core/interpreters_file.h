/* interpreters_file.h - the file of interpreters' descriptors for the machine's profile */
#ifndef PROFIL_CORE_INTERPRETERS_FILE_H
#define PROFIL_CORE_INTERPRETERS_FILE_H

#include "interpreter_maps.h"
#include "unwind_maps.h"

#define PROFIL_INTERPRETERS_FILE "/var/lib/profil/interpreters"
#define PROFIL_INTERPRETERS_MAGIC "profilin"
#define PROFIL_INTERPRETERS_VERSION 7
#define PROFIL_INTERPRETER_FILES 128

/* The whole file. 'profilctl interpreters' writes it, profild reads it. */
struct profil_interpreters_file {
	char magic[8];
	__u32 version;
	__u32 interpreters; /* used elements of the first array */
	__u32 files;	    /* of the second one */
	__u32 zero;
	struct profil_interpreter interpreter[PROFIL_INTERPRETERS];
	struct profil_unwind_file file[PROFIL_INTERPRETER_FILES]; /* without rows */
};
_Static_assert(sizeof(struct profil_interpreters_file) ==
		       24 + 128 * PROFIL_INTERPRETERS + 32 * PROFIL_INTERPRETER_FILES,
	       "no padding");

#endif
