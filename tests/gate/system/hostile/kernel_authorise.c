/* kernel_authorise.c - which user may observe which process at which rate: a table, as real users
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/daemon.h"
#include "tests/lib/state.h"

/* Uids and gids that need no entry in /etc/passwd or /etc/group. */
#define ALICE 60001
#define BOB 60002
#define CAROL 60003
#define PROFIL_GID 60100

static struct daemon d;

/* Makes a group profil in a mount namespace of the test's own. */
static void make_group(void)
{
	char path[] = "/tmp/profil-group.XXXXXX";
	int fd = mkstemp(path);

	cr_assert(fd >= 0 && dprintf(fd, "root:x:0:\nprofil:x:%d:\n", PROFIL_GID) > 0);
	close(fd);
	cr_assert(chmod(path, 0644) == 0 && unshare(CLONE_NEWNS) == 0 &&
			  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			  mount(path, "/etc/group", NULL, MS_BIND, NULL) == 0,
		  "cannot put a group file into a mount namespace: %s", strerror(errno));
	unlink(path);
}

static void start(void)
{
	static const char *args[] = { "--user-rate", "2000", NULL };

	make_group();
	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_authorise, .init = start, .fini = stop);

/* --- clients ---------------------------------------------------------------------------------- */

enum client {
	ROOT,
	AS_ALICE,
	AS_BOB,
	OPERATOR,	   /* carol, with profil as a supplementary group */
	OPERATOR_BY_GID,   /* carol, with profil as her primary group */
	ALICE_NS_ROOT,	   /* root in a user namespace of alice's */
	ALICE_IN_CONTAINER /* also in pid and mount namespaces, with its own /proc */
};

