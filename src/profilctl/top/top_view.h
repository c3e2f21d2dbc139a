/* top_view.h - the state of top's screen, which keys change */
#ifndef PROFIL_PROFILCTL_TOP_TOP_VIEW_H
#define PROFIL_PROFILCTL_TOP_TOP_VIEW_H

#include <stdbool.h>
#include <stddef.h>

#include "top_table.h"

/* Keys that are not characters. */
enum top_key {
	TOP_KEY_UP = 0x1000,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_RESIZE,
	TOP_KEY_ESCAPE,
	TOP_KEY_ENTER,
	TOP_KEY_BACKSPACE,
};

enum top_page {
	TOP_TABLE,
	TOP_HELP,
	TOP_FUNCTION, /* the annotated function at the cursor */
	TOP_CALLERS,  /* of the function at the cursor */
	TOP_TREE,     /* calls, from the start of the threads */
};

struct top_view {
	enum top_page page;
	enum top_order order;
	bool stacks; /* the profile has stacks */
	bool paused;
	bool typing; /* the filter is being typed */
	char filter[64];
	size_t cursor; /* a row of the table */
	size_t scroll; /* first visible line of another page */
};

enum top_answer {
	TOP_NOTHING,
	TOP_REDRAW,
	TOP_ZOOM,  /* annotate the function at the cursor */
	TOP_CALLS, /* show callers or calls on the new page */
	TOP_QUIT,
};

/* Handles a key. @page_lines: the lines that Page Up and Page Down scroll. */
enum top_answer top_view_key(struct top_view *v, int key, size_t page_lines);

/* Writes a line about the state and its keys, which can be "". */
void top_view_note(const struct top_view *v, char *out, size_t bytes);

extern const char top_view_help[];

#endif
