/* top_screen.c - top's full-screen output and keyboard input */
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "top_screen.h"
#include "top_view.h"

struct screen {
	SCREEN *terminal;
};

int screen_open(struct screen **out)
{
	struct screen *s;

	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !term || !*term ||
	    !strcmp(term, "dumb"))
		return -ENOTTY;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	setlocale(LC_CTYPE, "");
	s->terminal = newterm(NULL, stdout, stdin);
	if (!s->terminal) {
		free(s);
		return -ENOTTY;
	}
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	*out = s;
	return 0;
}

void screen_close(struct screen *s)
{
	if (!s)
		return;
	endwin();
	delscreen(s->terminal);
	free(s);
}

void screen_size(const struct screen *s, size_t *lines, size_t *columns)
{
	*lines = (size_t)LINES;
	*columns = (size_t)COLS;
}

/* The bytes of the first @columns characters of the @n bytes at @line: curses would wrap the rest.
 */
static size_t clipped(const char *line, size_t n, size_t columns)
{
	size_t at = 0;

	for (; at < n && (((unsigned char)line[at] & 0xc0) == 0x80 || columns); at++)
		columns -= ((unsigned char)line[at] & 0xc0) != 0x80;
	return at;
}

static void line_show(int at, const char *line, size_t n, bool chosen)
{
	if (at == 0 || chosen)
		attron(A_REVERSE);
	if (at == 2)
		attron(A_BOLD);
	mvaddnstr(at, 0, line, (int)n);
	if (at == 0 || chosen)
		hline(' ' | A_REVERSE, COLS);
	attrset(A_NORMAL);
}

void screen_show(struct screen *s, const char *text, int chosen)
{
	erase();
	for (int at = 0; *text && at < LINES; at++) {
		size_t n = strcspn(text, "\n");

		line_show(at, text, clipped(text, n, (size_t)COLS), at == chosen);
		text += n + (text[n] == '\n');
	}
	refresh();
}

int screen_key(struct screen *s)
{
	int key = getch();

	switch (key) {
	case ERR:
		return 0;
	case 27:
		return TOP_KEY_ESCAPE;
	case '\r':
	case '\n':
	case KEY_ENTER:
	case KEY_RIGHT:
		return TOP_KEY_ENTER;
	case KEY_LEFT:
		return TOP_KEY_ESCAPE;
	case 8:
	case 127:
	case KEY_BACKSPACE:
		return TOP_KEY_BACKSPACE;
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_RESIZE:
		return TOP_KEY_RESIZE;
	}
	return key < 0x80 ? key : TOP_KEY_RESIZE;
}
