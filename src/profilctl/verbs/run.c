/* run.c - runs a program that profiles itself, with libprofil in place of libc */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <linux/filter.h>

#include "base/log.h"
#include "core/run_proto.h"
#include "base/cleanup.h"
#include "core/wire.h"
#include "profilctl/util/install_path.h"
#include "profilctl/collect/daemon_spawn.h"
#include "profilctl/collect/gmon_collector.h"
#include "profilctl/collect/self_setup.h"
#include "base/hex.h"
#include "symbols/proc/guarded_file.h"
#include "verb.h"
#include "base/sanitize.h"
#include "symbols/elf/command_file.h"

/* glibc's linkers are named ld-linux.so.2, ld-linux-ARCHITECTURE.so.N and ld64.so.N. */
static bool is_of_glibc(const char *linker)
{
	const char *base = strrchr(linker, '/');

	base = base ? base + 1 : linker;
	return !strncmp(base, "ld-linux", 8) || !strncmp(base, "ld64.so", 7);
}

/* Writes the cause that the ELF file has; "" if it is none. */
static void look_at(char *out, size_t bytes, int fd)
{
	char linker[256], clean[256];
	struct stat st;
	bool is_64 = program_linker(fd, linker, sizeof(linker));

	*out = '\0';
	if (!fstat(fd, &st) && st.st_mode & (S_ISUID | S_ISGID))
		snprintf(out, bytes, "it is set-id");
	else if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
		snprintf(out, bytes, "its file has capabilities, as a set-id program");
	else if (!is_64)
		snprintf(out, bytes, "it is not a 64-bit program");
	else if (!*linker)
		snprintf(out, bytes, "it is linked statically");
	else if (!is_of_glibc(linker))
		snprintf(out, bytes, "its dynamic linker, %s, is not of glibc",
			 sanitize(clean, sizeof(clean), linker));
}

/*
 * Looks at the file that @command executes, in PATH if it has no slash; of a script, at its
 * interpreter. Writes the cause, as "it is linked statically", to @out. Returns @out.
 */
static const char *run_cause(char *out, size_t bytes, const char *command)
{
	__cleanup(freep) char *file = command_find(command);
	__cleanup(closep) int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	char interpreter[PATH_MAX];

	*out = '\0';
	for (int i = 0; i < SCRIPTS_MAX && script_interpreter(fd, interpreter, sizeof(interpreter));
	     i++) {
		closep(&fd);
		fd = open(interpreter, O_RDONLY | O_CLOEXEC);
	}
	if (fd >= 0)
		look_at(out, bytes, fd);
	if (!*out)
		snprintf(out, bytes, "it cleared LD_PRELOAD, or is not what was executed");
	return out;
}

#define LIBRARY "libprofil.so.1"

extern char **environ;

struct run {
	struct options options;
	struct private_daemon *daemon;
	struct graphs graphs;
	char word[PROFIL_RUN_NAME + PROFIL_RUN_KEY + 1]; /* the socket's name and the key */
	int sock;
	int signals;
	struct self self;
	pid_t command;
	FILE *children; /* the list of all children; NULL: the kernel has none */
	int status;	/* wait status of the command */
	bool ended;	/* the command has ended */
	bool over;	/* a signal has ended the wait for processes that outlive the command */
	bool heard;	/* a program has the library */
	bool profiled;	/* ... and has started a profile, or counts calls */
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
	hex_write(r->word, sizeof(r->word), random, sizeof(random));
	return 0;
}

/* At most that many messages are received before the other events are handled. */
#define MESSAGES_MAX 1024

/*
 * Makes the kernel drop all messages but those of the right size with the key, while their senders
 * send them. Any user can find the socket, in /proc/net/unix, and send a descriptor. To close it
 * can take long: a FUSE file waits for its server, and a TCP connection with SO_LINGER for its
 * peer.
 */
