/* attacker.c - a client that sends broken, false, stale and excessive messages */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "attacker.h"
#include "base/cleanup.h"
#include "core/wire.h"

#define CONNECTIONS 12 /* at a time, some of them stuck */
#define KINDS 12       /* of descriptors */
#define STALE 8	       /* kept messages that were valid */
#define WAIT_MS 2000
#define PAGE 4096
#define REACH (1ul << 36) /* 2^32 bins, each of 8 bytes, and more */

static struct attacker {
	struct sockaddr_un address;
	uint64_t random;
	int sock[CONNECTIONS];
	unsigned long connected;
	int kind[KINDS];
	void *buffer; /* REACH bytes, so that no number of bins reaches other memory */
	struct profil_cookie_area area[CONNECTIONS];
	unsigned char stale[STALE][sizeof(struct profil_msg_self)];
	union {
		struct profil_header h;
		struct profil_msg_start start;
		struct profil_msg_self self;
		struct profil_msg_observe observe;
		unsigned char space[PROFIL_MSG_MAX + 4096];
	} out;
} a;

static uint64_t any(uint64_t below)
{
	a.random ^= a.random << 13;
	a.random ^= a.random >> 7;
	a.random ^= a.random << 17;
	return a.random % below;
}

/* Values at which arithmetic often fails. */
static uint64_t nasty(void)
{
	static const uint64_t values[] = { 0,
					   1,
					   2,
					   4096,
					   65535,
					   65536,
					   0x7fffffff,
					   0x80000000,
					   0xffffffff,
					   0x100000000,
					   0x7ffffffff000,
					   0x7fffffffffffffff,
					   0x8000000000000000,
					   0xffff888000000000,
					   0xffffffffffffffff };
	uint64_t n = any(sizeof(values) / sizeof(values[0]) + 1);

	return n < sizeof(values) / sizeof(values[0]) ? values[n] : any(1ull << 48);
}

static void open_kinds(void)
{
	int ends[2] = { -1, -1 }, *k = a.kind;

	if (pipe(ends) < 0)
		return;
	k[0] = ends[0];
	k[1] = ends[1];
	k[2] = pidfd_open(getpid(), 0);
	k[3] = open("/proc/self/maps", O_RDONLY);
	k[4] = open("/proc/self/mem", O_RDWR);
	k[5] = memfd_create("maps", 0);
	k[6] = eventfd(0, 0);
	k[7] = epoll_create1(0);
	k[8] = open("/dev/null", O_RDWR);
	k[9] = open("/proc/self", O_PATH);
	k[10] = socket(AF_UNIX, SOCK_DGRAM, 0);
	k[11] = open("/", O_RDONLY | O_DIRECTORY);
}

