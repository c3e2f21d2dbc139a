/* top_screen.h - top's full-screen output and keyboard input */
#ifndef PROFIL_PROFILCTL_TOP_TOP_SCREEN_H
#define PROFIL_PROFILCTL_TOP_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

struct screen;

/*
 * Switches the terminal to full screen. Returns 0, -ENOTTY without a capable terminal, or another
 * negative errno.
 */
int screen_open(struct screen **out);

/* Restores the terminal. */
void screen_close(struct screen *s);

void screen_size(const struct screen *s, size_t *lines, size_t *columns);

/* Shows the lines of @text, the first one as a heading, line @chosen (-1: none) highlighted. */
void screen_show(struct screen *s, const char *text, int chosen);

/* The next pressed key, a character or an enum top_key; 0: none. */
int screen_key(struct screen *s);

#endif