static int filter_messages(const struct run *r)
{
	enum { WORDS = PROFIL_RUN_KEY / 4, DROP = 2 + 2 * WORDS };
	struct sock_filter code[DROP + 2] = { BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0) };
	struct sock_fprog program = { DROP + 2, code };
	const char *key = r->word + PROFIL_RUN_NAME;

	code[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
					       sizeof(struct profil_run_msg), 0, DROP - 2);
	for (unsigned int i = 0; i < WORDS; i++) {
		unsigned int at = 2 + 2 * i;
		__u32 word;

		memcpy(&word, key + 4 * i, 4);
		code[at] = (struct sock_filter)BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, offsetof(struct profil_run_msg, key) + 4 * i);
		code[at + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(word),
							    0, (__u8)(DROP - at - 2));
	}
	/* The last comparison skips DROP if it succeeds. */
	code[DROP - 1].jt = 1;
	code[DROP] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	code[DROP + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return setsockopt(r->sock, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0
		       ? -errno
		       : 0;
}

/* Opens the socket for the messages of the programs. */
static int listen_open(struct run *r)
{
	struct sockaddr_un address;
	socklen_t bytes;
	int yes = 1, err = make_word(r);

	if (err)
		return err;
	bytes = profil_run_address(&address, r->word);
	r->sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->sock < 0 || setsockopt(r->sock, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
		return -errno;
	err = filter_messages(r);
	if (err)
		return err;
	if (bind(r->sock, (struct sockaddr *)&address, bytes) < 0)
		return -errno;
	return watch(r, r->sock);
}

static int signals_open(struct run *r)
{
	static const int signals[] = { SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, 0 };

	signal(SIGCHLD, SIG_DFL); /* if ignored, children are not reported */
	r->signals = self_signals(&r->self, signals);
	return r->signals < 0 ? r->signals : watch(r, r->signals);
}

/*
 * Finds the library that was built or installed with profilctl, else lets the dynamic linker find
 * it.
 */
static int find_library(char out[PATH_MAX])
{
	if (install_path(out, LIBRARY) && install_path(out, "../lib/" LIBRARY))
		strcpy(out, LIBRARY);
	if (!strpbrk(out, " :"))
		return 0;
	log_err("%s cannot be preloaded: its path has a blank or a colon; install it elsewhere",
		out);
	return -EINVAL;
}

/*
 * Names @library so that only glibc finds it. musl's linker preloads as well, and ends a program if
 * the library needs a symbol of glibc. It does not replace $LIB as glibc's does, and ignores a
 * library that does not exist. The root directory is its own parent.
 */
static int name_for_glibc(char out[PATH_MAX], const char *library)
{
	bool is_path = *library == '/';
	int n = snprintf(out, PATH_MAX, "%s%s", is_path ? "/$LIB/../../../../../../../.." : "",
			 library);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* Preloads @library after what is preloaded already: a sanitizer must come first. */
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

/* Passes the sockets of profilctl and the daemon to the programs, as absolute paths. */
static int set_environment(const struct run *r)
{
	char library[PATH_MAX], name[PATH_MAX], path[PATH_MAX];
	int err = find_library(library) ?: name_for_glibc(name, library) ?: set_preload(name);

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

	/* Processes that outlive the command become children of profilctl, which waits for them. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &r->self.mask);
	err = posix_spawnp(&r->command, argv[0], NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	if (err) {
		log_err("cannot run %s: %s", argv[0], strerror(err));
		return err == ENOENT ? CTL_NOT_FOUND : CTL_NOT_EXECUTABLE;
	}
	/* Each program that counts calls takes two descriptors. The command keeps its limit. */
	self_raise_files(&r->self);
	return CTL_OK;
}

/* Handles one message; takes ownership of @fd. */
static void hear_one(struct run *r, const struct profil_run_msg *m, pid_t sender, int fd)
{
	r->heard = true;
	r->profiled |= m->h.type == PROFIL_RUN_GRAPH || m->h.type == PROFIL_RUN_PROFILE;
	if (fd >= 0 && m->h.type == PROFIL_RUN_GRAPH)
		graphs_add(&r->graphs, sender, fd);
	else if (fd >= 0)
		close(fd);
	else if (m->h.type == PROFIL_RUN_IMAGE)
		graphs_forget(&r->graphs, sender);
}

/* Receives the programs' messages; ignores those without the key. */
static void hear(struct run *r)
{
	for (int i = 0; i < MESSAGES_MAX; i++) {
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
		hear_one(r, &m, sender, nfds ? fd : -1);
	}
}

/* Forwards signals to the command, except those that its terminal has sent to it as well. */
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

/* Reaps process @pid if it has ended, and keeps the status of the command. */
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

/* Reaps all ended children that are not profilctl's own helpers. Returns the number of others. */
static unsigned int reap(struct run *r)
{
	unsigned int left, ended;
	int pid;

	if (!r->children)
		return !has_ended(r, r->command);
	/* Reading the list while children end can skip some, so repeat until none has ended. */
	do {
		left = ended = 0;
		rewind(r->children);
		while (fscanf(r->children, "%d", &pid) == 1) {
			if (pid == daemon_pid(r->daemon) || guarded_file_is_helper(pid))
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
		log_notice("the command has left %u process%s behind, which profilctl waits for; "
			   "Ctrl-C ends the wait",
			   left, left > 1 ? "es" : "");
}

/* Waits until the last process has ended, or a signal ends the wait. */
static void wait_for_all(struct run *r)
{
	struct epoll_event event;
	unsigned int left = 1;
	bool reported = false;

	while (left && !r->over) {
		epoll_wait(r->graphs.epoll, &event, 1, -1);
		graphs_check(&r->graphs);
		hear(r);
		graphs_sweep(&r->graphs);
		on_signals(r);
		left = reap(r);
		if (r->ended && !reported)
			tell_end(r, left);
		reported = r->ended;
	}
	hear(r);
	graphs_close(&r->graphs);
}

static int run_init(struct run *r, const struct options *o)
{
	struct client *client;
	int status, err;

	*r = (struct run){ .options = *o, .sock = -1, .signals = -1 };
	r->options.serves = true;
	r->graphs.epoll = epoll_create1(EPOLL_CLOEXEC);
	status = daemon_reach(&client, &r->daemon, &r->options);
	if (status)
		return status;
	client_close(client); /* the programs have their own connections */
	r->children = fopen("/proc/thread-self/children", "re");
	if (!r->children)
		log_warning("no profile of what the command leaves behind: "
			    "/proc/thread-self/children: %s",
			    strerror(errno));
	err = (r->graphs.epoll < 0 ? -EMFILE : listen_open(r))
		      ?: signals_open(r)
		      ?: set_environment(r);
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

/* Prints why there is no profile, if so. Returns the command's exit status, as in a shell. */
static int outcome(const struct run *r)
{
	const char *name = r->options.argv[0];
	char cause[512];

	if (!r->heard)
		log_err("%s was not profiled: it did not load libprofil, because %s (link it with "
			"-lprofil, or use 'profilctl record')",
			name, run_cause(cause, sizeof(cause), name));
	else if (!r->profiled)
		log_err("%s was not profiled: it started no profile, by profil or by -pg "
			"(use 'profilctl record')",
			name);
	if (r->graphs.err)
		return CTL_FAILED;
	return WIFSIGNALED(r->status) ? 128 + WTERMSIG(r->status) : WEXITSTATUS(r->status);
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
	if (status && status != CTL_USAGE)
		status = CTL_FAILED;
	if (!status)
		status = start_command(&r);
	if (!status) {
		wait_for_all(&r);
		status = outcome(&r);
	}
	run_fini(&r);
	return status;
}
