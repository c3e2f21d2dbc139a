/* terminal.c - whether standard output is a terminal, its width and colours, and the pager */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "terminal.h"

/* Standard output before the pager. */
static struct {
	pid_t pid; /* 0: no pager */
	size_t columns;
	bool ended; /* and has closed standard output */
} pager;

bool pager_is_on(void)
{
	return pager.pid > 0;
}

bool terminal_is_stdout(void)
{
	return pager_is_on() || isatty(STDOUT_FILENO);
}

bool terminal_has_colours(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return (fd == STDOUT_FILENO ? terminal_is_stdout() : isatty(fd)) && !(no && *no) && term &&
	       strcmp(term, "dumb") != 0;
}

size_t terminal_columns(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (fd == STDOUT_FILENO && pager_is_on())
		return pager.columns;
	if (!ioctl(fd, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return columns ? strtoul(columns, NULL, 10) : 0;
}

/* Runs in the child and does not return. */
static void become_pager(const char *command, int in)
{
	dup2(in, STDIN_FILENO);
	close(in);
	setenv("LESS", "FRX", false);
	if (command)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	execlp("less", "less", (char *)NULL);
	execlp("more", "more", (char *)NULL);
	execlp("cat", "cat", (char *)NULL);
	_exit(127);
}

void pager_begin(void)
{
	const char *command = getenv("PAGER"), *term = getenv("TERM");
	size_t columns = terminal_columns(STDOUT_FILENO);
	int ends[2];
	pid_t pid;

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb") ||
	    (command && (!*command || !strcmp(command, "cat"))) || pipe(ends) < 0)
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(ends[1]);
		become_pager(command, ends[0]);
	}
	close(ends[0]);
	if (pid > 0) {
		pager.columns = columns;
		pager.pid = pid;
		dup2(ends[1], STDOUT_FILENO);
		signal(SIGPIPE, SIG_IGN);
		signal(SIGINT, SIG_IGN); /* Ctrl-C is for the pager */
	}
	close(ends[1]);
}

void pager_end(void)
{
	if (!pager_is_on())
		return;
	fclose(stdout);
	waitpid(pager.pid, NULL, 0);
	pager.pid = 0;
	pager.ended = true;
}

int stdout_flush(void)
{
	if (pager.ended)
		return 0;
	return fflush(stdout) ? -errno : ferror(stdout) ? -EIO : 0;
}
