/* profile_file.h - reads a profile from a file, or says what else the file is */
#ifndef PROFIL_PROFILE_PROFILE_FILE_H
#define PROFIL_PROFILE_PROFILE_FILE_H

#include <stdio.h>

#include "profile.h"

/*
 * Reads a profile that json_write() has written, compressed or not; @bytes_max limits both sizes.
 * Returns 0, or a negative errno with the reason in @why.
 */
int profile_file_read(struct profile **out, FILE *in, size_t bytes_max, char *why, size_t bytes);

#endif
