/* daemon_spawn.c - connects to the running daemon, or starts a private one */
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

#include "base/log.h"
#include "base/cleanup.h"
#include "core/wire.h"

#include "profilctl/util/install_path.h"
#include "daemon_spawn.h"
#include "private_dir.h"
#include "profilctl/util/exit_status.h"

#define READY_TIMEOUT_MS 30000
/* A killed program loses the samples since the daemon's last write-back. */
#define SERVING_INTERVAL_MS "10"

struct private_daemon {
	struct private_dir dir; /* removed early, but keeps the path of the socket */
	pid_t pid;
	int pidfd;
	int notify_fd;
	int words; /* pipe of its stderr */
};

static const char *socket_of(const struct options *o)
{
	const char *path = o->socket ? o->socket : getenv(PROFIL_SOCKET_ENV);

	return path && *path ? path : PROFIL_SOCKET_DEFAULT;
}

const char *daemon_socket(const struct private_daemon *daemon, const struct options *o)
{
	return daemon ? daemon->dir.socket : socket_of(o);
}

static bool no_daemon(int err)
{
	return err == -ENOENT || err == -ECONNREFUSED || err == -ENOTDIR;
}

pid_t daemon_pid(const struct private_daemon *daemon)
{
	return daemon ? daemon->pid : 0;
}

/* Prints why the daemon at the socket cannot be used. */
static int refused(const struct options *o, int err)
{
	const char *path = socket_of(o);

	if (err == -EACCES || err == -EPERM) {
		log_err("cannot connect to %s: permission denied (the owner of that profild can "
			"grant access)",
			path);
		return CTL_DENIED;
	}
	if (err == -EAGAIN) {
		log_err("profild at %s has too many clients; try again later", path);
		return CTL_ERROR;
	}
	if (err == -ENODATA)
		log_err("profild at %s has closed the connection before it answered: it has ended, "
			"or restarts; try again",
			path);
	else if (err == -ETIMEDOUT)
		log_err("profild at %s accepts connections, but does not answer", path);
	else if (err == -EPROTO)
		log_err("profild at %s is of another version, or not profild: restart it", path);
	else if (err == -EPROTOTYPE)
		log_err("the socket %s is not of profild: it is of another type", path);
	else
		log_err("cannot talk to profild at %s: %s", path, strerror(-err));
	return CTL_ERROR;
}

int daemon_connect(struct client **c, const struct options *o)
{
	int err = client_open(c, o->socket);

	if (!err)
		return CTL_OK;
	if (!no_daemon(err))
		return refused(o, err);
	log_err("no profild answers at %s; start it with 'systemctl start profild.socket'",
		socket_of(o));
	return CTL_NO_DAEMON;
}

