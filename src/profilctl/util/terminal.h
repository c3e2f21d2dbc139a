/* terminal.h - whether standard output is a terminal, its width and colours, and the pager */
#ifndef PROFIL_PROFILCTL_UTIL_TERMINAL_H
#define PROFIL_PROFILCTL_UTIL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Says whether standard output is a terminal, also through the pager. */
bool terminal_is_stdout(void);

/* Says whether @fd is a terminal with colours, also through the pager, and $NO_COLOR is not set. */
bool terminal_has_colours(int fd);

/* The width of the terminal @fd, or $COLUMNS; 0: unknown. */
size_t terminal_columns(int fd);

/*
 * Sends standard output, if it is a terminal, through $PAGER, by default less, which exits at once
 * if the text fits on the screen. An empty $PAGER and "cat" mean no pager. pager_end() waits for
 * its exit.
 */
void pager_begin(void);
void pager_end(void);

/*
 * Writes what standard output still buffers, unless pager_end() has closed it. Returns 0 or a
 * negative errno, also after an earlier write failed.
 */
int stdout_flush(void);

/*
 * Says whether there is a pager. Its user can quit before all is written, so EPIPE is no error
 * then.
 */
bool pager_is_on(void);

#endif
