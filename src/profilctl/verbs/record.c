/* record.c - runs a command and profiles it from its first instruction */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"

#include "verb.h"
#include "profilctl/collect/recorder.h"
#include "table/unwind_forecast.h"
#include "formats/format.h"
#include "profilctl/output/output.h"
#include "base/progress.h"
#include "scope.h"

/*
 * After the recording profilctl waits this long for the command's end: on Ctrl-C profilctl can be
 * faster than the command's own handling of it.
 */
#define END_WAIT_MS 1000

struct command {
	pid_t pid;
	int gate;    /* pipe: a byte makes the command begin */
	int verdict; /* pipe: the errno of a failed exec, or nothing */
};

/* Runs in the child and does not return: waits at the gate, then execs the command. */
static void become_command(const struct recorder *r, char **argv, int gate, int verdict)
{
	char go;
	int err;

	self_restore(&r->self);
	if (read(gate, &go, 1) != 1)
		_exit(127);
	execvp(argv[0], argv);
	err = errno;
	if (write(verdict, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

/* Forks the command's process, which waits before exec. */
static int command_open(struct command *c, const struct recorder *r, char **argv)
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
		become_command(r, argv, gate[0], verdict[1]);
	}
	close(gate[0]);
	close(verdict[1]);
	c->gate = gate[1];
	c->verdict = verdict[0];
	return c->pid < 0 ? -errno : 0;
}

/* Lets the command begin. Returns 0 after exec, or its negative errno. */
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

/*
 * Stores how the command ended, if it has. A command that still waits at the gate ends without
 * exec.
 */
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

/* Starts the attachment: to the command, with its children, or to all processes. */
static int observe(struct recorder *r, struct command *c)
{
	struct profil_msg_observe m;
	int status = scope_of(&m, r->options);

	if (!status)
		status = scope_event(&m, r->profile, r->options);
	recorder_room(&m);
	if (!status)
		status = recorder_observe(r, &m, OPTIONS_RATE_DEFAULT);
	if (status)
		return status;
	r->profile->pid = c->pid;
	unwind_forecast(&r->feeder, r->options->argv[0]);
	return m.scope == PROFIL_SCOPE_PROCESSES ? recorder_add(r, c->pid)
						 : recorder_watch(r, c->pid);
}

/* Prints why the command cannot be run. */
static void refuse_command(const struct options *o, int err)
{
	const char *name = o->argv[0], *option;

	option = err == -ENOENT ? options_stack_mode(o, name) : NULL;
	if (option)
		log_err("cannot run %s: command not found (perf's '--call-graph %s' is %s)", name,
			name, option);
	else
		log_err("cannot run %s: %s", name,
			err == -ENOENT && !strchr(name, '/') ? "command not found"
							     : strerror(-err));
}

static int profile_command(struct recorder *r, struct command *c)
{
	const struct options *o = r->options;
	int status, err;

	err = join(&r->profile->command, o->argv, o->argc);
	if (!err)
		err = command_open(c, r, o->argv);
	if (err < 0) {
		log_err("cannot start %s: %s", o->argv[0], strerror(-err));
		return CTL_ERROR;
	}
	status = observe(r, c);
	if (status)
		return status;
	err = command_release(c);
	if (err < 0) {
		refuse_command(o, err);
		return err == -ENOENT ? CTL_NOT_FOUND : CTL_NOT_EXECUTABLE;
	}
	r->command = c->pid;
	recorder_run(r);
	command_close(c, r->profile, r->expired ? 0 : END_WAIT_MS, r->watched[0].pidfd);
	status = recorder_finish(r);
	unwind_forecast_keep(&r->feeder, o->argv[0], r->profile);
	return status;
}

/* The command's exit status, as in a shell, if profilctl succeeded. */
static int exit_status(const struct recorder *r, int status)
{
	const struct profile *p = r->profile;

	if (status == CTL_USAGE || status >= CTL_FAILED)
		return status;
	if ((status && status != CTL_PARTIAL) || (r->broken && p->end == PROFILE_RUNS_ON))
		return CTL_FAILED;
	return p->end == PROFILE_RUNS_ON  ? CTL_OK
	       : p->end == PROFILE_KILLED ? 128 + p->end_code
					  : p->end_code;
}

static int record(const struct options *o)
{
	struct command c = { .gate = -1, .verdict = -1 };
	struct recorder r;
	int status;

	status = recorder_init(&r, o);
	if (!status)
		status = profile_command(&r, &c);
	status = exit_status(&r, status);
	closep(&c.gate);
	closep(&c.verdict);
	recorder_fini(&r);
	return status;
}

int verb_record(const struct options *o)
{
	struct options own = *o;

	if (!o->argc && o->all)
		return verb_attach(o);
	if (!o->argc) {
		log_err("record: no command given; 'profilctl record -- COMMAND [ARG...]'");
		return CTL_USAGE;
	}
	own.apart = true;
	if (!o->output && !output_is_text(o)) {
		log_err("record: -f %s needs -o FILE ('-' is standard output, which is the "
			"command's as well)",
			o->format->name);
		return CTL_USAGE;
	}
	/* The command uses the terminal. */
	progress_off();
	return record(&own);
}
