/* daemon.c - a real profild for one test, and a client of its protocol */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "daemon.h"
#include "state.h"

#define DAEMON_ARGS 32
#define DAEMON_WAIT_MS 100000
#define TRY_WAIT_S 20
#define CLIENT_WAIT_MS 60000
#define CLIENT_END_S 9 /* the daemon closes the connections of silent clients after 10 s */

static const char *from_env(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

unsigned long number_from_env(const char *variable, unsigned long usual)
{
	const char *text = from_env(variable, NULL);

	return text ? strtoul(text, NULL, 10) : usual;
}

int daemon_over_kernel(void)
{
	return strcmp(from_env("PROFIL_TEST_OVER", "replay"), "kernel") == 0;
}

/* Returns the log at @path so far, for the message of a failure. */
static const char *said(const char *path)
{
	static char text[4096];
	__cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Runs in the child: never returns. */
static void become(char *const argv[], const char *log, const char *notify)
{
	int err = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (err < 0 || dup2(err, STDERR_FILENO) < 0)
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (notify)
		setenv("NOTIFY_SOCKET", notify, 1);
	else
		unsetenv("NOTIFY_SOCKET");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	execv(argv[0], argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static pid_t spawn(char *const argv[], const char *log, const char *notify)
{
	pid_t pid = fork();

	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0)
		become(argv, log, notify);
	return pid;
}

static int notify_open(const char *path)
{
	struct sockaddr_un address;
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	cr_assert(sock >= 0 && wire_address(&address, path) == 0);
	unlink(path);
	cr_assert(bind(sock, (struct sockaddr *)&address, sizeof(address)) == 0, "bind %s: %s",
		  path, strerror(errno));
	return sock;
}

/* Waits until the daemon says READY=1 on @notify. */
static void await_ready(const struct daemon *d, int notify)
{
	struct pollfd fds[] = { { .fd = notify, .events = POLLIN },
				{ .fd = d->pidfd, .events = POLLIN } };
	char text[512];

	for (;;) {
		ssize_t n;

		cr_assert(poll(fds, 2, DAEMON_WAIT_MS) > 0,
			  "profild did not become ready within %d s; it said:\n%s",
			  DAEMON_WAIT_MS / 1000, said(d->log));
		n = recv(notify, text, sizeof(text) - 1, MSG_DONTWAIT);
		if (n <= 0) {
			cr_assert(!fds[1].revents,
				  "profild ended before it was ready; it said:\n%s", said(d->log));
			continue;
		}
		text[n] = '\0';
		if (strstr(text, "READY=1"))
			return;
	}
}

void daemon_restart(struct daemon *d)
{
	const char *argv[DAEMON_ARGS];
	char binary[256], notify[96];
	int n = 0;

	snprintf(binary, sizeof(binary), "%s/profild", from_env("BUILD", "build"));
	snprintf(notify, sizeof(notify), "%s/notify", d->dir);
	argv[n++] = binary;
	argv[n++] = "--socket";
	argv[n++] = d->socket;
	if (*d->replay) {
		argv[n++] = "--replay";
		argv[n++] = d->replay;
	}
	for (const char **a = d->args; a && *a; a++) {
		cr_assert(n < DAEMON_ARGS - 1);
		argv[n++] = *a;
	}
	argv[n] = NULL;

	__cleanup(closep) int sock = notify_open(notify);
	d->pid = spawn((char *const *)argv, d->log, notify);
	d->pidfd = pidfd_open(d->pid, 0);
	cr_assert(d->pidfd >= 0, "pidfd_open: %s", strerror(errno));
	await_ready(d, sock);
	setenv(PROFIL_SOCKET_ENV, d->socket, 1);
}

void daemon_start(struct daemon *d, const char *ticks, const char **args)
{
	memset(d, 0, sizeof(*d));
	snprintf(d->dir, sizeof(d->dir), "%s/daemon.XXXXXX", from_env("PROFIL_TEST_DIR", "/tmp"));
	cr_assert(mkdtemp(d->dir), "mkdtemp %s: %s", d->dir, strerror(errno));
	cr_assert(chmod(d->dir, 0755) == 0); /* clients of other users use the socket */
	snprintf(d->socket, sizeof(d->socket), "%s/sock", d->dir);
	snprintf(d->log, sizeof(d->log), "%s/log", d->dir);
	d->args = args;

	if (ticks || !daemon_over_kernel()) {
		snprintf(d->replay, sizeof(d->replay), "%s/ticks", d->dir);
		__cleanup(fclosep) FILE *f = fopen(d->replay, "we");
		cr_assert(f && fputs(ticks ? ticks : "", f) >= 0, "%s: %s", d->replay,
			  strerror(errno));
	}
	daemon_restart(d);
}

/* Waits for the daemon's end; returns the wait status. */
static int reap(struct daemon *d)
{
	struct pollfd end = { .fd = d->pidfd, .events = POLLIN };
	int status;

	cr_assert(poll(&end, 1, DAEMON_WAIT_MS) > 0,
		  "profild did not end within %d s of its signal; it said:\n%s",
		  DAEMON_WAIT_MS / 1000, said(d->log));
	cr_assert(waitpid(d->pid, &status, 0) == d->pid);
	close(d->pidfd);
	d->pidfd = -1;
	d->pid = 0;
	return status;
}

void daemon_stop(struct daemon *d)
{
	int status;

	kill(d->pid, SIGTERM);
	status = reap(d);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		  "profild ended by SIGTERM with wait status 0x%x, not 0; it said:\n%s", status,
		  said(d->log));
}

void daemon_kill(struct daemon *d)
{
	int status;

	kill(d->pid, SIGKILL);
	status = reap(d);
	cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		  "profild had ended before its SIGKILL, with wait status 0x%x; it said:\n%s",
		  status, said(d->log));
}

const char *daemon_file(const struct daemon *d, const char *name)
{
	static char path[2][512];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", d->dir, name);
	return path[turn];
}

static unsigned int descriptors(const struct daemon *d)
{
	unsigned int n;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)d->pid);
	dir = opendir(path);
	cr_assert(dir, "%s: %s", path, strerror(errno));
	for (n = 0; readdir(dir); n++)
		;
	closedir(dir);
	return n;
}

