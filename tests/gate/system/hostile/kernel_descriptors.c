/* kernel_descriptors.c - hostile descriptors: none proves access, blocks the daemon or stays open
 */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/daemon.h"
#include "tests/lib/neighbour.h"
#include "tests/lib/observer.h"
#include "tests/lib/users.h"

#define ATTACKER 60001

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", "1009", "--user-requests", "100000", NULL };

	daemon_start(&d, NULL, args);
	neighbour_start(&d);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_descriptors, .init = start, .fini = stop);

/* --- ADD -------------------------------------------------------------------------------------- */

static int open_pipe(void)
{
	int ends[2];

	return pipe(ends) ? -1 : ends[0];
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int open_memfd(void)
{
	return memfd_create("maps", 0);
}

static int open_event(void)
{
	return eventfd(0, 0);
}

static int open_epoll(void)
{
	return epoll_create1(0);
}

/* A descriptor that a client may pass: of a path, or made by open(). */
static const struct weapon {
	const char *name;
	int flags;
	int (*open)(void);
} weapons[] = {
	{ "/proc/self/uid_map", O_RDONLY, NULL },
	{ "/proc/self/gid_map", O_WRONLY, NULL },
	{ "/proc/self/mem", O_RDWR, NULL },
	{ "/proc/self/smaps", O_RDONLY, NULL },
	{ "/proc/self/status", O_RDONLY, NULL },
	{ "/proc/self/oom_score_adj", O_RDWR, NULL },
	{ "/proc/self", O_DIRECTORY, NULL },
	{ "/proc/self/fd", O_DIRECTORY, NULL },
	{ "/proc/self/maps", O_PATH, NULL },
	{ "/proc/1", O_PATH, NULL },
	{ "/proc", O_DIRECTORY, NULL },
	{ "/proc/kmsg", O_PATH, NULL },
	{ "/proc/version", O_RDONLY, NULL },
	{ "/sys/kernel/uevent_seqnum", O_RDONLY, NULL },
	{ "/", O_DIRECTORY, NULL },
	{ "/etc/passwd", O_RDONLY, NULL },
	{ "/dev/null", O_RDWR, NULL },
	{ "/dev/zero", O_RDONLY, NULL },
	{ "/dev/random", O_RDONLY, NULL },
	{ "a pipe", 0, open_pipe },
	{ "a socket", 0, open_socket },
	{ "a memfd called maps", 0, open_memfd },
	{ "an eventfd", 0, open_event },
	{ "an epoll", 0, open_epoll },
};
#define WEAPONS (sizeof(weapons) / sizeof(weapons[0]))

static int weapon_open(const struct weapon *w)
{
	return w->open ? w->open() : open(w->name, w->flags | O_CLOEXEC);
}

/* The errno of an ADD with these descriptors, or -1 when the daemon closes the connection. */
static int add(const int *fds, unsigned int nfds)
{
	__cleanup(closep) int sock = client_open(&d, NULL);
	int err = client_observe(sock, 0);

	cr_assert_eq(err, 0, "OBSERVE: %s", strerror(err));
	err = client_add(sock, fds, nfds);
	return err == CLIENT_CUT_OFF ? -1 : err;
}

/* Runs @fn in a child that is the attacker, so that it opens its own descriptors. */
static void as_attacker(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		cr_assert(users_become(ATTACKER) == 0);
		fn();
		exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "the attacker ended with wait status 0x%x", status);
}

static int failures;

static void expect_refused(int err, const char *what, const char *as)
{
	if (err)
		return;
	fprintf(stderr, "%s was accepted as %s\n", what, as);
	failures++;
}

static void try_one(void)
{
	add(NULL, 0);
	exit(0);
}