/* Connects, and mostly waits for the HELLO; returns the socket, or -1. */
static int dial(unsigned int i)
{
	struct profil_msg_hello hello;
	struct pollfd ready = { .events = POLLIN };

	if (a.sock[i] >= 0)
		return a.sock[i];
	a.sock[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (a.sock[i] < 0 ||
	    connect(a.sock[i], (struct sockaddr *)&a.address, sizeof(a.address)) < 0)
		return -1;
	a.connected++;
	if (!any(16))
		return a.sock[i]; /* does not wait for the HELLO */
	ready.fd = a.sock[i];
	if (poll(&ready, 1, WAIT_MS) == 1 &&
	    recv(a.sock[i], &hello, sizeof(hello), MSG_DONTWAIT) == sizeof(hello))
		a.area[i] = hello.area;
	return a.sock[i];
}

static void hang_up(unsigned int i)
{
	closep(&a.sock[i]);
	a.sock[i] = -1;
}

/* Chooses up to as many descriptors as a message can have, or none. */
static unsigned int take_fds(int *fds)
{
	unsigned int n = any(4) ? 0 : (unsigned int)any(PROFIL_MSG_FDS + 1), got = 0;

	if (n && any(2))
		n = 2;
	for (unsigned int i = 0; i < n; i++) {
		int fd = a.kind[any(KINDS)];

		if (fd >= 0)
			fds[got++] = fd;
	}
	return got;
}

/* Sends @bytes of the message, whatever its header says. */
static int put(int sock, size_t bytes)
{
	int fds[PROFIL_MSG_FDS];
	unsigned int nfds = take_fds(fds);
	union {
		char space[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { &a.out, bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, nfds * sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Makes valid regions, some of them with one wrong number. */
static void make_regions(struct profil_msg_region *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		r[i] = (struct profil_msg_region){ .lo = 0x1000ul * i,
						   .x = { .base = 0x1000ul * i,
							  .span = 0x1000,
							  .mul = 1,
							  .shift = 6,
							  .nbins = 64 },
						   .addr = (unsigned long)a.buffer,
						   .owner = i };
		switch (any(12)) {
		case 0:
			r[i].lo = nasty();
			break;
		case 1:
			r[i].x.span = nasty();
			break;
		case 2:
			r[i].x.nbins = (__u32)nasty();
			break;
		case 3:
			r[i].addr = nasty();
			break;
		case 4:
			r[i].owner = (__u32)nasty();
			break;
		case 5:
			r[i].x.shift = (__u8)nasty();
			r[i].x.mul = (__u32)nasty();
			break;
		}
	}
}

static size_t make_start(unsigned int i, unsigned int type)
{
	static const __u32 widths[] = { 2, 2, 2, 4, 8, 0, 3 };
	unsigned int n = any(8) ? (unsigned int)any(4) : (unsigned int)any(1025);
	struct profil_msg_start *m = &a.out.start;

	memset(m, 0, sizeof(*m));
	m->cookie_addr = any(8) ? (unsigned long)&a.area[i] : nasty();
	m->flags = (__u32)any(32);
	m->width = widths[any(7)];
	m->cap = any(4) ? 65535 : (__u32)nasty();
	m->nregions = any(8) ? n : (__u32)nasty();
	make_regions(m->region, n);
	wire_header(&m->h, type, sizeof(*m), sizeof(m->region[0]), n);
	return m->h.bytes;
}

static size_t make_regions_only(void)
{
	struct profil_msg_regions *m = (void *)&a.out;
	unsigned int n = (unsigned int)any(8);

	make_regions(m->region, n);
	wire_header(&m->h, PROFIL_MSG_REGIONS, sizeof(*m), sizeof(m->region[0]), n);
	return m->h.bytes;
}

static size_t make_self(unsigned int i, unsigned int type)
{
	struct profil_msg_self *m = &a.out.self;

	m->cookie_addr = any(4) ? (unsigned long)&a.area[i] : nasty();
	wire_header(&m->h, type, sizeof(*m), 0, 0);
	memcpy(a.stale[any(STALE)], m, sizeof(*m));
	return sizeof(*m);
}

static size_t make_observe(void)
{
	struct profil_msg_observe *m = &a.out.observe;

	*m = (struct profil_msg_observe){ .period_ns = any(2) ? 0 : nasty(),
					  .flags = (__u32)any(16),
					  .scope = (__u32)any(8),
					  .uid = any(2) ? getuid() : (__u32)nasty(),
					  .group_by = (__u32)any(8),
					  .zero = any(4) ? 0 : (__u32)nasty(),
					  .places = any(4) ? 1024 : (__u32)nasty(),
					  .images = any(4) ? 64 : (__u32)nasty() };
	wire_header(&m->h, PROFIL_MSG_OBSERVE, sizeof(*m), 0, 0);
	return sizeof(*m);
}

static size_t make_add(void)
{
	wire_header(&a.out.h, PROFIL_MSG_ADD, sizeof(a.out.h), 0, 0);
	return sizeof(a.out.h);
}

/* Makes a request that is well-formed, but may have false values. */
static size_t make_request(unsigned int i)
{
	static const unsigned int bare[] = { PROFIL_MSG_DETACH, PROFIL_MSG_STATS, PROFIL_MSG_LIST,
					     PROFIL_MSG_STATUS };

	switch (any(9)) {
	case 0:
		return make_start(i, PROFIL_MSG_START);
	case 1:
		return make_start(i, PROFIL_MSG_EXTEND);
	case 2:
		return make_self(i, PROFIL_MSG_STOP);
	case 3:
		return make_self(i, PROFIL_MSG_SYNC);
	case 4:
		return make_observe();
	case 5:
		return make_add();
	case 6:
		return any(8) ? make_self(i, PROFIL_MSG_SYNC) : make_regions_only();
	}
	wire_header(&a.out.h, bare[any(4)], sizeof(a.out.h), 0, 0);
	return sizeof(a.out.h);
}

/* Makes one thing wrong in the message; most of these make the daemon close the connection. */
static size_t spoil(size_t bytes)
{
	switch (any(8)) {
	case 0: /* truncated */
		return any(bytes + 1);
	case 1: /* oversized */
		a.out.h.bytes = (__u32)(any(2) ? sizeof(a.out) : bytes + any(64));
		return a.out.h.bytes < sizeof(a.out) ? a.out.h.bytes : sizeof(a.out);
	case 2:
		a.out.h.version = (__u16)nasty();
		return bytes;
	case 3:
		a.out.h.type = (__u16)nasty();
		return bytes;
	case 4:
		a.out.h.count = (__u32)nasty();
		return bytes;
	case 5:
		a.out.h.bytes = (__u32)nasty();
		return bytes;
	case 6: /* replayed */
		memcpy(&a.out, a.stale[any(STALE)], sizeof(a.stale[0]));
		return sizeof(a.stale[0]);
	}
	for (unsigned int i = 0; i < 4 && bytes; i++)
		a.out.space[any(bytes)] ^= (unsigned char)(1 << any(8));
	return bytes;
}

/* Reads what the daemon has sent, except on a quarter of the connections, which are never read. */
static void listen_now(unsigned int i)
{
	static unsigned char heap[PROFIL_MSG_MAX];

	if (i < CONNECTIONS / 4)
		return;
	while (recv(a.sock[i], heap, sizeof(heap), MSG_DONTWAIT) > 0)
		;
}

/* One message on one of the connections. */
static void say(void)
{
	unsigned int i = (unsigned int)any(CONNECTIONS);
	int sock = dial(i), err;
	size_t bytes;

	if (sock < 0) {
		hang_up(i);
		return;
	}
	bytes = make_request(i);
	if (!any(6))
		bytes = spoil(bytes);
	err = put(sock, bytes);
	if (err && err != -EAGAIN) {
		hang_up(i); /* the daemon has closed it */
		return;
	}
	if (err)
		listen_now(i);
	switch (any(512)) {
	case 0:
		shutdown(sock, SHUT_WR);
		break;
	case 1:
		shutdown(sock, SHUT_RD);
		break;
	case 2:
		hang_up(i);
		break;
	default:
		if (!any(4))
			listen_now(i);
	}
}

unsigned long attack(const char *path, unsigned long messages, uint64_t seed)
{
	a.random = seed * 0x9e3779b97f4a7c15 | 1;
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		a.sock[i] = -1;
	if (wire_address(&a.address, path))
		return 0;
	open_kinds();
	a.buffer = mmap(NULL, REACH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a.buffer == MAP_FAILED || mprotect(a.buffer, PAGE, PROT_READ | PROT_WRITE) < 0)
		return 0;
	for (unsigned long n = 0; n < messages; n++)
		say();
	for (unsigned int i = 0; i < CONNECTIONS; i++)
		hang_up(i);
	for (unsigned int i = 0; i < KINDS; i++)
		closep(&a.kind[i]);
	munmap(a.buffer, REACH);
	return a.connected;
}
