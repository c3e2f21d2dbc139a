/* daemon.c - the daemon that is there, or one of our own for as long as we run */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "core/log.h"
#include "core/scope.h"
#include "core/wire.h"

#include "beside.h"
#include "daemon.h"
#include "verb.h"

#define READY_TIMEOUT_MS 30000
/* A program that is killed loses the ticks that are not in its memory yet. */
#define SERVING_INTERVAL_MS "10"

struct private_daemon {
	char dir[64];
	char socket[80];
	char notify[80];
	pid_t pid;
	int pidfd;
	int notify_fd;
	int words; /* what it says on stderr */
};

static const char *socket_of(const struct options *o)
{
	const char *path = o->socket ? o->socket : getenv(PROFIL_SOCKET_ENV);

	return path && *path ? path : PROFIL_SOCKET_DEFAULT;
}

const char *daemon_socket(const struct private_daemon *daemon, const struct options *o)
{
	return daemon ? daemon->socket : socket_of(o);
}

static bool no_daemon(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED || err == -ENOTDIR;
}

int daemon_again(struct reader **r, const struct private_daemon *daemon, const struct options *o)
{
	int err = reader_open(r, daemon_socket(daemon, o));

	return no_daemon(err) ? -ENODATA : err;
}

pid_t daemon_pid(const struct private_daemon *daemon)
{
	return daemon ? daemon->pid : 0;
}

/* Says why the daemon at the socket is of no use. */
static int refused(const struct options *o, int err)
{
	const char *path = socket_of(o);

	if (err == -EACCES || err == -EPERM) {
		log_err("may not connect to %s; ask whoever runs profild there", path);
		return CTL_DENIED;
	}
	if (err == -EAGAIN) {
		log_err("profild at %s has as many clients as it takes; try again later", path);
		return CTL_ERROR;
	}
	log_err("cannot talk to profild at %s: %s", path, strerror(-err));
	return CTL_ERROR;
}

int daemon_connect(struct reader **r, const struct options *o)
{
	int err = reader_open(r, o->socket);

	if (!err)
		return CTL_OK;
	if (!no_daemon(err))
		return refused(o, err);
	log_err("no profild answers at %s; start it with 'systemctl start profild'", socket_of(o));
	return CTL_NO_DAEMON;
}

