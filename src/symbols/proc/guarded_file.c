/* guarded_file.c - opens files that another user's file system may hold up */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/regular_file.h"
#include "guarded_file.h"
#include "mounts.h"

/* Time limits: of one file, and of all files within WINDOW_NS that were waited for in vain. */
#define FILE_NS 500000000ull
#define WASTED_NS 600000000ull
#define WINDOW_NS 60000000000ull

#define HELPERS_MAX 4 /* that may hang at a time; the kernel lets no one end them */

/* Copies in memory: of one file, and of all that one helper makes. */
#define COPY_BYTES_MAX (64ll << 20)
#define COPIES_BYTES_MAX (96ll << 20)

#define MOUNTINFO_BYTES (1u << 20)

struct request {
	bool copy_network;
	char root[64]; /* "": none */
	char path[PATH_MAX];
};

struct reply {
	int err;
	struct stat st;
};

/* Shared by all threads. */
static struct helper {
	pthread_mutex_t mutex;
	int sock; /* of the present helper; -1: none */
	pid_t pid[HELPERS_MAX];
	unsigned int n;
	bool copy_network;
	unsigned long long wasted_ns;
	unsigned long long window_ns; /* its start */
} helper = { .mutex = PTHREAD_MUTEX_INITIALIZER, .sock = -1 };

/* --- both processes --------------------------------------------------------------------------- */

static size_t read_all(const char *path, char *out, size_t bytes)
{
	__cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t more;

	do {
		more = fd < 0 ? 0 : read(fd, out + n, bytes - 1 - n);
		n += more > 0 ? (size_t)more : 0;
	} while (more > 0 && n < bytes - 1);
	out[n] = '\0';
	return n;
}

/* "/proc/4711/" at the beginning of @path, as the path of that process's mountinfo; "": none. */
static void mountinfo_of(char *out, size_t bytes, const char *path)
{
	size_t n = strlen("/proc/");

	*out = '\0';
	if (strncmp(path, "/proc/", n))
		return;
	n += strspn(path + n, "0123456789");
	if (path[n] == '/' && n > strlen("/proc/") && n + sizeof("/mountinfo") <= bytes) {
		memcpy(out, path, n);
		strcpy(out + n, "/mountinfo");
	}
}

/*
 * The kind of the mount of @fd, which was opened with O_PATH by way of @path. Asks only the kernel,
 * not the file system. @text: room for two mountinfos.
 */
static enum mount_kind kind_of(int fd, const char *path, char text[2][MOUNTINFO_BYTES])
{
	char name[64], *id;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	read_all(name, text[0], MOUNTINFO_BYTES);
	id = strstr(text[0], "mnt_id:");
	if (!id)
		return MOUNT_FOREIGN;
	fd = (int)strtol(id + strlen("mnt_id:"), NULL, 10);
	read_all("/proc/self/mountinfo", text[0], MOUNTINFO_BYTES);
	mountinfo_of(name, sizeof(name), path);
	text[1][0] = '\0';
	if (*name)
		read_all(name, text[1], MOUNTINFO_BYTES);
	return mounts_kind(text[0], text[1], (unsigned int)fd);
}

/* --- the helper, which allocates nothing: other threads may have held locks at the fork --------
 */

static char mountinfo[2][MOUNTINFO_BYTES];
static char block[1 << 16];
static long long copied_bytes;

static bool is_zero(const char *p, size_t n)
{
	return !n || (!*p && !memcmp(p, p + 1, n - 1));
}

/* Zeros become holes, which take no memory. */
static int copy(int fd, const struct stat *st)
{
	__cleanup(closep) int out = -1;
	off_t at = 0;
	ssize_t n;

	if (st->st_size > COPY_BYTES_MAX || copied_bytes + st->st_size > COPIES_BYTES_MAX)
		return -EFBIG;
	out = memfd_create("profil-copy", MFD_CLOEXEC);
	if (out < 0 || ftruncate(out, st->st_size) < 0)
		return -errno;
	while ((n = pread(fd, block, sizeof(block), at)) > 0 && at < st->st_size) {
		if (!is_zero(block, (size_t)n)) {
			if (pwrite(out, block, (size_t)n, at) != n)
				return -ENOSPC;
			copied_bytes += n;
		}
		at += n;
	}
	return n < 0 ? -errno : steal_fd(out);
}

static int help_open(const struct request *r)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_IN_ROOT };
	__cleanup(closep) int root = -1;
	int fd;

	if (!*r->root) {
		fd = open(r->path, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	root = open(r->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = root < 0 ? -1 : (int)syscall(SYS_openat2, root, r->path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int help(const struct request *r, struct reply *reply)
{
	__cleanup(closep) int path = help_open(r);
	__cleanup(closep) int fd = -1;
	enum mount_kind kind;
	char byte;

	if (path < 0)
		return path;
	kind = kind_of(path, *r->root ? r->root : r->path, mountinfo);
	fd = regular_file_reopen(path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &reply->st) < 0)
		return -errno;
	if (kind == MOUNT_LOCAL)
		return steal_fd(fd);
	if (kind == MOUNT_NETWORK && !r->copy_network) /* does its server answer at all? */
		return pread(fd, &byte, 1, 0) < 0 ? -errno : steal_fd(fd);
	return copy(fd, &reply->st);
}

static int send_reply(int sock, const struct reply *reply, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)(unsigned long)reply, sizeof(*reply) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS,
						  .cmsg_len = CMSG_LEN(sizeof(fd)) };
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* Until the other end is closed, also by the end of that process. */
static void __attribute__((noreturn)) serve(int sock)
{
	static struct request r;

	sigset_t none;

	prctl(PR_SET_NAME, "profil-files");
	setsid(); /* ^C at the terminal is for the program that asks */
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* It may hang for long, so it must hold nothing: no pipe, no lock, no table. */
	dup2(sock, 0);
	syscall(SYS_close_range, 1, ~0u, 0);
	while (recv(0, &r, sizeof(r), 0) == sizeof(r)) {
		struct reply reply = { 0 };
		int fd = help(&r, &reply);

		reply.err = fd < 0 ? fd : 0;
		if (send_reply(0, &reply, fd))
			break;
		closep(&fd);
	}
	_exit(0);
}

/* --- the program ------------------------------------------------------------------------------ */

/* Forgets helpers that have ended. */
static void reap(void)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < helper.n; i++) {
		if (syscall(SYS_wait4, helper.pid[i], NULL, WNOHANG | __WALL, NULL) == 0)
			helper.pid[left++] = helper.pid[i];
	}
	helper.n = left;
}

