/* progress.h - a line of progress on the terminal */
#ifndef PROFIL_BASE_PROGRESS_H
#define PROFIL_BASE_PROGRESS_H

#include <stdbool.h>
#include <linux/types.h>

#define PROGRESS_EVERY_NS 1000000000u

/* Disables the line: another program uses the terminal. */
void progress_off(void);

/* Says whether standard error is a terminal and progress_off() was not called. */
bool progress_wanted(void);

void progress_show(__u64 elapsed_ns, __u64 samples);

/* @done bytes of a debug file have been read; @total 0: its size is unknown. */
void progress_fetch(long done, long total);

/* Erases the line before other output. */
void progress_clear(void);

#endif