/* Opens the socket through which the daemon says READY=1. */
static int notify_open(struct private_daemon *d)
{
	struct sockaddr_un address;
	int err = wire_address(&address, d->notify);

	if (err < 0)
		return err;
	d->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->notify_fd < 0 ||
	    bind(d->notify_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

/* The profild beside ourselves comes first: what was built together runs together. */
static void exec_daemon(char *const argv[])
{
	char path[PATH_MAX];

	if (!beside(path, "profild"))
		execv(path, argv);
	if (!beside(path, "../sbin/profild"))
		execv(path, argv);
	execv("/usr/sbin/profild", argv);
	execv("/usr/local/sbin/profild", argv);
	execvp("profild", argv);
}

/* Runs in the child, and does not return. */
static void become_daemon(const struct private_daemon *d, const struct options *o, pid_t parent)
{
	const char *argv[11] = { "profild", "--ephemeral", "--socket", d->socket };
	size_t n = 4;
	char rate[24];
	sigset_t none;

	if (o->clock) {
		argv[n++] = "--clock";
		argv[n++] = o->clock;
	}
	if (o->serves) {
		argv[n++] = "--mirror-interval";
		argv[n++] = SERVING_INTERVAL_MS;
	}
	if (o->serves && o->rate_hz) {
		snprintf(rate, sizeof(rate), "%llu", (unsigned long long)o->rate_hz);
		argv[n++] = "--rate";
		argv[n++] = rate;
	}
	/* Ctrl-C is for us: the daemon must live until we have read it. */
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	dup2(d->words, STDERR_FILENO);
	dup2(d->words, STDOUT_FILENO);
	setenv("NOTIFY_SOCKET", d->notify, 1);
	unsetenv("JOURNAL_STREAM");
	exec_daemon((char *const *)argv);
	dprintf(STDERR_FILENO, "no profild beside profilctl, nor in /usr/sbin, /usr/local/sbin or "
			       "PATH; install it\n");
	_exit(127);
}

/* Passes on what the daemon said, as our own words. */
static void repeat(const struct private_daemon *d)
{
	char text[4096], *line, *rest;
	ssize_t n = pread(d->words, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log_err("%s", line);
}

/* Waits until the daemon is ready. -ECHILD where it ended instead. */
static int await_ready(const struct private_daemon *d)
{
	struct pollfd p[] = { { .fd = d->notify_fd, .events = POLLIN },
			      { .fd = d->pidfd, .events = POLLIN } };

	for (;;) {
		char text[512];
		ssize_t n;

		if (poll(p, 2, READY_TIMEOUT_MS) <= 0)
			return -ETIMEDOUT;
		n = recv(d->notify_fd, text, sizeof(text) - 1, 0);
		text[n < 0 ? 0 : n] = '\0';
		if (strstr(text, "READY=1"))
			return 0;
		if (n < 0 && p[1].revents)
			return -ECHILD;
	}
}

static int spawn(struct private_daemon *d, const struct options *o)
{
	pid_t parent = getpid();

	d->words = memfd_create("profild", MFD_CLOEXEC);
	if (d->words < 0)
		return -errno;
	fcntl(d->words, F_SETFL, O_APPEND);
	d->pid = fork();
	if (d->pid < 0)
		return -errno;
	if (!d->pid)
		become_daemon(d, o, parent);
	d->pidfd = (int)syscall(SYS_pidfd_open, d->pid, 0);
	return d->pidfd < 0 ? -errno : 0;
}

void daemon_end(struct private_daemon *d)
{
	if (!d)
		return;
	if (d->pid > 0) {
		kill(d->pid, SIGTERM);
		while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	closep(&d->pidfd);
	closep(&d->notify_fd);
	closep(&d->words);
	if (*d->dir) {
		unlink(d->notify);
		unlink(d->socket);
		rmdir(d->dir);
	}
	free(d);
}

static int make_dir(struct private_daemon *d, const struct options *o)
{
	const char *below = getenv("TMPDIR");

	/* A socket's path may not be long. */
	if (!below || *below != '/' || strlen(below) > sizeof(d->dir) - sizeof("/profilctl.XXXXXX"))
		below = "/tmp";
	snprintf(d->dir, sizeof(d->dir), "%s/profilctl.XXXXXX", below);
	if (!mkdtemp(d->dir)) {
		int err = -errno;

		*d->dir = '\0';
		return err;
	}
	/* Whom it serves may have become another user. */
	if (o->serves && chmod(d->dir, 0711) < 0)
		return -errno;
	snprintf(d->socket, sizeof(d->socket), "%s/profil.sock", d->dir);
	snprintf(d->notify, sizeof(d->notify), "%s/notify", d->dir);
	return 0;
}

static int start(struct private_daemon **out, const struct options *o)
{
	struct private_daemon *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->pidfd = d->notify_fd = d->words = -1;
	err = make_dir(d, o);
	if (!err)
		err = notify_open(d);
	if (!err)
		err = spawn(d, o);
	if (!err)
		err = await_ready(d);
	if (err < 0) {
		if (err == -ECHILD)
			repeat(d);
		daemon_end(d);
		return err;
	}
	*out = d;
	return 0;
}

static int start_private(struct reader **r, struct private_daemon **daemon, const struct options *o)
{
	int err;

	if (geteuid() != 0) {
		log_err("no profild answers at %s, and only root can start one: 'systemctl start "
			"profild', or use sudo",
			socket_of(o));
		return CTL_NO_DAEMON;
	}
	err = start(daemon, o);
	if (!err)
		err = reader_open(r, (*daemon)->socket);
	if (!err)
		return CTL_OK;
	log_err("no profild answers at %s, and a private one could not be started: %s",
		socket_of(o), err == -ECHILD ? "it ended at once" : strerror(-err));
	daemon_end(*daemon);
	*daemon = NULL;
	return CTL_NO_DAEMON;
}

int daemon_reach(struct reader **r, struct private_daemon **daemon, const struct options *o)
{
	int err = reader_open(r, o->socket);

	*daemon = NULL;
	if (!err && o->clock)
		log_warning("--clock %s is for a private profild; the one at %s keeps its own",
			    o->clock, socket_of(o));
	if (!err && o->serves && o->rate_hz)
		log_warning("--rate %llu is for a private profild; the one at %s keeps its own",
			    (unsigned long long)o->rate_hz, socket_of(o));
	if (!err)
		return CTL_OK;
	return no_daemon(err) ? start_private(r, daemon, o) : refused(o, err);
}
