/* descriptors.c - sends descriptors that are too many, or whose last close blocks
 *
 * usage: descriptors linger     TCP sockets with unsent data and SO_LINGER, in requests
 *        descriptors excess     the same, 253 in each message
 *        descriptors unread     the same, in messages that the daemon has not read yet
 *        descriptors early      the same, sent before the greeting
 *        descriptors epoll      an epoll instance with many files in place of a pidfd
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/hostile.h"

#define LINGER_S 5
#define AT_ONCE 8
#define PAIRS 1000000

/* A connection to oneself whose sending end has data for which the receiver has no room. */
static int tcp_pair(int listener, const struct sockaddr_in *address, int *receiver)
{
	const struct linger wait = { .l_onoff = 1, .l_linger = LINGER_S };
	static char data[1 << 16];
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || connect(sock, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return -1;
	*receiver = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (*receiver < 0 || setsockopt(sock, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait)) < 0)
		return -1;
	while (send(sock, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	return sock;
}

static int tcp_listen(struct sockaddr_in *address)
{
	socklen_t len = sizeof(*address);
	int small = 4096, sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) < 0 ||
	    bind(sock, (struct sockaddr *)address, sizeof(*address)) < 0 || listen(sock, 64) < 0 ||
	    getsockname(sock, (struct sockaddr *)address, &len) < 0)
		attack_skip("no TCP over the loopback interface: %s", strerror(errno));
	return sock;
}

/* If the daemon has closed its copy already, this close waits. */
static void *close_one(void *fd)
{
	close((int)(long)fd);
	return NULL;
}

static void close_apart(int fd)
{
	pthread_t t;

	if (pthread_create(&t, NULL, close_one, (void *)(long)fd))
		attack_fail("pthread_create");
	pthread_detach(t);
}

/* Closes the sender's copies: the daemon's are the last. */
static void send_and_close(int sock, int *fds, unsigned int nfds, unsigned int repeat)
{
	struct profil_header add;
	int many[PROFIL_MSG_FDS];
	unsigned int n = 0;

	while (repeat-- && n + nfds <= PROFIL_MSG_FDS) {
		memcpy(many + n, fds, nfds * sizeof(*fds));
		n += nfds;
	}
	wire_header(&add, PROFIL_MSG_ADD, sizeof(add), 0, 0);
	wire_send(sock, &add, many, n);
	while (nfds)
		close_apart(fds[--nfds]);
}

/* One connection, and the sockets to be closed there; the receivers stay open, and full. */
static long long sent;

static void send_some(int sock, int listener, const struct sockaddr_in *address,
		      unsigned int repeat)
{
	static int receiver[256];
	static unsigned int n;
	int fds[2];

	for (int i = 0; i < 2; i++, n++) {
		if (receiver[n % 256] > 0)
			close_apart(receiver[n % 256]);
		fds[i] = tcp_pair(listener, address, &receiver[n % 256]);
		if (fds[i] < 0)
			return;
	}
	send_and_close(sock, fds, 2, repeat);
	sent += 2;
}

static void lingering(const char *what)
{
	bool early = strcmp(what, "early") == 0, unread = strcmp(what, "unread") == 0;
	struct sockaddr_in address;
	int listener = tcp_listen(&address);
	int sock[AT_ONCE];

	for (bool first = true; !attack_over(); first = false) {
		for (int i = 0; i < AT_ONCE; i++) {
			sock[i] = early ? peer_connect() : peer_dial(NULL);
			if (sock[i] < 0)
				continue;
			for (int k = 0; k < (unread ? 32 : 1); k++)
				send_some(sock[i], listener, &address,
					  strcmp(what, "excess") == 0 ? 126 : 1);
			if (first && i == 0)
				attack_under_way(); /* from now on sends may block */
		}
		attack_wait(unread ? 0 : 200);
		for (int i = 0; i < AT_ONCE; i++)
			closep(&sock[i]);
	}
	attack_result("sockets", sent);
}

/*
 * An epoll instance's fdinfo has a line for each pair of file and descriptor number. A pair remains
 * when the descriptor is closed while the file is still open under another one.
 */
static int large_epoll(void)
{
	int numbers = (int)raise_limit(RLIMIT_NOFILE) - 64, ep = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN };
	long long n = 0;
	bool more = ep >= 0;

	while (more && n < PAIRS) {
		int file = eventfd(0, EFD_CLOEXEC);

		for (int i = 64; more && i < numbers; i++) {
			if (file < 0 || dup2(file, i) < 0 ||
			    epoll_ctl(ep, EPOLL_CTL_ADD, i, &e) < 0)
				more = false;
			close(i);
			n += more;
		}
	}
	attack_result("pairs", n);
	return ep;
}

static void epoll(void)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), ep = large_epoll();

	attack_under_way();
	while (!attack_over()) {
		__cleanup(closep) int sock = peer_dial(NULL);

		if (sock >= 0)
			peer_observe(sock, ep, maps, 0, false);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	raise_limit(RLIMIT_NOFILE);
	if (strcmp(argv[1], "epoll") == 0)
		epoll();
	else
		lingering(argv[1]);
	return 0;
}
