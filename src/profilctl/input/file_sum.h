/* file_sum.h - adds up the profiles of files, of one machine or of many */
#ifndef PROFIL_PROFILCTL_INPUT_FILE_SUM_H
#define PROFIL_PROFILCTL_INPUT_FILE_SUM_H

#include "profile/merge.h"

/* Names of files, each allocated. Zeroed, it is empty. */
struct file_list {
	char **path;
	size_t n;
};

void file_list_fini(struct file_list *l);

/* Takes ownership of @path, which can be NULL: -ENOMEM. */
int file_list_add(struct file_list *l, char *path);

/*
 * Adds up the profiles in @files; those that were removed meanwhile are left out. A file that
 * cannot be read, or whose samples stand for something else, is left out with a message. Returns an
 * enum ctl_status: CTL_PARTIAL, with a profile, if some files are left out so.
 */
int file_sum(struct profile **out, const struct file_list *files);

/* The number of hosts whose samples @p has; 0: out of memory. */
size_t file_sum_hosts(const struct profile *p);

#endif
