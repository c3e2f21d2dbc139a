/* screen.h - the terminal as a whole, for top */
#ifndef PROFIL_SCREEN_H
#define PROFIL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

struct screen;

/* Takes the terminal over. -ENOTTY where it is none. */
int screen_open(struct screen **out);

/* Gives it back as it was. */
void screen_close(struct screen *s);

void screen_size(const struct screen *s, size_t *lines, size_t *columns);

/* Shows the lines of @text, the first one as a heading. */
void screen_show(struct screen *s, const char *text);

/* Takes in keys, without waiting; false: one of them says that it is over. */
bool screen_keys(struct screen *s, bool *changed);

#endif