static void try_weapons(void)
{
	int pidfd = pidfd_open(getpid(), 0), maps = open("/proc/self/maps", O_RDONLY);

	for (size_t i = 0; i < WEAPONS; i++) {
		int fd = weapon_open(&weapons[i]);

		if (fd < 0)
			continue; /* does not exist, or the attacker may not open it */
		expect_refused(add((int[]){ pidfd, fd }, 2), weapons[i].name, "maps");
		expect_refused(add((int[]){ fd, maps }, 2), weapons[i].name, "a pidfd");
		expect_refused(add((int[]){ fd, fd }, 2), weapons[i].name, "both");
		close(fd);
	}
	expect_refused(add((int[]){ maps, pidfd }, 2), "a pidfd and maps in the wrong order",
		       "a pidfd and maps");
	expect_refused(add((int[]){ pidfd, pidfd }, 2), "a pidfd", "maps");
	exit(failures != 0 || add((int[]){ pidfd, maps }, 2) != 0);
}

Test(kernel_descriptors, accepts_only_a_pidfd_and_its_maps)
{
	unsigned int before;

	as_attacker(try_one); /* afterwards a worker of this user is parked */
	before = daemon_descriptors(&d, ~0u);
	as_attacker(try_weapons);
	cr_expect_leq(daemon_descriptors(&d, before), before);
	neighbour_stop(&d);
}

static void try_numbers(void)
{
	int fds[PROFIL_MSG_FDS];

	for (unsigned int i = 0; i < PROFIL_MSG_FDS; i++)
		fds[i] = i % 2 ? open("/proc/self/maps", O_RDONLY) : pidfd_open(getpid(), 0);
	for (unsigned int n = 0; n <= PROFIL_MSG_FDS; n += n < 4 ? 1 : 83) {
		int err = n == 2 ? 0 : add(fds, n), expected = n ? EBADF : -1;

		if (n != 2 && err != expected) {
			fprintf(stderr, "%u descriptors: %d, not %d\n", n, err, expected);
			failures++;
		}
	}
	exit(failures);
}

/* Up to as many as a message can have: 0, 1, 3, 4, 87, 170, 253. */
Test(kernel_descriptors, any_other_number_of_descriptors_is_refused_and_closed)
{
	unsigned int before;

	as_attacker(try_one); /* afterwards a worker of this user is parked */
	before = daemon_descriptors(&d, ~0u);
	as_attacker(try_numbers);
	cr_expect_leq(daemon_descriptors(&d, before), before);
	neighbour_stop(&d);
}

/* A pipe reports its end when the daemon closes the descriptor. */
Test(kernel_descriptors, a_refused_descriptor_is_closed)
{
	int ends[2], fds[2];
	char byte;

	cr_assert_eq(pipe(ends), 0);
	fds[0] = pidfd_open(getpid(), 0);
	fds[1] = ends[1];
	cr_assert_eq(add(fds, 1), EBADF);
	add((int[]){ ends[1], ends[1] }, 2);
	close(ends[1]);
	cr_assert_eq(client_recv(ends[0], &byte, 1), 0, "the pipe is open in the daemon");
	neighbour_stop(&d);
}

/* --- the table -------------------------------------------------------------------------------- */

static void expect_no_write(int map, size_t bytes)
{
	static char page[PROFIL_TABLE_PAGE];
	__u32 key = 0;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);

	cr_expect_eq(at, MAP_FAILED, "the table can be mapped for writing");
	at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, map, 0);
	cr_assert_neq(at, MAP_FAILED, "mmap: %s", strerror(errno));
	cr_expect_eq(mprotect(at, bytes, PROT_READ | PROT_WRITE), -1,
		     "the mapping can be made writable");
	cr_expect(bpf_map_update_elem(map, &key, page, BPF_ANY) < 0, "the table can be updated");
	cr_expect(bpf_map_delete_elem(map, &key) < 0, "an element can be deleted");
	cr_expect_eq(ftruncate(map, 0), -1, "the table can be truncated");
	munmap(at, bytes);
}

/* As root, which has the most rights on a map. */
Test(kernel_descriptors, table_of_an_attachment_cannot_be_written)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, 0);
	struct observer o;

	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	cr_assert_eq(observer_add(&o, getpid()), 0);
	expect_no_write(o.fd, o.bytes);
	while (observer_total(&o) < 100)
		; /* this process works and is observed */
	expect_no_write(o.fd, o.bytes);
	observer_close(&o);
	neighbour_stop(&d);
}