/* Not fork(): the helper's end gives no SIGCHLD, and wait() for any child does not return it. */
static int helper_start(void)
{
	int pair[2];
	long pid;

	reap();
	if (helper.n == HELPERS_MAX)
		return -ETIMEDOUT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
	if (pid == 0)
		serve(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -errno;
	}
	helper.sock = pair[0];
	helper.pid[helper.n++] = (pid_t)pid;
	return 0;
}

static int receive(struct reply *reply)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { reply, sizeof(*reply) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	int fd = -EIO;

	if (recvmsg(helper.sock, &msg, MSG_CMSG_CLOEXEC) != sizeof(*reply))
		return -EIO;
	if (reply->err)
		return reply->err;
	if (CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Waits for the helper's answer. -ETIMEDOUT: there was none in time. */
static int await(unsigned long long limit_ns)
{
	struct pollfd in = { .fd = helper.sock, .events = POLLIN };
	unsigned long long until_ns = now_ns() + limit_ns, now;
	int n;

	do {
		now = now_ns();
		n = poll(&in, 1, now < until_ns ? (int)((until_ns - now) / 1000000) : 0);
	} while (n < 0 && errno == EINTR && now < until_ns);
	return n > 0 ? 0 : -ETIMEDOUT;
}

static unsigned long long time_left(void)
{
	if (now_ns() - helper.window_ns > WINDOW_NS) {
		helper.window_ns = now_ns();
		helper.wasted_ns = 0;
	}
	if (helper.wasted_ns >= WASTED_NS)
		return 0;
	return WASTED_NS - helper.wasted_ns < FILE_NS ? WASTED_NS - helper.wasted_ns : FILE_NS;
}

static int ask(const struct request *r, struct reply *reply)
{
	unsigned long long began_ns = now_ns(), limit_ns = time_left();
	int err = !limit_ns ? -ETIMEDOUT : helper.sock < 0 ? helper_start() : 0;

	if (err)
		return err;
	if (send(helper.sock, r, sizeof(*r), MSG_NOSIGNAL) != sizeof(*r))
		err = -EIO;
	err = err ?: await(limit_ns) ?: receive(reply);
	if (err != -ETIMEDOUT && err != -EIO)
		return err;
	closep(&helper.sock); /* it ends, now or when its system call returns */
	helper.sock = -1;
	if (err == -ETIMEDOUT) {
		helper.wasted_ns += now_ns() - began_ns;
		log_warning("%s%s: its file system does not answer; the file is not read", r->root,
			    r->path);
	}
	return err;
}

/*
 * Opens with O_PATH what the kernel finds without asking a file system. map_files is a link to the
 * mapped file itself, which no look-up leads to.
 */
static int open_at_once(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
	int fd;

	if (!strncmp(path, "/proc/", strlen("/proc/")) && strstr(path, "/map_files/"))
		fd = open(path, O_PATH | O_CLOEXEC);
	else
		fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int open_local(const char *path, struct stat *st)
{
	__cleanup(closep) int fd = open_at_once(path);
	__cleanup(freep) char *text = fd < 0 ? NULL : malloc(sizeof(mountinfo));
	int file;

	if (fd < 0)
		return fd;
	if (!text || kind_of(fd, path, (void *)text) != MOUNT_LOCAL)
		return -EAGAIN;
	file = regular_file_reopen(fd);
	if (file >= 0 && st && fstat(file, st) < 0)
		*st = (struct stat){ 0 };
	return file;
}

static int open_by_helper(const char *root, const char *path, struct stat *st)
{
	__cleanup(freep) struct request *r = calloc(1, sizeof(*r));
	struct reply reply = { 0 };
	int fd;

	if (!r)
		return -ENOMEM;
	if (strlen(path) >= sizeof(r->path) || strlen(root) >= sizeof(r->root))
		return -ENAMETOOLONG;
	strcpy(r->path, path);
	strcpy(r->root, root);
	pthread_mutex_lock(&helper.mutex);
	r->copy_network = helper.copy_network;
	fd = ask(r, &reply);
	pthread_mutex_unlock(&helper.mutex);
	if (fd >= 0 && st)
		*st = reply.st;
	return fd;
}

int guarded_file_open(const char *path, struct stat *st)
{
	int fd = open_local(path, st);

	return fd == -EAGAIN ? open_by_helper("", path, st) : fd;
}

int guarded_file_open_below(const char *root, const char *path, struct stat *st)
{
	return open_by_helper(root, path, st);
}

void guarded_files_copy_network(void)
{
	pthread_mutex_lock(&helper.mutex);
	helper.copy_network = true;
	pthread_mutex_unlock(&helper.mutex);
}

bool guarded_file_is_helper(pid_t pid)
{
	bool is = false;

	pthread_mutex_lock(&helper.mutex);
	for (unsigned int i = 0; i < helper.n; i++)
		is |= helper.pid[i] == pid;
	pthread_mutex_unlock(&helper.mutex);
	return is;
}
