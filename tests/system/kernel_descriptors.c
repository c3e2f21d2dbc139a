/* kernel_descriptors.c - descriptors as a client's weapon: none proves, blocks, stays or gives
 * anything */
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

#include "core/layout.h"
#include "core/scope.h"
#include "core/wire.h"
#include "daemon.h"
#include "neighbour.h"
#include "users.h"

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

/* --- ATTACH --------------------------------------------------------------------------------------
 */

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

/* What a client may pass: a path, or something that has none. */
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

/* The errno of an ATTACH with these descriptors, or -1 where the daemon hung up. */
static int attach(const int *fds, unsigned int nfds)
{
	__cleanup(closep) int sock = client_open(&d, NULL);
	struct profil_msg_attach m = { .flags = 0 };
	struct profil_msg_reply reply;

	wire_header(&m.h, PROFIL_MSG_ATTACH, sizeof(m), 0, 0);
	cr_assert_eq(wire_send(sock, &m.h, fds, nfds), 0);
	return client_recv(sock, &reply, sizeof(reply)) ? (int)reply.error : -1;
}

/* Becomes the attacker for a while: only what he opens himself counts. */
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
	fprintf(stderr, "%s was good as %s\n", what, as);
	failures++;
}

static void try_weapons(void)
{
	int pidfd = pidfd_open(getpid(), 0), maps = open("/proc/self/maps", O_RDONLY);

	for (size_t i = 0; i < WEAPONS; i++) {
		int fd = weapon_open(&weapons[i]);

		if (fd < 0)
			continue; /* not there, or not for him */
		expect_refused(attach((int[]){ pidfd, fd }, 2), weapons[i].name, "maps");
		expect_refused(attach((int[]){ fd, maps }, 2), weapons[i].name, "a pidfd");
		expect_refused(attach((int[]){ fd, fd }, 2), weapons[i].name, "both");
		close(fd);
	}
	expect_refused(attach((int[]){ maps, pidfd }, 2), "the right pair the wrong way round",
		       "it");
	expect_refused(attach((int[]){ pidfd, pidfd }, 2), "a pidfd", "maps");
	exit(failures != 0 || attach((int[]){ pidfd, maps }, 2) != 0);
}

Test(kernel_descriptors, only_a_pidfd_and_its_maps_are_what_attach_wants)
{
	unsigned int before = daemon_descriptors(&d, ~0u);

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
		if (n != 2 && attach(fds, n) != -1) {
			fprintf(stderr, "%u descriptors were answered\n", n);
			failures++;
		}
	}
	exit(failures);
}

/* As many as a message can have: 0, 1, 3, 4, 87, 170, 253. */
Test(kernel_descriptors, any_other_number_of_them_is_cut_off_and_closed)
{
	unsigned int before = daemon_descriptors(&d, ~0u);

	as_attacker(try_numbers);
	cr_expect_leq(daemon_descriptors(&d, before), before);
	neighbour_stop(&d);
}

/* The daemon closes what it refuses: who waits for the other end of a pipe sees it. */
Test(kernel_descriptors, what_is_refused_is_closed)
{
	int ends[2], fds[2];
	char byte;

	cr_assert_eq(pipe(ends), 0);
	fds[0] = pidfd_open(getpid(), 0);
	fds[1] = ends[1];
	cr_assert_eq(attach(fds, 1), -1);
	attach((int[]){ ends[1], ends[1] }, 2);
	close(ends[1]);
	cr_assert_eq(client_recv(ends[0], &byte, 1), 0, "the pipe is open in the daemon");
	neighbour_stop(&d);
}

/* --- counters that a reader gets
 * ------------------------------------------------------------------- */

/* The answer to a reader, whose events may come before it. */
static struct profil_msg_reply recv_answer(int sock, int *fds, unsigned int *nfds)
{
	static union {
		struct profil_msg_reply m;
		char space[PROFIL_MSG_MAX];
	} answer;
	const unsigned int room = nfds ? *nfds : 0;

	do {
		if (nfds)
			*nfds = room;
		cr_assert_eq(wire_recv(sock, &answer, sizeof(answer), fds, nfds), 0);
	} while (answer.m.h.type == PROFIL_MSG_EVENTS);
	return answer.m;
}