/* Becomes @uid for good, as a login does: without any privilege of root. */
static int become(uid_t uid, gid_t gid, gid_t other)
{
	if (setgroups(1, &other) < 0 || setresgid(gid, gid, gid) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		return -1;
	return prctl(PR_SET_DUMPABLE, 1);
}

static int write_file(const char *path, const char *text)
{
	__cleanup(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static int become_ns_root(int more)
{
	char map[64];

	if (become(ALICE, ALICE, ALICE) < 0 || unshare(CLONE_NEWUSER | more) < 0)
		return -1;
	prctl(PR_SET_DUMPABLE, 1);
	snprintf(map, sizeof(map), "0 %d 1\n", ALICE);
	return write_file("/proc/self/uid_map", map);
}

/* Only children enter a new pid namespace: returns in a child, which is its first process. */
static int enter_container(void)
{
	int status;
	pid_t pid;

	if (become_ns_root(CLONE_NEWPID | CLONE_NEWNS) < 0)
		return -1;
	pid = fork();
	if (pid)
		_exit(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status)
			      ? WEXITSTATUS(status)
			      : 254);
	prctl(PR_SET_DUMPABLE, 1);
	return mount("proc", "/proc", "proc", 0, NULL);
}

static int become_client(enum client client)
{
	switch (client) {
	case AS_ALICE:
		return become(ALICE, ALICE, ALICE);
	case AS_BOB:
		return become(BOB, BOB, BOB);
	case OPERATOR:
		return become(CAROL, CAROL, PROFIL_GID);
	case OPERATOR_BY_GID:
		return become(CAROL, PROFIL_GID, CAROL);
	case ALICE_NS_ROOT:
		return become_ns_root(0);
	case ALICE_IN_CONTAINER:
		return enter_container();
	case ROOT:
		break;
	}
	return 0;
}

/* --- targets ---------------------------------------------------------------------------------- */

enum target {
	ALICES,
	BOBS,
	ROOTS,
	OWN_CHILD,	  /* forked by the client */
	UNDUMPABLE,	  /* alice's, after PR_SET_DUMPABLE 0 */
	SAVED_UID,	  /* alice's, with bob as saved uid */
	EFFECTIVE_UID,	  /* alice's, with bob as effective uid */
	CAPABLE,	  /* alice's, with a capability */
	SET_UID,	  /* run by alice, a file of bob's with mode 4755 */
	SET_UID_ROOT,	  /* the same, a file of root's */
	SET_GID,	  /* the same, a file of bob's with mode 2755 */
	SET_UID_OWN,	  /* the same, her own file with mode 4755 */
	UNREADABLE,	  /* a file of root's with mode 0711: she may run it, not read it */
	EXECED,		  /* a plain file of root's */
	ALICES_NAMESPACE, /* in a user namespace of hers */
	KERNEL_THREAD,
	ZOMBIE,
	GONE,
};

#define KTHREADD 2

/* Execs as alice a copy of cat owned by @uid and @gid, which runs until its input ends. */
static void run_copy(uid_t uid, gid_t gid, mode_t mode)
{
	char path[160], command[256];

	snprintf(path, sizeof(path), "%s/cat.%d", d.dir, (int)getpid());
	snprintf(command, sizeof(command), "cp /bin/cat %s", path);
	if (system(command) || chown(path, uid, gid) < 0 || chmod(path, mode) < 0 ||
	    become(ALICE, ALICE, ALICE) < 0)
		return;
	execl(path, path, (char *)NULL);
}

/* Keeps CAP_NET_ADMIN on the way from root to alice. */
static int become_capable(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { .effective = 1u << CAP_NET_ADMIN,
						    .permitted = 1u << CAP_NET_ADMIN } };

	if (prctl(PR_SET_KEEPCAPS, 1) < 0 || become(ALICE, ALICE, ALICE) < 0 ||
	    syscall(SYS_capset, &header, caps) < 0)
		return -1;
	return prctl(PR_SET_DUMPABLE, 1);
}

/* Runs in the target. Returns 0 when it has become @target; when that execs, only on failure. */
static int become_target(enum target target)
{
	switch (target) {
	case ALICES:
		return become(ALICE, ALICE, ALICE);
	case BOBS:
		return become(BOB, BOB, BOB);
	case UNDUMPABLE:
		return become(ALICE, ALICE, ALICE) < 0 ? -1 : prctl(PR_SET_DUMPABLE, 0);
	case SAVED_UID:
		return setresuid(ALICE, ALICE, BOB) < 0 ? -1 : prctl(PR_SET_DUMPABLE, 1);
	case EFFECTIVE_UID:
		return setresuid(ALICE, BOB, ALICE) < 0 ? -1 : prctl(PR_SET_DUMPABLE, 1);
	case CAPABLE:
		return become_capable();
	case SET_UID:
		run_copy(BOB, BOB, 04755);
		return -1;
	case SET_UID_ROOT:
		run_copy(0, 0, 04755);
		return -1;
	case SET_GID:
		run_copy(BOB, BOB, 02755);
		return -1;
	case SET_UID_OWN:
		run_copy(ALICE, ALICE, 04755);
		return -1;
	case UNREADABLE:
		run_copy(0, 0, 0711);
		return -1;
	case EXECED:
		run_copy(0, 0, 0755);
		return -1;
	case ALICES_NAMESPACE:
		return become_ns_root(0);
	default:
		return 0;
	}
}

/* Starts a process that lives until @hold[1] is closed. */
static pid_t target_start(enum target target, int hold[2])
{
	int ready[2];
	char end;
	pid_t pid;

	cr_assert(pipe2(hold, O_CLOEXEC) == 0 && pipe2(ready, O_CLOEXEC) == 0);
	if (target == KERNEL_THREAD)
		return KTHREADD;
	pid = fork();
	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(hold[1]);
		dup2(hold[0], STDIN_FILENO);
		if (become_target(target) < 0 && write(ready[1], "", 1))
			_exit(1);
		if (target == ZOMBIE || target == GONE)
			_exit(0);
		close(ready[1]);
		_exit(read(STDIN_FILENO, &end, 1) != 0);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &end, 1), 0, "target %d did not become what it should be",
		     target);
	close(ready[0]);
	/* The pipe closes during an exec or exit, which may not be complete yet. */
	if (target != GONE)
		cr_assert(await_state(pid, pid, target == ZOMBIE ? 'Z' : 'S'),
			  "target %d, process %d, has ended", target, (int)pid);
	return pid;
}

static void target_end(pid_t pid, int hold[2])
{
	close(hold[0]);
	close(hold[1]);
	if (pid != KTHREADD)
		waitpid(pid, NULL, 0);
}

/* --- with what proof -------------------------------------------------------------------------- */

