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
#include "file_account.h"
#include "guarded_file.h"
#include "mounts.h"

/* The time limit of one file. */
#define FILE_NS 500000000ull
#define LEAST_NS 1000000ull /* with less than that left, no file is waited for */

/* Helpers that may hang at a time, for all and for one account: SIGKILL does not end them. */
#define HELPERS_MAX 16
#define HUNG_MAX 2

/* The size of a file that is copied into memory. */
#define COPY_BYTES_MAX (64ull << 20)

/* Of this process, and of another, whose user chooses how many mounts it has. */
#define MOUNTINFO_BYTES (1u << 20)
#define OTHER_MOUNTINFO_BYTES (64u << 10)

struct request {
	bool copy_network;
	__u64 copy_bytes;
	char root[64]; /* "": none */
	char path[PATH_MAX];
};

struct reply {
	int err;
	bool is_served;
	bool is_copy;
	__u64 copied_bytes; /* without holes */
	struct stat st;
};

/* A helper process, and the account of the last file that it was asked for. */
struct helper {
	pid_t pid;
	struct file_account *account;
};

/* Shared by all threads. */
static struct {
	pthread_mutex_t mutex;
	int sock; /* of the present helper, which is the last one; -1: none */
	struct helper helper[HELPERS_MAX];
	unsigned int n;
	bool copy_network;
} all = { .mutex = PTHREAD_MUTEX_INITIALIZER, .sock = -1 };

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

/* "/proc/4711" at the beginning of @path, followed by @file; "": none. */
static void process_file(char *out, size_t bytes, const char *path, const char *file)
{
	size_t n = strlen("/proc/");

	*out = '\0';
	if (strncmp(path, "/proc/", n))
		return;
	n += strspn(path + n, "0123456789");
	if (path[n] == '/' && n > strlen("/proc/") && n + strlen(file) < bytes) {
		memcpy(out, path, n);
		strcpy(out + n, file);
	}
}

struct mountinfos {
	char own[MOUNTINFO_BYTES];
	char other[OTHER_MOUNTINFO_BYTES];
};

/*
 * The kind of the mount of @fd, which was opened with O_PATH by way of @path. Asks only the kernel,
 * not the file system.
 */
static enum mount_kind kind_of(int fd, const char *path, struct mountinfos *text)
{
	const char *trusted = mounts_trusted();
	char name[64], *id;
	enum mount_kind kind;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	read_all(name, text->own, MOUNTINFO_BYTES);
	id = strstr(text->own, "mnt_id:");
	if (!id)
		return MOUNT_FOREIGN;
	fd = (int)strtol(id + strlen("mnt_id:"), NULL, 10);
	read_all("/proc/self/mountinfo", text->own, MOUNTINFO_BYTES);
	process_file(name, sizeof(name), path, "/mountinfo");
	text->other[0] = '\0';
	if (*name)
		read_all(name, text->other, OTHER_MOUNTINFO_BYTES);
	kind = mounts_kind(text->own, text->other, (unsigned int)fd);
	if (kind != MOUNT_FOREIGN || !trusted)
		return kind;
	snprintf(name, sizeof(name), "/proc/%s/mountinfo", trusted);
	read_all(name, text->own, MOUNTINFO_BYTES);
	return mounts_kind(text->own, text->other, (unsigned int)fd);
}

/* --- the helper, which allocates nothing: other threads may have held locks at the fork --------
 */

static struct mountinfos mountinfos;
static char block[1 << 16];

static bool is_zero(const char *p, size_t n)
{
	return !n || (!*p && !memcmp(p, p + 1, n - 1));
}

/* Zeros become holes, which take no memory. */
static int copy(int fd, __u64 bytes_max, struct reply *reply)
{
	__cleanup(closep) int out = -1;
	off_t at = 0;
	ssize_t n;

	if ((__u64)reply->st.st_size > bytes_max)
		return -EFBIG;
	out = memfd_create(FILE_COPY_NAME, MFD_CLOEXEC);
	if (out < 0 || ftruncate(out, reply->st.st_size) < 0)
		return -errno;
	while ((n = pread(fd, block, sizeof(block), at)) > 0 && at < reply->st.st_size) {
		if (!is_zero(block, (size_t)n)) {
			if (pwrite(out, block, (size_t)n, at) != n)
				return -ENOSPC;
			reply->copied_bytes += (__u64)n;
		}
		at += n;
	}
	if (n < 0)
		return -errno;
	reply->is_copy = true;
	return steal_fd(out);
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
	kind = kind_of(path, *r->root ? r->root : r->path, &mountinfos);
	fd = regular_file_reopen(path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &reply->st) < 0)
		return -errno;
	reply->is_served = kind != MOUNT_LOCAL;
	if (kind == MOUNT_LOCAL)
		return steal_fd(fd);
	if (kind == MOUNT_NETWORK && !r->copy_network) /* does its server answer at all? */
		return pread(fd, &byte, 1, 0) < 0 ? -errno : steal_fd(fd);
	return copy(fd, r->copy_bytes, reply);
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

/* Forgets helpers that have ended. Returns how many of those that are left hang for @account. */
static unsigned int reap(const struct file_account *account)
{
	unsigned int left = 0, hung = 0;

	for (unsigned int i = 0; i < all.n; i++) {
		if (syscall(SYS_wait4, all.helper[i].pid, NULL, WNOHANG | __WALL, NULL) == 0) {
			hung += all.helper[i].account == account;
			all.helper[left++] = all.helper[i];
		}
	}
	all.n = left;
	return hung;
}

