/* top_view.c - the state of top's screen, which keys change */
#include <stdio.h>
#include <string.h>

#include "top_view.h"

const char top_view_help[] =
	"profilctl top - keys\n"
	"\n"
	"h, ?        this help, which any key closes\n"
	"up, down    choose a function; also j and k, page up and down, home\n"
	"enter       the source and instructions of that function\n"
	"c           with -g: what calls that function\n"
	"t           with -g: calls, from the starts of threads on\n"
	"s           sort by samples, function, object, process or, with -g,\n"
	"            by samples in a function and what it calls\n"
	"/           show what contains a text; escape shows all again\n"
	"space, p    pause, or go on\n"
	"q           leave a page, or top\n"
	"\n"
	"The table is of the last interval. pid and command are those of the\n"
	"process with the most samples in a function; 3* means three processes.\n";

static const char *const orders[] = {
	[TOP_BY_SAMPLES] = "samples",	      [TOP_BY_FUNCTION] = "function",
	[TOP_BY_OBJECT] = "object",	      [TOP_BY_PROCESS] = "process",
	[TOP_BY_TOTAL] = "inclusive samples",
};

static enum top_answer type(struct top_view *v, int key)
{
	size_t n = strlen(v->filter);

	if (key == TOP_KEY_ENTER) {
		v->typing = false;
	} else if (key == TOP_KEY_ESCAPE) {
		v->typing = false;
		*v->filter = '\0';
	} else if (key == TOP_KEY_BACKSPACE) {
		if (n)
			v->filter[n - 1] = '\0';
	} else if (key >= ' ' && key < 0x7f && n + 1 < sizeof(v->filter)) {
		v->filter[n] = (char)key;
		v->filter[n + 1] = '\0';
	}
	v->cursor = 0;
	return TOP_REDRAW;
}

static void move(size_t *at, int key, size_t page_lines)
{
	size_t by = key == TOP_KEY_PAGE_UP || key == TOP_KEY_PAGE_DOWN ? page_lines : 1;

	if (key == TOP_KEY_HOME)
		*at = 0;
	else if (key == TOP_KEY_UP || key == TOP_KEY_PAGE_UP || key == 'k')
		*at -= *at < by ? *at : by;
	else
		*at += by;
}

static enum top_answer leave(struct top_view *v, int key)
{
	if (v->page != TOP_TABLE) {
		v->page = TOP_TABLE;
		return TOP_REDRAW;
	}
	if (key != TOP_KEY_ESCAPE)
		return TOP_QUIT;
	if (!*v->filter)
		return TOP_NOTHING;
	*v->filter = '\0';
	return TOP_REDRAW;
}

enum top_answer top_view_key(struct top_view *v, int key, size_t page_lines)
{
	if (v->typing && key != TOP_KEY_RESIZE)
		return type(v, key);
	if (v->page == TOP_HELP && key != TOP_KEY_RESIZE) { /* any key, as in htop and less */
		v->page = TOP_TABLE;
		return TOP_REDRAW;
	}
	switch (key) {
	case 'q':
	case 'Q':
	case TOP_KEY_ESCAPE:
		return leave(v, key);
	case 'h':
	case '?':
		v->page = TOP_HELP;
		v->scroll = 0;
		return TOP_REDRAW;
	case 's':
		v->order = (v->order + 1) % (v->stacks ? TOP_ORDERS : TOP_BY_TOTAL);
		return TOP_REDRAW;
	case 'c':
	case 't':
		if (v->page != TOP_TABLE || !v->stacks)
			return TOP_NOTHING;
		v->page = key == 'c' ? TOP_CALLERS : TOP_TREE;
		v->scroll = 0;
		return TOP_CALLS;
	case '/':
		v->typing = v->page == TOP_TABLE;
		return TOP_REDRAW;
	case 'p':
	case ' ':
		v->paused = !v->paused;
		return TOP_REDRAW;
	case TOP_KEY_ENTER:
		return v->page == TOP_TABLE ? TOP_ZOOM : TOP_NOTHING;
	case 'j':
	case 'k':
	case TOP_KEY_UP:
	case TOP_KEY_DOWN:
	case TOP_KEY_PAGE_UP:
	case TOP_KEY_PAGE_DOWN:
	case TOP_KEY_HOME:
		move(v->page == TOP_TABLE ? &v->cursor : &v->scroll, key, page_lines);
		return TOP_REDRAW;
	case TOP_KEY_RESIZE:
		return TOP_REDRAW;
	}
	return TOP_NOTHING;
}

void top_view_note(const struct top_view *v, char *out, size_t bytes)
{
	*out = '\0';
	if (v->typing)
		snprintf(out, bytes, "filter: %s_ (enter keeps it, escape ends it)", v->filter);
	else if (v->paused || *v->filter || v->order)
		snprintf(out, bytes, "%s%s%s%s%s%s", v->paused ? "paused; " : "",
			 v->order ? "sorted by " : "", v->order ? orders[v->order] : "",
			 v->order ? "; " : "", *v->filter ? "filter: " : "h: help", v->filter);
}