unsigned int daemon_descriptors(const struct daemon *d, unsigned int most)
{
	unsigned int n;

	AWAIT((n = descriptors(d)) <= most);
	return n;
}

long daemon_kib(const struct daemon *d)
{
	char path[64], line[128];
	long kib = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)d->pid);
	__cleanup(fclosep) FILE *f = fopen(path, "re");
	while (f && kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "RssAnon: %ld", &kib);
	cr_assert_geq(kib, 0, "%s has no RssAnon of the daemon", path);
	return kib;
}

int daemon_refuses(const char **args, char *log, size_t bytes)
{
	char dir[] = "/tmp/profil-refused.XXXXXX", binary[256], sock[64];
	const char *argv[DAEMON_ARGS] = { binary, "--socket", sock };
	struct daemon d = { 0 };
	int status;

	cr_assert(mkdtemp(dir), "mkdtemp %s: %s", dir, strerror(errno));
	snprintf(binary, sizeof(binary), "%s/profild", from_env("BUILD", "build"));
	snprintf(sock, sizeof(sock), "%s/sock", dir);
	snprintf(d.log, sizeof(d.log), "%s/log", dir);
	for (int i = 0; args[i] && i < DAEMON_ARGS - 4; i++)
		argv[i + 3] = args[i];
	d.pid = spawn((char *const *)argv, d.log, NULL);
	d.pidfd = pidfd_open(d.pid, 0);
	status = reap(&d);
	snprintf(log, bytes, "%s", said(d.log));
	unlink(d.log);
	rmdir(dir);
	cr_assert(WIFEXITED(status), "profild died with wait status 0x%x; it said:\n%s", status,
		  log);
	return WEXITSTATUS(status);
}

