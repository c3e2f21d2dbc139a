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

/* Stores how the command ended, if it has. */
static void note_end(struct recorder *r)
{
	struct profile *p = r->profile;
	int status;

	if (!command_wait(&r->command, &status, r->expired ? 0 : END_WAIT_MS))
		return;
	p->end = WIFSIGNALED(status) ? PROFILE_KILLED : PROFILE_EXITED;
	p->end_code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
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
static int observe(struct recorder *r)
{
	pid_t pid = r->command.pid;
	struct profil_msg_observe m;
	int status = scope_of(&m, r->options);

	if (!status)
		status = scope_event(&m, r->profile, r->options);
	recorder_room(&m);
	if (!status)
		status = recorder_observe(r, &m, OPTIONS_RATE_DEFAULT);
	if (status)
		return status;
	r->profile->pid = pid;
	unwind_forecast(&r->feeder, r->options->argv[0]);
	status = m.scope == PROFIL_SCOPE_PROCESSES ? recorder_add(r, pid) : recorder_watch(r, pid);
	/* With a duration the recording continues while a process of the command runs. */
	if (!status && r->options->duration_ns)
		status = recorder_watch(r, r->command.keeper);
	return status;
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

static int profile_command(struct recorder *r)
{
	const struct options *o = r->options;
	int status, err;

	err = join(&r->profile->command, o->argv, o->argc)
		      ?: command_open(&r->command, &r->self, o->argv);
	if (err < 0) {
		log_err("cannot start %s: %s", o->argv[0], strerror(-err));
		return CTL_ERROR;
	}
	status = observe(r);
	if (status)
		return status;
	if (recorder_interrupted(r)) {
		log_err("interrupted before %s began", o->argv[0]);
		return CTL_ERROR;
	}
	err = command_release(&r->command);
	if (err < 0) {
		refuse_command(o, err);
		return err == -ENOENT ? CTL_NOT_FOUND : CTL_NOT_EXECUTABLE;
	}
	recorder_run(r);
	note_end(r);
	return recorder_finish(r);
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
	struct recorder r;
	int status;

	status = recorder_init(&r, o);
	if (!status)
		status = profile_command(&r);
	status = exit_status(&r, status);
	recorder_fini(&r);
	return status;
}

int verb_record(const struct options *o)
{
	struct options own = *o;

	if (!o->argc && o->everything)
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