/* Not fork(): the helper's end gives no SIGCHLD, and wait() for any child does not return it. */
static int helper_start(const struct file_account *account)
{
	int pair[2];
	long pid;

	if (reap(account) >= HUNG_MAX || all.n == HELPERS_MAX)
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
	all.sock = pair[0];
	all.helper[all.n++] = (struct helper){ (pid_t)pid, NULL };
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

	if (recvmsg(all.sock, &msg, MSG_CMSG_CLOEXEC) != sizeof(*reply))
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
	struct pollfd in = { .fd = all.sock, .events = POLLIN };
	unsigned long long until_ns = now_ns() + limit_ns, now;
	int n;

	do {
		now = now_ns();
		n = poll(&in, 1, now < until_ns ? (int)((until_ns - now) / 1000000) : 0);
	} while (n < 0 && errno == EINTR && now < until_ns);
	return n > 0 ? 0 : -ETIMEDOUT;
}

static int ask(const struct request *r, struct reply *reply, struct file_account *account)
{
	unsigned long long left_ns = file_account_time_left(account, FILE_TIME);
	int err = left_ns < LEAST_NS ? -ETIMEDOUT : all.sock < 0 ? helper_start(account) : 0;

	if (err)
		return err;
	all.helper[all.n - 1].account = account;
	if (send(all.sock, r, sizeof(*r), MSG_NOSIGNAL) != sizeof(*r))
		err = -EIO;
	err = err ?: await(left_ns < FILE_NS ? left_ns : FILE_NS) ?: receive(reply);
	if (err != -ETIMEDOUT && err != -EIO)
		return err;
	closep(&all.sock); /* it ends, now or when its system call returns */
	all.sock = -1;
	if (err == -ETIMEDOUT) {
		reply->is_served = true;
		log_warning("%s%s: its file system does not answer; the file is not read", r->root,
			    r->path);
	}
	return err;
}

static int ask_for(struct request *r, struct reply *reply, struct file_account *account)
{
	__u64 left = file_account_bytes_left(account);
	int fd;

	r->copy_bytes = left < COPY_BYTES_MAX ? left : COPY_BYTES_MAX;
	*reply = (struct reply){ 0 };
	fd = ask(r, reply, account);
	if (fd < 0 || !reply->is_copy)
		return fd;
	if (!file_account_keep_copy(account, fd, reply->copied_bytes))
		return fd;
	close(fd);
	return -EFBIG;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* The account of the user of the process through whose directory in /proc @path leads. */
static struct file_account *account_of(const char *path)
{
	int pid = 0;

	sscanf(path, "/proc/%d/", &pid);
	return pid > 0 ? file_account_of_process(pid) : file_account_of_any();
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
	__cleanup(freep) struct mountinfos *text = fd < 0 ? NULL : malloc(sizeof(*text));
	int file;

	if (fd < 0)
		return fd;
	if (!text || kind_of(fd, path, text) != MOUNT_LOCAL)
		return -EAGAIN;
	file = regular_file_reopen(fd);
	if (file >= 0 && st && fstat(file, st) < 0)
		*st = (struct stat){ 0 };
	return file;
}

/* Without the lock that threads share. */
static int open_charged(struct request *r, struct reply *reply, struct file_account *account)
{
	unsigned long long began_ns = now_ns(), ns;
	int fd = ask_for(r, reply, account);

	if (fd == -EFBIG && file_account_collect_copies())
		fd = ask_for(r, reply, account);
	ns = now_ns() - began_ns;
	if (reply->is_served)
		file_account_use_time(account, FILE_TIME, ns);
	return fd;
}

static int open_by_helper(const char *root, const char *path, struct stat *st)
{
	__cleanup(freep) struct request *r = calloc(1, sizeof(*r));
	struct file_account *account = account_of(*root ? root : path);
	struct reply reply;
	int fd;

	if (!r)
		return -ENOMEM;
	if (strlen(path) >= sizeof(r->path) || strlen(root) >= sizeof(r->root))
		return -ENAMETOOLONG;
	strcpy(r->path, path);
	strcpy(r->root, root);
	pthread_mutex_lock(&all.mutex);
	r->copy_network = all.copy_network;
	fd = open_charged(r, &reply, account);
	pthread_mutex_unlock(&all.mutex);
	if (fd >= 0 && st)
		*st = reply.st;
	return fd;
}

int guarded_file_open(const char *path, struct stat *st)
{
	struct file_account *account = account_of(path);
	bool is_charged = account != file_account_of_any() && !file_account_is_own(account);
	__u64 began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int fd;

	/* A process can have a file mapped tens of thousands of times. */
	if (is_charged && !file_account_time_left(account, FILE_TIME))
		return -ETIMEDOUT;
	fd = open_local(path, st);
	if (is_charged)
		file_account_use_time(account, FILE_TIME,
				      clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
	return fd == -EAGAIN ? open_by_helper("", path, st) : fd;
}

int guarded_file_open_below(const char *root, const char *path, struct stat *st)
{
	return open_by_helper(root, path, st);
}

void guarded_files_copy_network(void)
{
	pthread_mutex_lock(&all.mutex);
	all.copy_network = true;
	pthread_mutex_unlock(&all.mutex);
}

bool guarded_file_is_helper(pid_t pid)
{
	bool is = false;

	pthread_mutex_lock(&all.mutex);
	for (unsigned int i = 0; i < all.n; i++)
		is |= all.helper[i].pid == pid;
	pthread_mutex_unlock(&all.mutex);
	return is;
}