/* Opens the notification socket for READY=1. */
static int notify_open(struct private_daemon *d)
{
	struct sockaddr_un address;
	int err = wire_address(&address, d->dir.notify);

	if (err < 0)
		return err;
	d->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->notify_fd < 0 ||
	    bind(d->notify_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

/* Prefers the profild that was built or installed with this profilctl. */
static void exec_daemon(char *const argv[])
{
	char path[PATH_MAX];

	if (!install_path(path, "profild"))
		execv(path, argv);
	if (!install_path(path, "../sbin/profild"))
		execv(path, argv);
	execv("/usr/sbin/profild", argv);
	execv("/usr/local/sbin/profild", argv);
	execvp("profild", argv);
}

/* Runs in the child and does not return. */
static void become_daemon(const struct private_daemon *d, const struct options *o, pid_t parent)
{
	const char *argv[11] = { "profild", "--ephemeral", "--socket", d->dir.socket };
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
	/* Ctrl-C is for profilctl: the daemon must live until profilctl has read its counts. */
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	dup2(d->words, STDERR_FILENO);
	dup2(d->words, STDOUT_FILENO);
	setenv("NOTIFY_SOCKET", d->dir.notify, 1);
	unsetenv("JOURNAL_STREAM");
	exec_daemon((char *const *)argv);
	dprintf(STDERR_FILENO, "no profild beside profilctl, nor in /usr/sbin, /usr/local/sbin or "
			       "PATH; install it\n");
	_exit(127);
}

static bool in_user_namespace(void)
{
	struct stat ns;

	return !stat("/proc/self/ns/user", &ns) && ns.st_ino != INITIAL_USER_NS;
}

/*
 * Prints the daemon's messages as profilctl's own. In a user namespace the kernel denies its root
 * what the daemon needs, with a message of each step. Returns the reason of its end.
 */
static int repeat(const struct private_daemon *d)
{
	char text[4096], *line, *rest;
	ssize_t n = pread(d->words, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	if (in_user_namespace() &&
	    (strstr(text, strerror(EPERM)) || strstr(text, strerror(EACCES))))
		return -EPERM;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log_err("%s", line);
	return -ECHILD;
}

/* Waits until the daemon is ready. -ECHILD if it ended instead. */
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
	private_dir_remove(&d->dir);
	free(d);
}

static void on_broken_pipe(int signal)
{
}

/*
 * Blocks the signals that end profilctl until the daemon's folder is removed or its user knows the
 * path. The folder of a daemon that serves others exists until the end, so SIGPIPE from a closed
 * report pipe must not end profilctl before its removal. SIGPIPE gets a handler and not SIG_IGN,
 * because the command would inherit SIG_IGN.
 */
static void hold_signals(sigset_t *before, bool serves)
{
	static const int held[] = { SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM };
	struct sigaction pipe;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(held) / sizeof(*held); i++)
		sigaddset(&set, held[i]);
	sigprocmask(SIG_BLOCK, &set, before);
	sigaction(SIGPIPE, NULL, &pipe);
	if (serves && pipe.sa_handler == SIG_DFL)
		signal(SIGPIPE, on_broken_pipe);
}

static int start(struct private_daemon **out, const struct options *o)
{
	struct private_daemon *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->pidfd = d->notify_fd = d->words = -1;
	err = private_dir_make(&d->dir, o->serves)
		      ?: notify_open(d)
		      ?: spawn(d, o)
		      ?: await_ready(d);
	if (err < 0) {
		if (err == -ECHILD)
			err = repeat(d);
		daemon_end(d);
		return err;
	}
	*out = d;
	return 0;
}

static int start_private(struct client **c, struct private_daemon **daemon, const struct options *o)
{
	sigset_t before;
	int err;

	if (geteuid() != 0) {
		log_err("no profild answers at %s, and only root can start one: 'systemctl start "
			"profild.socket', or use sudo",
			socket_of(o));
		return CTL_NO_DAEMON;
	}
	hold_signals(&before, o->serves);
	err = start(daemon, o) ?: client_open(c, (*daemon)->dir.socket);
	/*
	 * Once connected profilctl does not need the path: without it, no end of profilctl leaves
	 * files.
	 */
	if (!err && !o->serves)
		private_dir_remove(&(*daemon)->dir);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (!err)
		return CTL_OK;
	log_err("no profild answers at %s, and a private one could not be started: %s",
		socket_of(o),
		err == -ECHILD ? "it ended at once"
		: err == -EPERM && in_user_namespace()
			? "the root of this user namespace may not load BPF programs"
			: strerror(-err));
	daemon_end(*daemon);
	*daemon = NULL;
	return CTL_NO_DAEMON;
}

int daemon_reach(struct client **c, struct private_daemon **daemon, const struct options *o)
{
	int err = client_open(c, o->socket);

	*daemon = NULL;
	if (!err && o->clock && !o->clock_by_event)
		log_warning("--clock %s is for a private profild; the one at %s keeps its own",
			    o->clock, socket_of(o));
	if (!err && o->serves && o->rate_hz)
		log_warning("--rate %llu is for a private profild; the one at %s keeps its own",
			    (unsigned long long)o->rate_hz, socket_of(o));
	if (!err)
		return CTL_OK;
	return no_daemon(err) ? start_private(c, daemon, o) : refused(o, err);
}