enum proof {
	OPENS,	      /* /proc/PID/maps, or the client's own when it may not open that */
	OWN_MAPS,     /* /proc/self/maps */
	SMAPS,	      /* /proc/PID/smaps, which has the same mappings */
	UID_MAP,      /* /proc/self/uid_map */
	COPY,	      /* the right text in a memfd called maps */
	STALE,	      /* /proc/PID/maps, opened before an exec */
	NO_PIDFD,     /* the maps twice, no pidfd */
	OTHERS_PIDFD, /* a pidfd of the client itself, with the right maps */
};

static int open_proc(pid_t pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_copy(pid_t pid)
{
	__cleanup(closep) int from = open_proc(pid, "maps");
	int to = memfd_create("maps", MFD_CLOEXEC);
	char text[4096];
	ssize_t n = read(from, text, sizeof(text));

	return n > 0 && write(to, text, (size_t)n) == n ? to : -1;
}

/* Fills in the descriptors of the request. */
static void prove(int fds[2], enum proof proof, pid_t pid)
{
	switch (proof) {
	case OWN_MAPS:
		fds[1] = -1;
		break;
	case COPY:
		fds[1] = open_copy(pid);
		break;
	case SMAPS:
		fds[1] = open_proc(pid, "smaps");
		break;
	case UID_MAP:
		fds[1] = open_proc(getpid(), "uid_map");
		break;
	default:
		fds[1] = open_proc(pid, "maps");
	}
	if (fds[1] < 0)
		fds[1] = open_proc(getpid(), "maps");
	if (proof == NO_PIDFD)
		fds[0] = fds[1];
	if (proof == OTHERS_PIDFD)
		fds[0] = pidfd_open(getpid(), 0);
}

/* --- asking ----------------------------------------------------------------------------------- */

/* The client's exit status: the result of client_add(), or NO_CLIENT. */
#define NO_CLIENT 251 /* it could not become the client or prepare the target */

static int attach(int fds[2], unsigned int hz)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_dial(&d, &hello);
	int err;

	if (sock < 0)
		return CLIENT_CUT_OFF;
	err = client_observe(sock, hz ? 1000000000 / hz : 0);
	return err ? err : client_add(sock, fds, 2);
}

