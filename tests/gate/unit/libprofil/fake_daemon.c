/* fake_daemon.c - a daemon inside a unit test, with scripted answers */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/wire.h"
#include "fake_daemon.h"

struct fake_daemon fake;
char fake_path[64];
static char dir[] = "/tmp/profil-request.XXXXXX";

static void take_regions(const struct profil_msg_region *r, unsigned int n)
{
	static __u64 last;

	for (unsigned int i = 0; i < n; i++) {
		if (fake.regions++ && r[i].lo < last)
			fake.disorder++;
		last = r[i].lo;
	}
}

/* Receives one whole request. */
static int hear(int sock)
{
	static __thread union {
		struct profil_header h;
		struct profil_msg_start start;
		struct profil_msg_regions regions;
		char space[PROFIL_MSG_MAX];
	} m;

	fake.messages = fake.regions = fake.disorder = 0;
	do {
		if (wire_recv(sock, &m, sizeof(m), NULL, NULL))
			return -1;
		fake.messages++;
		if (m.h.type == PROFIL_MSG_REGIONS) {
			take_regions(m.regions.region, m.h.count);
			continue;
		}
		fake.type = m.h.type;
		memcpy(&fake.start, &m.start, sizeof(fake.start));
		if (m.h.type == PROFIL_MSG_START || m.h.type == PROFIL_MSG_EXTEND)
			take_regions(m.start.region, m.h.count);
		else
			fake.start.nregions = 0;
	} while (fake.regions < fake.start.nregions);
	return 0;
}

static void answer(int sock, enum manner manner)
{
	struct profil_msg_reply reply = fake.reply;

	if (manner == REFUSES)
		reply.error = EACCES;
	wire_header(&reply.h, manner == RAVES ? 4711 : PROFIL_MSG_REPLY, sizeof(reply), 1, 0);
	if (fake.client)
		pthread_kill(fake.client, SIGUSR1);
	fake.client = 0;
	wire_send(sock, &reply.h, NULL, 0);
}

static void serve(int sock, enum manner manner)
{
	struct profil_msg_hello hello;
	char byte;

	memset(fake.cookie, (int)fake.connections, sizeof(fake.cookie));
	memcpy(hello.cookie, fake.cookie, sizeof(hello.cookie));
	wire_header(&hello.h, PROFIL_MSG_HELLO, sizeof(hello), 1, 0);
	wire_send(sock, &hello.h, NULL, 0);
	if (hear(sock))
		return;
	if (manner == STALLS && read(fake.go[0], &byte, 1) != 1)
		return;
	if (manner == NEVER_ANSWERS)
		pause();
	if (manner != HANGS_UP)
		answer(sock, manner);
}

static void *be_a_daemon(void *unused)
{
	int sock;

	while ((sock = accept(fake.listener, NULL, NULL)) >= 0) {
		unsigned int n = __atomic_fetch_add(&fake.connections, 1, __ATOMIC_RELAXED);

		serve(sock, fake.manner[n < 8 ? n : 7]);
		close(sock);
		__atomic_fetch_add(&fake.closed, 1, __ATOMIC_RELEASE);
	}
	return unused;
}

static void *each_connection(void *unused)
{
	pthread_t thread;

	pthread_create(&thread, NULL, be_a_daemon, NULL);
	return be_a_daemon(NULL);
}

void fake_setup(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(fake_path, sizeof(fake_path), "%s/sock", dir);
	setenv("PROFIL_SOCKET", fake_path, 1);
}

void fake_clean(void)
{
	unlink(fake_path);
	rmdir(dir);
}

void fake_listen(enum manner first, enum manner second, enum manner rest)
{
	struct sockaddr_un address;
	pthread_t thread;

	fake.reply.tick_ns = 1234567;
	fake.manner[0] = first;
	fake.manner[1] = second;
	for (int i = 2; i < 8; i++)
		fake.manner[i] = rest;
	cr_assert(pipe(fake.go) == 0);
	fake.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cr_assert(fake.listener >= 0 && wire_address(&address, fake_path) == 0);
	cr_assert(bind(fake.listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	cr_assert(listen(fake.listener, 8) == 0);
	cr_assert(pthread_create(&thread, NULL, each_connection, NULL) == 0);
}
