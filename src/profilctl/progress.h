/* progress.h - a line on the terminal that says that something is being done */
#ifndef PROFIL_PROGRESS_H
#define PROFIL_PROGRESS_H

#include <stdbool.h>
#include <linux/types.h>

#define PROGRESS_EVERY_NS 1000000000u

/* Says whether there is a terminal to show it on. */
bool progress_wanted(void);

void progress_show(__u64 elapsed_ns, __u64 samples);

/* So many bytes of a debug file are here; @total 0: nobody knows of how many. */
void progress_fetch(long done, long total);

/* Takes it away again, so that the next line stands alone. */
void progress_clear(void);

#endif