/* Forks a child of the client, which execs after a byte on @tell. */
static pid_t child_start(int tell[2], int told[2])
{
	char byte;
	pid_t pid;

	if (pipe2(tell, O_CLOEXEC) < 0 || pipe2(told, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(tell[1]);
	if (read(tell[0], &byte, 1) == 1 && dup2(tell[0], STDIN_FILENO) >= 0)
		execl("/bin/cat", "cat", (char *)NULL);
	_exit(0);
}

static int attach_child(enum proof proof, unsigned int hz)
{
	int tell[2], told[2], fds[2], err;
	pid_t pid = child_start(tell, told);
	char end;

	if (pid < 0)
		return NO_CLIENT;
	fds[0] = pidfd_open(pid, 0);
	prove(fds, proof, pid);
	if (proof == STALE) {
		close(told[1]);
		if (write(tell[1], "", 1) != 1 || read(told[0], &end, 1) != 0)
			return NO_CLIENT; /* the exec closes the other end */
	}
	err = attach(fds, hz);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return err;
}

/* --- the table -------------------------------------------------------------------------------- */

struct row {
	const char *fact;
	enum client client;
	enum target target;
	enum proof proof;
	unsigned int hz; /* 0: the daemon's default */
	int err;
};

static const struct row rows[] = {
	{ "a user may profile her own process", AS_ALICE, ALICES, OPENS, 0, 0 },
	{ "a user may profile her child", AS_ALICE, OWN_CHILD, OPENS, 0, 0 },
	{ "a user may profile her own set-uid program", AS_ALICE, SET_UID_OWN, OPENS, 0, 0 },
	{ "a user may profile root's program that she runs", AS_ALICE, EXECED, OPENS, 0, 0 },
	{ "a user may not profile another user's process", AS_ALICE, BOBS, OPENS, 0, EACCES },
	{ "another user may not profile hers", AS_BOB, ALICES, OPENS, 0, EACCES },
	{ "a user may not profile root's process", AS_ALICE, ROOTS, OPENS, 0, EACCES },
	{ "a user may not profile an undumpable process", AS_ALICE, UNDUMPABLE, OPENS, 0, EACCES },
	{ "a user may not profile a process with another saved uid", AS_ALICE, SAVED_UID, OPENS, 0,
	  EACCES },
	{ "a user may not profile a process with another effective uid", AS_ALICE, EFFECTIVE_UID,
	  OPENS, 0, EACCES },
	{ "the effective uid alone does not suffice", AS_BOB, EFFECTIVE_UID, OPENS, 0, EACCES },
	{ "a user may not profile a process with a capability", AS_ALICE, CAPABLE, OPENS, 0,
	  EACCES },
	{ "a user may not profile another user's set-uid program", AS_ALICE, SET_UID, OPENS, 0,
	  EACCES },
	{ "the owner of a set-uid program may not profile another user's run", AS_BOB, SET_UID,
	  OPENS, 0, EACCES },
	{ "a user may not profile root's set-uid program", AS_ALICE, SET_UID_ROOT, OPENS, 0,
	  EACCES },
	{ "a user may not profile a set-gid program", AS_ALICE, SET_GID, OPENS, 0, EACCES },
	{ "a user may not profile a program that she may not read", AS_ALICE, UNREADABLE, OPENS, 0,
	  EACCES },
	{ "a user may not profile a kernel thread", AS_ALICE, KERNEL_THREAD, OPENS, 0, EACCES },
	{ "a user finds no zombie", AS_ALICE, ZOMBIE, OPENS, 0, ESRCH },
	{ "a user finds no process that has ended", AS_ALICE, GONE, OPENS, 0, ESRCH },

	{ "her own maps do not prove access to another process", AS_ALICE, ALICES, OWN_MAPS, 0,
	  EACCES },
	{ "her own maps do not prove access to her child", AS_ALICE, OWN_CHILD, OWN_MAPS, 0,
	  EACCES },
	{ "smaps prove no access", AS_ALICE, ALICES, SMAPS, 0, EACCES },
	{ "a uid_map proves no access", AS_ALICE, ALICES, UID_MAP, 0, EACCES },
	{ "a copy of the maps proves no access", AS_ALICE, ALICES, COPY, 0, EACCES },
	{ "maps opened before an exec prove no access", AS_ALICE, OWN_CHILD, STALE, 0, EACCES },
	{ "maps are not accepted as a pidfd", AS_ALICE, ALICES, NO_PIDFD, 0, EBADF },
	{ "maps are not accepted as a pidfd from root", ROOT, ALICES, NO_PIDFD, 0, EBADF },
	{ "the pidfd and the maps must be of one process", AS_ALICE, ALICES, OTHERS_PIDFD, 0,
	  EACCES },

	{ "root may profile any user's process", ROOT, ALICES, OPENS, 0, 0 },
	{ "root may profile root's process", ROOT, ROOTS, OPENS, 0, 0 },
	{ "root may profile a set-uid program", ROOT, SET_UID_ROOT, OPENS, 0, 0 },
	{ "root may profile an undumpable process", ROOT, UNDUMPABLE, OPENS, 0, 0 },
	{ "root needs no maps of the process", ROOT, BOBS, OWN_MAPS, 0, 0 },
	{ "root finds no process that has ended", ROOT, GONE, OPENS, 0, ESRCH },
	{ "root finds no zombie", ROOT, ZOMBIE, OPENS, 0, ESRCH },

	{ "a member of group profil may profile any user's process", OPERATOR, ALICES, OPENS, 0,
	  0 },
	{ "a member of group profil may profile root's process", OPERATOR, ROOTS, OPENS, 0, 0 },
	{ "profil may be the primary group", OPERATOR_BY_GID, BOBS, OPENS, 0, 0 },
	{ "a member of group profil may not profile a set-uid program", OPERATOR, SET_UID_ROOT,
	  OPENS, 0, EACCES },
	{ "a member of group profil may not profile a set-gid program", OPERATOR, SET_GID, OPENS, 0,
	  EACCES },
	{ "a member of group profil may not profile an undumpable process", OPERATOR, UNDUMPABLE,
	  OPENS, 0, EACCES },
	{ "a member of group profil may not profile a process with another saved uid", OPERATOR,
	  SAVED_UID, OPENS, 0, EACCES },
	{ "a member of group profil finds no process that has ended", OPERATOR, GONE, OPENS, 0,
	  ESRCH },

	{ "a user may have --user-rate", AS_ALICE, ALICES, OPENS, 2000, 0 },
	{ "a user may not have a higher rate than --user-rate", AS_ALICE, ALICES, OPENS, 2001,
	  EACCES },
	{ "a member of group profil may not have a higher rate", OPERATOR, ALICES, OPENS, 2001,
	  EACCES },
	{ "root may have a higher rate than --user-rate", ROOT, ALICES, OPENS, 2001, 0 },
	{ "root may not have a rate that no clock has", ROOT, ALICES, OPENS, 1000000, EINVAL },
};

static const struct row namespace_rows[] = {
	{ "a user may profile a process in her namespace", AS_ALICE, ALICES_NAMESPACE, OPENS, 0,
	  0 },
	{ "another user may not profile a process in her namespace", AS_BOB, ALICES_NAMESPACE,
	  OPENS, 0, EACCES },
	{ "root may profile a process in her namespace", ROOT, ALICES_NAMESPACE, OPENS, 0, 0 },
	{ "root of her namespace may profile its child", ALICE_NS_ROOT, OWN_CHILD, OPENS, 0, 0 },
	{ "root of her namespace may not profile root's process", ALICE_NS_ROOT, ROOTS, OPENS, 0,
	  EACCES },
	{ "root of her namespace may not profile another user's process", ALICE_NS_ROOT, BOBS,
	  OPENS, 0, EACCES },
	{ "root of her namespace needs the maps of the process", ALICE_NS_ROOT, ALICES, OWN_MAPS, 0,
	  EACCES },
	{ "root of her namespace may not have a higher rate", ALICE_NS_ROOT, OWN_CHILD, OPENS, 2001,
	  EACCES },
	{ "root of a container may profile a process in it", ALICE_IN_CONTAINER, OWN_CHILD, OPENS,
	  0, 0 },
	{ "root of a container needs the maps of the process", ALICE_IN_CONTAINER, OWN_CHILD,
	  OWN_MAPS, 0, EACCES },
};

/* Runs in a child: never returns. */
static void ask_row(const struct row *r, pid_t pid, int pidfd)
{
	int fds[2] = { pidfd, -1 };

	if (become_client(r->client) < 0)
		_exit(NO_CLIENT);
	if (r->target == OWN_CHILD)
		_exit(attach_child(r->proof, r->hz));
	prove(fds, r->proof, pid);
	_exit(attach(fds, r->hz));
}

static int run_row(const struct row *r)
{
	__cleanup(closep) int pidfd = -1;
	int hold[2], status;
	pid_t target = target_start(r->target, hold), asks;

	pidfd = pidfd_open(target, 0);
	cr_assert(pidfd >= 0, "pidfd_open %d: %s", (int)target, strerror(errno));
	if (r->target == GONE)
		waitpid(target, NULL, 0);
	asks = fork();
	cr_assert(asks >= 0, "fork: %s", strerror(errno));
	if (asks == 0)
		ask_row(r, target, pidfd);
	cr_assert_eq(waitpid(asks, &status, 0), asks);
	target_end(target, hold);
	return WIFEXITED(status) ? WEXITSTATUS(status) : NO_CLIENT;
}

static void run_rows(const struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int err = run_row(&row[i]);

		cr_assert_neq(err, NO_CLIENT, "%s: the client could not be set up", row[i].fact);
		cr_expect_eq(err, row[i].err, "%s: got %s, not %s", row[i].fact,
			     err == CLIENT_CUT_OFF ? "cut off" : strerror(err),
			     strerror(row[i].err));
	}
}

Test(kernel_authorise, each_client_may_observe_what_the_table_says)
{
	run_rows(rows, sizeof(rows) / sizeof(rows[0]));
}

Test(kernel_authorise, each_client_in_a_namespace_may_observe_what_the_table_says)
{
	char most[32] = "";
	__cleanup(closep) int fd = open("/proc/sys/user/max_user_namespaces", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, most, sizeof(most) - 1) <= 0 || atoi(most) == 0)
		cr_skip_test("this kernel gives users no namespaces of their own");
	run_rows(namespace_rows, sizeof(namespace_rows) / sizeof(namespace_rows[0]));
}
