/* screen.c - the terminal as a whole, for top */
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "screen.h"

struct screen {
	SCREEN *terminal;
};

int screen_open(struct screen **out)
{
	struct screen *s;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
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
	(void)s;
	*lines = (size_t)LINES;
	*columns = (size_t)COLS;
}

/* Whatever is longer than the line is cut. */
static void line_show(int at, const char *line, size_t n)
{
	if (at == 0)
		attron(A_REVERSE);
	if (at == 2)
		attron(A_BOLD);
	mvaddnstr(at, 0, line, (int)n);
	if (at == 0)
		hline(' ' | A_REVERSE, COLS);
	attrset(A_NORMAL);
}

void screen_show(struct screen *s, const char *text)
{
	(void)s;
	erase();
	for (int at = 0; *text && at < LINES; at++) {
		size_t n = strcspn(text, "\n");

		line_show(at, text, n < (size_t)COLS ? n : (size_t)COLS);
		text += n + (text[n] == '\n');
	}
	refresh();
}

bool screen_keys(struct screen *s, bool *changed)
{
	int key;

	(void)s;
	*changed = false;
	while ((key = getch()) != ERR) {
		if (key == 'q' || key == 'Q' || key == 27)
			return false;
		*changed |= key == KEY_RESIZE || key == ' ';
	}
	return true;
}
