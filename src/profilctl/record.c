/* record.c - runs a command and profiles it from its first instruction on */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "core/scope.h"

#include "verb.h"
#include "watch.h"

/* Its last tick comes before its end, and Ctrl-C before what it does on that: so long we wait. */
#define END_WAIT_MS 1000

struct command {
	pid_t pid;
	int gate;    /* written to, it lets the command begin */
	int verdict; /* the errno of an exec that failed, or nothing */
};

/* Runs in the child, and does not return: waits for the word, and becomes the command. */
static void become_command(const struct watch *w, char **argv, int gate, int verdict)
{
	char go;
	int err;

	self_restore(&w->self);
	if (read(gate, &go, 1) != 1)
		_exit(127);
	execvp(argv[0], argv);
	err = errno;
	if (write(verdict, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

/* Makes the process of the command and holds it before its first instruction. */
static int command_open(struct command *c, const struct watch *w, char **argv)
{
	int gate[2], verdict[2];

	*c = (struct command){ .gate = -1, .verdict = -1 };
	if (pipe2(gate, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(verdict, O_CLOEXEC) < 0) {
		int err = -errno;

		close(gate[0]);
		close(gate[1]);
		return err;
	}
	c->pid = fork();
	if (!c->pid) {
		close(gate[1]);
		become_command(w, argv, gate[0], verdict[1]);
	}
	close(gate[0]);
	close(verdict[1]);
	c->gate = gate[1];
	c->verdict = verdict[0];
	return c->pid < 0 ? -errno : 0;
}

/* Lets it begin. Returns 0 once it has, or why it could not. */
static int command_release(struct command *c)
{
	ssize_t n;
	int err;

	if (write(c->gate, "", 1) != 1)
		return -errno;
	do {
		n = read(c->verdict, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? -err : 0;
}

/* Takes note of how it ended, if it has; one that we still hold ends unrun. */
static void command_close(struct command *c, struct profile *p, int timeout_ms, int pidfd)
{
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };
	struct rusage used;
	int status;

	closep(&c->gate);
	closep(&c->verdict);
	if (c->pid <= 0 || poll(&gone, 1, timeout_ms) <= 0 ||
	    wait4(c->pid, &status, WNOHANG, &used) != c->pid)
		return;
	p->end = WIFSIGNALED(status) ? PROFILE_KILLED : PROFILE_EXITED;
	p->end_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	p->cpu_ns = 1000000000u * (__u64)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		    1000u * (__u64)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int join(char **out, char **argv, int argc)
{
	size_t bytes;
	FILE *f = open_memstream(out, &bytes);

	if (!f)
		return -errno;
	for (int i = 0; i < argc; i++)
		fprintf(f, "%s%s", i ? " " : "", argv[i]);
	return fclose(f) ? -errno : 0;
}

static int profile_command(struct watch *w, struct command *c)
{
	const struct options *o = w->options;
	int status, err;

	err = join(&w->profile->command, o->argv, o->argc);
	if (!err)
		err = command_open(c, w, o->argv);
	if (err < 0) {
		log_err("cannot start %s: %s", o->argv[0], strerror(-err));
		return CTL_ERROR;
	}
	status = watch_attach(w, c->pid, true);
	if (status)
		return status;
	err = command_release(c);
	if (err < 0) {
		log_err("cannot run %s: %s; is it a program, and in PATH?", o->argv[0],
			strerror(-err));
		return CTL_ERROR;
	}
	watch_run(w);
	command_close(c, w->profile, w->expired ? 0 : END_WAIT_MS, w->sessions[0].pidfd);
	return watch_finish(w);
}

int verb_record(const struct options *o)
{
	struct command c = { .gate = -1, .verdict = -1 };
	struct watch w;
	int status;

	if (!o->argc) {
		log_err("record: no command given; 'profilctl record -- COMMAND [ARG...]'");
		return CTL_USAGE;
	}
	status = watch_init(&w, o);
	if (!status)
		status = profile_command(&w, &c);
	closep(&c.gate);
	closep(&c.verdict);
	watch_fini(&w);
	return status;
}