int client_open(const struct daemon *d, struct profil_msg_hello *hello)
{
	struct profil_msg_hello ours;
	struct sockaddr_un address;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (!hello)
		hello = &ours;
	cr_assert(sock >= 0 && wire_address(&address, d->socket) == 0);
	cr_assert(connect(sock, (struct sockaddr *)&address, sizeof(address)) == 0,
		  "connect %s: %s; profild said:\n%s", d->socket, strerror(errno), said(d->log));
	cr_assert(client_recv(sock, hello, sizeof(*hello)) == sizeof(*hello) &&
			  hello->h.type == PROFIL_MSG_HELLO,
		  "no HELLO on %s; profild said:\n%s", d->socket, said(d->log));
	return sock;
}

int client_send(int sock, const void *packet, size_t bytes)
{
	return send(sock, packet, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

size_t client_recv(int sock, void *buf, size_t bytes)
{
	struct pollfd ready = { .fd = sock, .events = POLLIN };
	struct timespec began, now;
	ssize_t n;

	clock_gettime(CLOCK_MONOTONIC, &began);
	cr_assert(poll(&ready, 1, CLIENT_WAIT_MS) > 0, "no answer within %d s",
		  CLIENT_WAIT_MS / 1000);
	n = read(sock, buf, bytes);
	clock_gettime(CLOCK_MONOTONIC, &now);
	cr_assert(n > 0 || now.tv_sec - began.tv_sec < CLIENT_END_S,
		  "the end came after %d s, and may be that of a silent client", CLIENT_END_S);
	return n > 0 ? (size_t)n : 0; /* a reset is an end as well */
}

int client_ask(int sock, const struct profil_header *h, struct profil_msg_reply *reply)
{
	struct profil_msg_reply ours;
	size_t n;

	if (!reply)
		reply = &ours;
	cr_assert(client_send(sock, h, h->bytes), "request %u: %s", h->type, strerror(errno));
	n = client_recv(sock, reply, sizeof(*reply));
	cr_assert(n == sizeof(*reply) && reply->h.type == PROFIL_MSG_REPLY,
		  "request %u got %zu bytes, not a REPLY", h->type, n);
	return (int)reply->error;
}

int client_observe(int sock, __u64 period_ns)
{
	struct profil_msg_observe m = { .period_ns = period_ns, .places = 1024, .images = 64 };

	struct profil_msg_reply reply;
	unsigned int nfds = 1;
	int table = -1;

	wire_header(&m.h, PROFIL_MSG_OBSERVE, sizeof(m), 0, 0);
	if (wire_send(sock, &m.h, NULL, 0) || wire_recv(sock, &reply, sizeof(reply), &table, &nfds))
		return CLIENT_CUT_OFF;
	if (nfds)
		close(table);
	return (int)reply.error;
}

int client_add(int sock, const int *fds, unsigned int nfds)
{
	struct profil_header h;

	wire_header(&h, PROFIL_MSG_ADD, sizeof(h), 0, 0);
	return client_try(sock, &h, fds, nfds);
}

int client_dial(const struct daemon *d, struct profil_msg_hello *hello)
{
	const struct timeval most = { .tv_sec = TRY_WAIT_S };
	struct sockaddr_un address;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0 || wire_address(&address, d->socket) ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) < 0 ||
	    connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    wire_recv(sock, hello, sizeof(*hello), NULL, NULL)) {
		closep(&sock);
		return -1;
	}
	return sock;
}

int client_try(int sock, const struct profil_header *h, const int *fds, unsigned int nfds)
{
	struct profil_msg_reply reply;

	if (wire_send(sock, h, fds, nfds) || wire_recv(sock, &reply, sizeof(reply), NULL, NULL))
		return CLIENT_CUT_OFF;
	return (int)reply.error;
}

void client_status(const struct daemon *d, struct profil_msg_status *status)
{
	__cleanup(closep) int sock = client_open(d, NULL);
	struct profil_header ask;

	wire_header(&ask, PROFIL_MSG_STATUS, sizeof(ask), 0, 0);
	cr_assert(client_send(sock, &ask, sizeof(ask)));
	cr_assert(client_recv(sock, status, sizeof(*status)) == sizeof(*status) &&
			  status->h.type == PROFIL_MSG_STATUS,
		  "no answer to STATUS on %s; profild said:\n%s", d->socket, said(d->log));
}