/* A reader of ours, with one image; its counters' map. */
static int open_counters(int sock, pid_t target)
{
	int fds[] = { pidfd_open(target, 0), open("/proc/self/maps", O_RDONLY) };
	int maps[PROFIL_MSG_FDS];
	unsigned int nmaps = PROFIL_MSG_FDS;
	struct profil_msg_attach m = { .flags = 0 };
	struct profil_msg_reply reply;
	struct {
		struct profil_msg_image m;
		struct profil_msg_region region;
	} image = { .m = { .tgid = (__u32)target, .nregions = 1 },
		    .region = { .x = { .span = ~0ull, .nbins = 4 } } };

	wire_header(&m.h, PROFIL_MSG_ATTACH, sizeof(m), 0, 0);
	cr_assert_eq(wire_send(sock, &m.h, fds, 2), 0);
	reply = recv_answer(sock, NULL, NULL);
	cr_assert_eq(reply.error, 0, "ATTACH: %s", strerror((int)reply.error));
	wire_header(&image.m.h, PROFIL_MSG_IMAGE, sizeof(image.m), sizeof(image.region), 1);
	cr_assert_eq(wire_send(sock, &image.m.h, NULL, 0), 0);
	reply = recv_answer(sock, maps, &nmaps);
	cr_assert(reply.error == 0 && nmaps == 1, "IMAGE: %s, %u maps", strerror((int)reply.error),
		  nmaps);
	close(fds[0]);
	close(fds[1]);
	return maps[0];
}

static void expect_no_write(int map)
{
	static struct profil_chunk chunk;
	__u32 key = 0;
	void *at =
		mmap(NULL, sizeof(struct profil_chunk), PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);

	cr_expect_eq(at, MAP_FAILED, "it can be mapped to be written");
	at = mmap(NULL, sizeof(struct profil_chunk), PROT_READ, MAP_SHARED, map, 0);
	cr_assert_neq(at, MAP_FAILED, "mmap: %s", strerror(errno));
	cr_expect_eq(mprotect(at, sizeof(struct profil_chunk), PROT_READ | PROT_WRITE), -1,
		     "it can be made to be written");
	cr_expect(bpf_map_update_elem(map, &key, &chunk, BPF_ANY) < 0, "it can be updated");
	cr_expect(bpf_map_delete_elem(map, &key) < 0, "something in it can be deleted");
	cr_expect_eq(ftruncate(map, 0), -1, "it can be truncated");
	munmap(at, sizeof(struct profil_chunk));
}

/* All that is in there, but for the reader's own four counters and the mark of their group. */
static unsigned long strangers(int map)
{
	const unsigned char *at =
		mmap(NULL, sizeof(struct profil_chunk), PROT_READ, MAP_SHARED, map, 0);
	unsigned long n = 0;

	cr_assert_neq(at, MAP_FAILED, "mmap: %s", strerror(errno));
	for (unsigned long i = 1; i < sizeof(struct profil_chunk); i++)
		n += at[i] && (i < PROFIL_CHUNK_GROUPS || i >= PROFIL_CHUNK_GROUPS + 16);
	return n;
}

/* Root, who may do most with a map; what he cannot do here nobody can. */
Test(kernel_descriptors, a_readers_counters_are_his_to_read_and_nobodys_to_write)
{
	__cleanup(closep) int sock = client_open(&d, NULL);
	__cleanup(closep) int other = client_open(&d, NULL);
	__cleanup(closep) int map = open_counters(sock, getpid());
	__cleanup(closep) int second = open_counters(other, getpid());
	struct profil_header stats;
	struct profil_msg_reply reply;

	expect_no_write(map);
	wire_header(&stats, PROFIL_MSG_STATS, sizeof(stats), 0, 0);
	alarm(60);
	do
		cr_assert_eq(client_ask(sock, &stats, &reply), 0);
	while (reply.total < 100);
	alarm(0);
	cr_expect_eq(strangers(map), 0, "the neighbour's counters are in there");
	cr_expect_eq(strangers(second), 0, "another's counters are in there");
	neighbour_stop(&d);
}
