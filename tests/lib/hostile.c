/* hostile.c - shared by the hostile programs: a client of the protocol, the harness's signals */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "hostile.h"

#define ANSWER_S 20

void attack_under_way(void)
{
	puts("under way");
	fflush(stdout);
}

void attack_wait(int ms)
{
	struct pollfd end = { .fd = STDIN_FILENO, .events = POLLIN };

	while (poll(&end, 1, ms) < 0 && errno == EINTR)
		;
}

bool attack_over(void)
{
	struct pollfd end = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&end, 1, 0) > 0;
}

void attack_result(const char *name, long long number)
{
	printf("result %s %lld\n", name, number);
	fflush(stdout);
}

void attack_skip(const char *format, ...)
{
	va_list args;

	fputs("skip ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(77);
}

void attack_fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	_exit(1);
}

void attack_end_children(void)
{
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM); /* the harness makes each attack a process group */
	while (wait(NULL) > 0)
		;
}

pid_t attack_fork(void)
{
	pid_t pid = fork();

	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void attack_become(uid_t uid)
{
	if (getuid() != uid &&
	    (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		attack_fail("setresuid");
	prctl(PR_SET_DUMPABLE, 1);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

unsigned long raise_limit(int resource)
{
	struct rlimit limit;

	getrlimit(resource, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(resource, &limit);
	return limit.rlim_cur;
}

int peer_connect(void)
{
	const struct timeval most = { .tv_sec = ANSWER_S };
	struct sockaddr_un address;
	__cleanup(closep) int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0 || wire_address(&address, NULL) ||
	    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ||
	    connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return steal_fd(sock);
}

int peer_dial(struct profil_msg_hello *hello)
{
	struct profil_msg_hello ours;
	__cleanup(closep) int sock = peer_connect();

	if (!hello)
		hello = &ours;
	if (sock < 0 || wire_recv(sock, hello, sizeof(*hello), NULL, NULL))
		return -1;
	return steal_fd(sock);
}

/* Receives the reply to a request; events may arrive before it. */
int peer_reply(int sock, struct profil_msg_reply *reply)
{
	static union {
		struct profil_msg_reply reply;
		char space[PROFIL_MSG_MAX];
	} msg;

	do {
		int fds[PROFIL_MSG_FDS];
		unsigned int nfds = PROFIL_MSG_FDS;

		if (wire_recv(sock, &msg, sizeof(msg), fds, &nfds))
			return PEER_CLOSED;
		while (nfds)
			close(fds[--nfds]);
	} while (msg.reply.h.type != PROFIL_MSG_REPLY);
	if (reply)
		*reply = msg.reply;
	return (int)msg.reply.error;
}

int peer_ask(int sock, const struct profil_header *h, const int *fds, unsigned int nfds,
	     struct profil_msg_reply *reply)
{
	return wire_send(sock, h, fds, nfds) ? PEER_CLOSED : peer_reply(sock, reply);
}

static unsigned int put_regions(struct profil_msg_region *r, unsigned int from, unsigned int all,
				uint32_t nbins, void *buf)
{
	unsigned int n = all - from < PROFIL_MSG_REGION_MAX ? all - from : PROFIL_MSG_REGION_MAX;

	for (unsigned int i = 0; i < n; i++) {
		uint64_t lo = 0x100000 + (uint64_t)(from + i) * 4 * nbins;

		r[i] = (struct profil_msg_region){
			.lo = lo,
			.x = { .base = lo, .span = 2 * nbins, .mul = 1, .nbins = nbins },
			.addr = (unsigned long)buf,
			.owner = from + i,
		};
	}
	return n;
}

int peer_send_start(int sock, const struct profil_msg_hello *hello,
		    struct profil_cookie_area *cookie, void *buf, unsigned int nregions,
		    uint32_t nbins)
{
	static struct {
		struct profil_msg_start m;
		struct profil_msg_region region[PROFIL_MSG_REGION_MAX];
	} s;
	static struct {
		struct profil_msg_regions m;
		struct profil_msg_region region[PROFIL_MSG_REGION_MAX];
	} rest;
	unsigned int n, done;
	int err;

	*cookie = hello->area;
	s.m = (struct profil_msg_start){
		.cookie_addr = (unsigned long)cookie, .width = 2, .cap = 65535, .nregions = nregions
	};
	done = put_regions(s.region, 0, nregions, nbins, buf);
	wire_header(&s.m.h, PROFIL_MSG_START, sizeof(s.m), sizeof(s.region[0]), done);
	err = wire_send(sock, &s.m.h, NULL, 0);
	for (; !err && done < nregions; done += n) {
		n = put_regions(rest.region, done, nregions, nbins, buf);
		wire_header(&rest.m.h, PROFIL_MSG_REGIONS, sizeof(rest.m), sizeof(rest.region[0]),
			    n);
		err = wire_send(sock, &rest.m.h, NULL, 0);
	}
	return err;
}

int peer_observe(int sock, int pidfd, int maps, uint64_t period_ns, bool inherit)
{
	struct profil_msg_observe m = { .period_ns = period_ns,
					.flags = inherit ? PROFIL_OBSERVE_INHERIT : 0,
					.places = 1024,
					.images = 64 };
	struct profil_header add;
	int fds[] = { pidfd, maps };
	int err;

	wire_header(&m.h, PROFIL_MSG_OBSERVE, sizeof(m), 0, 0);
	err = peer_ask(sock, &m.h, NULL, 0, NULL);
	wire_header(&add, PROFIL_MSG_ADD, sizeof(add), 0, 0);
	return err ? err : peer_ask(sock, &add, fds, 2, NULL);
}

int peer_observe_places(int sock, uint32_t places, uint64_t period_ns, int64_t uid)
{
	struct profil_msg_observe m = { .period_ns = period_ns, .places = places };

	if (uid >= 0) {
		m.scope = PROFIL_SCOPE_USER;
		m.uid = (__u32)uid;
	}
	wire_header(&m.h, PROFIL_MSG_OBSERVE, sizeof(m), 0, 0);
	return peer_ask(sock, &m.h, NULL, 0, NULL);
}

int peer_observe_machine(int sock)
{
	struct profil_msg_observe m = { .scope = PROFIL_SCOPE_MACHINE };

	wire_header(&m.h, PROFIL_MSG_OBSERVE, sizeof(m), 0, 0);
	return peer_ask(sock, &m.h, NULL, 0, NULL);
}

int peer_observe_pid(int sock, pid_t pid, uint64_t period_ns, bool inherit)
{
	__cleanup(closep) int pidfd = pidfd_open(pid, 0);
	__cleanup(closep) int maps = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = open(path, O_RDONLY | O_CLOEXEC);
	if (pidfd < 0 || maps < 0)
		return PEER_CLOSED;
	return peer_observe(sock, pidfd, maps, period_ns, inherit);
}

pid_t peer_daemon(void)
{
	static union {
		struct profil_msg_status status;
		char space[PROFIL_MSG_MAX];
	} msg;
	struct profil_header ask;
	__cleanup(closep) int sock = peer_dial(NULL);

	wire_header(&ask, PROFIL_MSG_STATUS, sizeof(ask), 0, 0);
	if (sock < 0 || wire_send(sock, &ask, NULL, 0) ||
	    wire_recv(sock, &msg, sizeof(msg), NULL, NULL) ||
	    msg.status.h.type != PROFIL_MSG_STATUS)
		return 0;
	return (pid_t)msg.status.pid;
}

bool peer_find(pid_t pid, struct profil_msg_profile *out)
{
	static struct {
		struct profil_msg_list m;
		struct profil_msg_profile profile[PROFIL_MSG_LIST_MAX];
	} list;
	struct profil_header ask;
	__cleanup(closep) int sock = peer_dial(NULL);

	wire_header(&ask, PROFIL_MSG_LIST, sizeof(ask), 0, 0);
	if (sock < 0 || wire_send(sock, &ask, NULL, 0) ||
	    wire_recv(sock, &list, sizeof(list), NULL, NULL))
		return false;
	for (unsigned int i = 0; i < list.m.h.count; i++) {
		if (list.m.profile[i].tgid == (unsigned int)pid && !list.m.profile[i].attachment) {
			*out = list.m.profile[i];
			return true;
		}
	}
	return false;
}
