/* image_file.h - opens the file of an image, while a process has it mapped or later */
#ifndef PROFIL_TABLE_IMAGE_FILE_H
#define PROFIL_TABLE_IMAGE_FILE_H

#include <stddef.h>

#include "core/observe_maps.h"

/*
 * Opens the file of @image, whose path is @path: through the first process that mapped it, by its
 * path in that process's root or in ours, or through another process in the same mount namespace.
 * Rejects a file with another build id or, if the image has none, another inode. Returns a
 * descriptor or -ENOENT.
 */
int image_file_open(const struct profil_image *image, const char *path);

/* Writes the build id of @image in hex, "" if the kernel found none. */
void image_file_build_id(const struct profil_image *image, char *out, size_t bytes);

#endif
