/* run.c - runs a program that profiles itself, by libprofil instead of libc */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "core/log.h"
#include "core/run.h"
#include "core/scope.h"
#include "core/wire.h"

#include "beside.h"
#include "daemon.h"
#include "graphs.h"
#include "self.h"
#include "verb.h"

#define LIBRARY "libprofil.so.1"

extern char **environ;

struct run {
	struct options options;
	struct private_daemon *daemon;
	struct graphs graphs;
	char word[PROFIL_RUN_NAME + PROFIL_RUN_KEY + 1]; /* what the programs know us by */
	int sock;
	int signals;
	struct self self;
	pid_t command;
	FILE *children; /* all that there are; NULL: the kernel does not say */
	int status;	/* of the command, as waitpid() has it */
	bool ended;	/* the command has */
	bool over;	/* we were told to end, after the command */
	bool heard;	/* of a program that has the library */
};

static int watch(struct run *r, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(r->graphs.epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int make_word(struct run *r)
{
	unsigned char random[sizeof(r->word) / 2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(r->word + 2 * i, 3, "%02x", random[i]);
	return 0;
}

/* Opens the socket at which the programs tell us of themselves. */
static int listen_open(struct run *r)
{
	struct sockaddr_un address;
	socklen_t bytes;
	int yes = 1, err = make_word(r);

	if (err)
		return err;
	bytes = profil_run_address(&address, r->word);
	r->sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->sock < 0 || setsockopt(r->sock, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0 ||
	    bind(r->sock, (struct sockaddr *)&address, bytes) < 0)
		return -errno;
	return watch(r, r->sock);
}

static int signals_open(struct run *r)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, 0 };

	signal(SIGCHLD, SIG_DFL); /* who ignores it is not told of a child's end */
	r->signals = self_signals(&r->self, signals);
	return r->signals < 0 ? r->signals : watch(r, r->signals);
}

/* The library that was built, or installed, with us; else that which the linker finds. */
static int find_library(char out[PATH_MAX])
{
	if (beside(out, LIBRARY) && beside(out, "../lib/" LIBRARY))
		strcpy(out, LIBRARY);
	if (!strpbrk(out, " :"))
		return 0;
	log_err("%s cannot be preloaded: its path has a blank or a colon; install it elsewhere",
		out);
	return -EINVAL;
}

/* What else is preloaded stays before it: a sanitizer must come first. */
static int set_preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	__cleanup(freep) char *all = NULL;

	if (!others || !*others)
		return setenv("LD_PRELOAD", library, 1) ? -errno : 0;
	if (asprintf(&all, "%s:%s", others, library) < 0)
		return -ENOMEM;
	return setenv("LD_PRELOAD", all, 1) ? -errno : 0;
}

/* What the programs find us and the daemon by, from whatever directory. */
static int set_environment(const struct run *r)
{
	char library[PATH_MAX], path[PATH_MAX];
	int err = find_library(library);

	if (!err)
		err = set_preload(library);
	if (err)
		return err;
	if (!realpath(daemon_socket(r->daemon, &r->options), path) ||
	    setenv(PROFIL_SOCKET_ENV, path, 1) || setenv(PROFIL_RUN_ENV, r->word, 1))
		return -errno;
	return 0;
}

static int start_command(struct run *r)
{
	char **argv = r->options.argv;
	posix_spawnattr_t attr;
	int err;

	/* Whom the command leaves behind comes to us, so that we know when the last one ends. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &r->self.mask);
	err = posix_spawnp(&r->command, argv[0], NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	if (err) {
		log_err("cannot run %s: %s", argv[0], strerror(err));
		return CTL_ERROR;
	}
	/* Each program that counts calls costs us two; what we run keeps the limit it had. */
	self_raise_files(&r->self);
	return CTL_OK;
}

/* Hears what the programs say; who does not know the word is none of ours. */
static void hear(struct run *r)
{
	for (;;) {
		struct profil_run_msg m;
		unsigned int nfds = 1;
		int fd = -1;
		pid_t sender;
		int err = wire_recv_from(r->sock, &m, sizeof(m), &fd, &nfds, &sender);

		if (err == -EPROTO || err == -ENODATA)
			continue;
		if (err)
			return;
		if (!wire_fits(&m.h, sizeof(m), 1, 0) || !sender ||
		    memcmp(m.key, r->word + PROFIL_RUN_NAME, sizeof(m.key))) {
			if (nfds)
				close(fd);
			continue;
		}
		r->heard = true;
		if (nfds && m.h.type == PROFIL_RUN_GRAPH)
			graphs_add(&r->graphs, sender, fd);
		else if (nfds)
			close(fd);
		else if (m.h.type == PROFIL_RUN_IMAGE)
			graphs_forget(&r->graphs, sender);
	}
}

