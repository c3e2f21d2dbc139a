/* unwind_feeder.h - builds the unwind tables of profiled images for the kernel's stack walk */
#ifndef PROFIL_TABLE_UNWIND_FEEDER_H
#define PROFIL_TABLE_UNWIND_FEEDER_H

#include "unwind_pages.h"

/* Maps @fd, which stays the caller's, for the table @t. Returns 0 or a negative errno. */
int unwind_feeder_open(struct unwind_feeder *f, int fd, const struct table *t);

/* Puts the table of the ELF file @fd, named @path, into the map before an image of it exists. */
void unwind_feeder_expect(struct unwind_feeder *f, int fd, const char *path);

/* Says that all files expected so far are those of the program @fd, whose code one may compile. */
void unwind_feeder_program(struct unwind_feeder *f, int fd);

/* unwind_feeder_expect() for all files that process @pid has mapped executable. */
void unwind_feeder_prepare(struct unwind_feeder *f, pid_t pid);

/*
 * The same for those of @pids that have used most CPU time, as long as it takes neither long nor
 * most of the map: the tables of other files are added when they are sampled. Sorts @pids.
 */
void unwind_feeder_prepare_all(struct unwind_feeder *f, pid_t *pids, size_t n);

/*
 * Adds the tables of images that are new since the last call. Costs a comparison if there are none.
 */
void unwind_feeder_update(struct unwind_feeder *f, const struct table_reader *r);

/*
 * Adds the table of @image, which is known to @r, unless it has been added. If its user has no time
 * left (file_account.h), it waits until this is called again.
 */
void unwind_feeder_image(struct unwind_feeder *f, const struct table_reader *r, __u32 image);

/* Says whether the map had no room for the rows of @image. */
bool unwind_feeder_lacks_room(const struct unwind_feeder *f, __u32 image);

/*
 * Removes all rows, those of an earlier feeder as well, and waits until no walk reads them. The
 * descriptors of interpreters stay.
 */
void unwind_feeder_clear(struct unwind_feeder *f);

void unwind_feeder_close(struct unwind_feeder *f);

#endif
