/* still.c - profiled processes that do not run, and buffers in memory of unusual kinds
 *
 * usage: still stopped|vfork|frozen|userfaultfd|hugetlb|sealed|io_uring|exhausted
 *
 * Many processes have a profile on and then
 *
 *	stopped      are held by ptrace
 *	vfork        wait for a vfork child, in state D
 *	frozen       are frozen in a cgroup (root prepares it)
 *	userfaultfd  have buffers whose pages someone else should provide, and does not (root)
 *	hugetlb      have buffers in huge pages (root)
 *	sealed       have buffers in a memory file, which is sealed and cut off meanwhile
 *	io_uring     have buffers in the requests of a ring, or which a ring has pinned
 *	exhausted    have buffers that are not there yet, in a cgroup without memory (root)
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/hostile.h"

#define PROCESSES 16
#define BUFFER_BYTES (2u << 20)
#define BINS (BUFFER_BYTES / 2)

static struct profil_cookie_area cookie;
static unsigned short own_buffer[4096];
static char group[128];

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		attack_skip("%s: %s", path, strerror(errno));
	close(fd);
}

static void find_group(const char *controller)
{
	struct stat st;

	snprintf(group, sizeof(group), "/sys/fs/cgroup/%s", controller);
	if (stat(group, &st) < 0)
		snprintf(group, sizeof(group), "/sys/fs/cgroup");
	strcat(group, "/profil-hostile");
}

/* The file with the limit of memory; in version 2 the controller must be turned on above. */
static const char *memory_limit(void)
{
	int fd;

	if (!access("/sys/fs/cgroup/memory", F_OK))
		return "memory.limit_in_bytes";
	fd = open("/sys/fs/cgroup/cgroup.subtree_control", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "+memory", strlen("+memory")) < 0)
		attack_skip("no cgroups with a limit of memory: %s", strerror(errno));
	close(fd);
	return "memory.max";
}

/* A cgroup of version 1 or 2, with this process in it. */
static void enter_group(const char *controller, const char *setting, const char *value)
{
	char pid[16];

	find_group(controller);
	if (mkdir(group, 0755) < 0 && errno != EEXIST)
		attack_skip("%s: %s", group, strerror(errno));
	if (setting)
		write_file(group, setting, value);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	write_file(group, "cgroup.procs", pid);
}

static void leave_groups(void)
{
	find_group("freezer");
	rmdir(group);
	find_group("memory");
	rmdir(group);
}

static void freeze(bool frozen)
{
	char path[256];
	struct stat st;

	find_group("freezer");
	snprintf(path, sizeof(path), "%s/cgroup.freeze", group);
	if (stat(path, &st) == 0)
		write_file(group, "cgroup.freeze", frozen ? "1" : "0");
	else
		write_file(group, "freezer.state", frozen ? "FROZEN" : "THAWED");
}

static void *userfault_buffer(void)
{
	void *buf = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = { .range = { (unsigned long)buf, BUFFER_BYTES },
				     .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &r) < 0)
		attack_skip("userfaultfd: %s", strerror(errno));
	return buf;
}

/*
 * The requests of an io_uring, which are pages of the kernel, or memory that it has pinned: each
 * for half of the processes.
 */
static void *uring_buffer(void)
{
	struct io_uring_params p = { 0 };
	struct iovec iov = { .iov_len = BUFFER_BYTES };
	int fd = (int)syscall(SYS_io_uring_setup, BUFFER_BYTES / sizeof(struct io_uring_sqe), &p);
	void *buf;

	if (fd < 0)
		attack_skip("io_uring: %s", strerror(errno));
	if (getpid() % 2)
		return mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    IORING_OFF_SQES);
	buf = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	iov.iov_base = buf;
	if (syscall(SYS_io_uring_register, fd, IORING_REGISTER_BUFFERS, &iov, 1) < 0)
		attack_skip("io_uring pins no buffer: %s", strerror(errno));
	return buf;
}

static void *buffer_for(const char *what)
{
	void *buf = own_buffer;
	int fd;

	if (!strcmp(what, "userfaultfd"))
		return userfault_buffer();
	if (!strcmp(what, "io_uring"))
		buf = uring_buffer();
	if (!strcmp(what, "hugetlb"))
		buf = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (!strcmp(what, "exhausted"))
		buf = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	if (!strcmp(what, "sealed")) {
		fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (fd < 0 || ftruncate(fd, BUFFER_BYTES) < 0)
			attack_fail("memfd");
		buf = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
		own_buffer[0] = (unsigned short)fd;
	}
	if (buf == MAP_FAILED)
		attack_skip("%s: %s", what, strerror(errno));
	return buf;
}

static void start(const char *what, void *buf)
{
	struct profil_msg_hello hello;
	int sock = peer_dial(&hello), err = PEER_CLOSED;

	if (sock >= 0) {
		peer_send_start(sock, &hello, &cookie, buf, 1,
				buf == own_buffer ? sizeof(own_buffer) / 2 : BINS);
		err = peer_reply(sock, NULL);
		close(sock);
	}
	if (err && strcmp(what, "userfaultfd") != 0 && strcmp(what, "exhausted") != 0)
		fprintf(stderr, "START: errno %d\n", err);
}

static void work(void)
{
	uint64_t until = now_ns() + 50000000;

	while (now_ns() < until)
		;
}

/* A profiled process; @ready tells the parent. */
static void profiled(const char *what, int ready)
{
	void *buf;

	if (!strcmp(what, "frozen"))
		enter_group("freezer", NULL, NULL);
	if (!strcmp(what, "exhausted"))
		enter_group("memory", memory_limit(), "16777216");
	buf = buffer_for(what);
	if (!getuid())
		attack_become(ATTACKER);
	start(what, buf);
	work();
	if (write(ready, "", 1) < 0)
		_exit(1);
	if (!strcmp(what, "vfork")) {
		if (vfork() == 0) {
			for (;;)
				pause();
		}
	}
	if (!strcmp(what, "sealed")) {
		for (;;) {
			work();
			if (ftruncate(own_buffer[0], 0) < 0 ||
			    ftruncate(own_buffer[0], BUFFER_BYTES) < 0)
				_exit(0);
		}
	}
	for (;;)
		work();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	pid_t pid[PROCESSES];
	int ready[2];
	char byte;

	raise_limit(RLIMIT_NOFILE);
	if (pipe(ready) < 0)
		attack_fail("pipe");
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = attack_fork();
		if (pid[i] == 0)
			profiled(what, ready[1]);
	}
	close(ready[1]);
	/* A process that is killed for want of memory, or waits for its START, tells nothing. */
	for (int i = 0; i < PROCESSES && strcmp(what, "userfaultfd") && strcmp(what, "exhausted");
	     i++) {
		if (read(ready[0], &byte, 1) != 1)
			break;
	}
	for (int i = 0; i < PROCESSES && !strcmp(what, "stopped"); i++) {
		if (ptrace(PTRACE_SEIZE, pid[i], NULL, NULL) < 0 ||
		    ptrace(PTRACE_INTERRUPT, pid[i], NULL, NULL) < 0)
			attack_skip("ptrace: %s", strerror(errno));
		waitpid(pid[i], NULL, __WALL);
	}
	if (!strcmp(what, "frozen"))
		freeze(true);
	attack_under_way();
	attack_wait(-1);
	if (!strcmp(what, "frozen"))
		freeze(false);
	for (int i = 0; i < PROCESSES; i++)
		kill(pid[i], SIGKILL);
	attack_end_children();
	leave_groups();
	return 0;
}