/* What a terminal sends has reached the command as well. */
static void on_signals(struct run *r)
{
	struct signalfd_siginfo s;

	while (read(r->signals, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGCHLD)
			continue;
		if (r->ended)
			r->over = true;
		else if (s.ssi_code <= 0)
			kill(r->command, (int)s.ssi_signo);
	}
}

/* Says whether process @pid has ended, and takes note of how the command has. */
static bool has_ended(struct run *r, pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	if (pid != r->command)
		return true;
	r->status = status;
	r->ended = true;
	return true;
}

/* Takes note of who has ended, our daemon apart; returns how many have not. */
static unsigned int reap(struct run *r)
{
	unsigned int left, ended;
	int pid;

	if (!r->children)
		return !has_ended(r, r->command);
	/* Where a long list is read while it gets shorter, some are not on it. */
	do {
		left = ended = 0;
		rewind(r->children);
		while (fscanf(r->children, "%d", &pid) == 1) {
			if (pid == daemon_pid(r->daemon))
				continue;
			if (has_ended(r, pid))
				ended++;
			else
				left++;
		}
	} while (ended && !left);
	return left;
}

static void tell_end(const struct run *r, unsigned int left)
{
	if (WIFSIGNALED(r->status))
		log_notice("the command was killed by signal %d (%s)", WTERMSIG(r->status),
			   strsignal(WTERMSIG(r->status)));
	else if (WEXITSTATUS(r->status))
		log_notice("the command exited with status %d", WEXITSTATUS(r->status));
	if (left)
		log_notice("the command has left %u process%s behind, to be profiled as well; "
			   "Ctrl-C ends that",
			   left, left > 1 ? "es" : "");
}

/* Until the last of them has ended, or we are told to end. */
static void wait_for_all(struct run *r)
{
	struct epoll_event event;
	unsigned int left = 1;
	bool told = false;

	while (left && !r->over) {
		epoll_wait(r->graphs.epoll, &event, 1, -1);
		graphs_check(&r->graphs);
		hear(r);
		graphs_sweep(&r->graphs);
		on_signals(r);
		left = reap(r);
		if (r->ended && !told)
			tell_end(r, left);
		told = r->ended;
	}
	hear(r);
	graphs_close(&r->graphs);
}

static int run_init(struct run *r, const struct options *o)
{
	struct reader *reader;
	int status, err;

	*r = (struct run){ .options = *o, .sock = -1, .signals = -1 };
	r->options.serves = true;
	r->graphs.epoll = epoll_create1(EPOLL_CLOEXEC);
	status = daemon_reach(&reader, &r->daemon, &r->options);
	if (status)
		return status;
	reader_close(reader); /* the programs have their own */
	r->children = fopen("/proc/thread-self/children", "re");
	if (!r->children)
		log_warning("no profile of what the command leaves behind: "
			    "/proc/thread-self/children: %s",
			    strerror(errno));
	err = r->graphs.epoll < 0 ? -EMFILE : listen_open(r);
	if (!err)
		err = signals_open(r);
	if (!err)
		err = set_environment(r);
	if (!err)
		return CTL_OK;
	log_err("cannot prepare to run %s: %s", o->argv[0], strerror(-err));
	return CTL_ERROR;
}

static void run_fini(struct run *r)
{
	daemon_end(r->daemon);
	closep(&r->sock);
	closep(&r->signals);
	closep(&r->graphs.epoll);
	fclosep(&r->children);
}

static int outcome(const struct run *r)
{
	if (r->heard)
		return r->graphs.err ? CTL_ERROR : CTL_OK;
	log_err("%s did not load libprofil, and is not profiled: it is linked statically, or "
		"set-id; "
		"link it with -lprofil, or use 'profilctl record'",
		r->options.argv[0]);
	return CTL_ERROR;
}

int verb_run(const struct options *o)
{
	struct run r;
	int status;

	if (!o->argc) {
		log_err("run: no command given; 'profilctl run -- COMMAND [ARG...]'");
		return CTL_USAGE;
	}
	status = run_init(&r, o);
	if (!status)
		status = start_command(&r);
	if (!status) {
		wait_for_all(&r);
		status = outcome(&r);
	}
	run_fini(&r);
	return status;
}
