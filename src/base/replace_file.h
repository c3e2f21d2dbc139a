/* replace_file.h - replaces a file by a new one once that is complete and on disk */
#ifndef PROFIL_BASE_REPLACE_FILE_H
#define PROFIL_BASE_REPLACE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* All zero: nothing is pending. */
struct replace_file {
	char *path;	 /* of the file to replace, symbolic links resolved */
	char *temporary; /* NULL: the new file has no name yet */
	bool keep;
};

/*
 * Opens a new file with @mode in the folder of @path. @keep: the replaced file is renamed to
 * PATH.old. If @path exists and is not a regular file (a pipe, /dev/null), it is opened itself and
 * nothing is pending. Returns 0 or a negative errno.
 */
int replace_begin(struct replace_file *r, FILE **out, const char *path, mode_t mode, bool keep);

/*
 * What made a write to @out fail before, if one did, by the errno that was 0 when @out was opened;
 * else @err. The last flush can succeed, and a writer knows only that something failed.
 */
int replace_cause(FILE *out, int err);

/*
 * Writes @out to disk and renames it to its path. @out is not closed. Returns 0 or a negative
 * errno.
 */
int replace_commit(struct replace_file *r, FILE *out);

/* Removes the new file if it was not committed. */
void replace_abort(struct replace_file *r);

#endif
