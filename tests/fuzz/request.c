/* request.c - fuzzes clients' whole conversations with the daemon, over replay, in one process */
int profild_main(int argc, char **argv);
#define main profild_main
#include "profild/main.c"
#undef main

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/scope.h"
#include "core/wire.h"
#include "arena.h"
#include "fuzz.h"

#define CLIENTS 4
#define TURNS 8 /* of the event loop after each step: the mirror's timer is due in every one */

static struct profild d;

static struct peer {
	int sock;
	unsigned char cookie[PROFIL_COOKIE_BYTES];
} peers[CLIENTS];

/* Some of the ticks fall where regions are likely to be. */
static const char ticks[] = "0x400000 3\n0x400002\n0\n0x401000 65535\n0x7fffffffffff 4294967295\n"
			    "0xffffffffffffffff\n0x4010\n0x10 40000\n";

static void open_daemon(void)
{
	static char replay[64], address[32];
	static char *argv[] = { (char *)(unsigned long)"profild", NULL };
	struct sockaddr_un any = { .sun_family = AF_UNIX };

	must(config_parse(&d.config, 1, argv) == 0);
	snprintf(replay, sizeof(replay), "/proc/self/fd/%d", file_of(ticks, sizeof(ticks) - 1));
	d.config.replay_path = replay;
	d.config.socket_path = address;
	d.config.mirror_interval_ns = 1;
	d.config.user = (struct quota){ .profiles = 3,
					.regions = 64,
					.bins = 1 << 20,
					.rate_hz = 1000,
					.connections = 3,
					.requests = 1000000 };
	d.operators = (gid_t)-1;
	must(sd_event_default(&d.event) >= 0);
	sink.arg = &d;
	d.listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	must(d.listener >= 0 && bind(d.listener, (void *)&any, sizeof(any.sun_family)) == 0);
	must(listen(d.listener, CLIENTS) == 0);
	must(sampler_replay_open(&d.sampler, &d.config, &sink) == 0);
}

static void turn(void)
{
	for (int i = 0; i < TURNS && sd_event_run(d.event, 0) > 0; i++) {
		mirror_arm(&d);
		mirror_run(&d);
	}
}

static void hang_up(struct peer *p)
{
	if (p->sock >= 0)
		close(steal_fd(p->sock));
	turn();
}

/* As root or as somebody else: the daemon asks the kernel, and so is told another story here. */
static void connect_as(struct peer *p, uid_t uid)
{
	struct profil_msg_hello hello;
	struct sockaddr_un address;
	socklen_t len = sizeof(address);

	hang_up(p);
	p->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	must(p->sock >= 0 && getsockname(d.listener, (void *)&address, &len) == 0);
	must(connect(p->sock, (void *)&address, len) == 0);
	client_accept(&d, d.listener);
	if (wire_recv(p->sock, &hello, sizeof(hello), NULL, NULL))
		return;
	memcpy(p->cookie, hello.cookie, sizeof(p->cookie));
	d.clients->peer.uid = uid;
}

/* How many bytes of a message of this type are before its regions; 0: it has none. */
static size_t before_regions(unsigned int type)
{
	switch (type) {
	case PROFIL_MSG_START:
	case PROFIL_MSG_EXTEND:
		return sizeof(struct profil_msg_start);
	case PROFIL_MSG_IMAGE:
		return sizeof(struct profil_msg_image);
	case PROFIL_MSG_REGIONS:
		return sizeof(struct profil_msg_regions);
	}
	return 0;
}

/* The process that is written to is this one: no buffer may be anywhere but in the arena. */
static void tame(uint8_t *packet, size_t n)
{
	const struct profil_header *h = (const void *)packet;
	size_t at = before_regions(h->type);

	for (; at && at + sizeof(struct profil_msg_region) <= n;
	     at += sizeof(struct profil_msg_region)) {
		struct profil_msg_region *r = (void *)(packet + at);

		r->addr = arena_address(r->addr);
	}
}

/* What is to be right about a packet, so that the input need not guess it. */
enum right {
	RIGHT_HEADER = 1,
	RIGHT_COOKIE = 2,
	RIGHT_COUNT = 4,
	RIGHT_TGID = 8,
};

static void make_right(uint8_t *packet, size_t n, unsigned int right, const struct peer *p)
{
	struct profil_header *h = (void *)packet;
	size_t fixed = before_regions(h->type);

	if (right & RIGHT_HEADER) {
		h->magic = PROFIL_PROTO_MAGIC;
		h->version = PROFIL_PROTO_VERSION;
		h->bytes = (__u32)n;
	}
	if (right & RIGHT_COUNT)
		h->count = fixed && n > fixed
				   ? (__u32)((n - fixed) / sizeof(struct profil_msg_region))
				   : 0;
	if (right & RIGHT_COOKIE && n >= sizeof(struct profil_msg_self) && h->type < 32)
		((struct profil_msg_self *)h)->cookie_addr = (unsigned long)p->cookie;
	if (right & RIGHT_TGID && n >= sizeof(struct profil_msg_image) &&
	    h->type == PROFIL_MSG_IMAGE)
		((struct profil_msg_image *)h)->tgid = (__u32)getpid();
}

/* Two descriptors of which an ATTACH can make something, or not. */
static unsigned int open_fds(int fds[2], unsigned int kind)
{
	if (!(kind & 3))
		return 0;
	fds[0] = kind & 1 ? (int)syscall(SYS_pidfd_open, getpid(), 0) : dup(d.listener);
	fds[1] = kind & 2 ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : dup(fds[0]);
	return kind & 4 ? 1 : 2;
}

static void send_packet(struct peer *p, struct input *in)
{
	static union {
		struct profil_header h;
		uint8_t space[PROFIL_MSG_MAX + 64];
	} packet;
	unsigned int right = input_byte(in), kind = input_byte(in), nfds;
	uint16_t n;
	int fds[2] = { -1, -1 };

	input_take(in, &n, sizeof(n));
	n = n % 8192;
	if (right & RIGHT_HEADER && n < sizeof(packet.h))
		n = sizeof(packet.h);
	memset(&packet, 0, sizeof(packet.h));
	input_take(in, &packet, n);
	make_right(packet.space, n, right, p);
	tame(packet.space, n);
	nfds = open_fds(fds, kind);
	/* Past wire_send(), which sends as many bytes as the header says. */
	struct iovec iov = { &packet, n };
	union {
		char space[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, nfds * sizeof(int));
	}
	sendmsg(p->sock, &msg, MSG_NOSIGNAL);
	closep(&fds[0]);
	closep(&fds[1]);
	turn();
}

static void hear(struct peer *p)
{
	static uint8_t answer[PROFIL_MSG_MAX];
	int fds[PROFIL_MSG_FDS];
	unsigned int nfds = PROFIL_MSG_FDS;

	while (wire_recv(p->sock, answer, sizeof(answer), fds, &nfds) == 0) {
		while (nfds)
			close(fds[--nfds]);
		nfds = PROFIL_MSG_FDS;
	}
}

static void step(struct peer *p, unsigned int what, struct input *in)
{
	switch (what % 8) {
	case 0:
		connect_as(p, what & 0x80 ? 1000 + (what >> 6 & 1) : 0);
		break;
	case 1:
		hang_up(p);
		break;
	case 2:
		shutdown(p->sock, what & 0x80 ? SHUT_WR : SHUT_RD);
		turn();
		break;
	case 3:
		hear(p);
		break;
	default:
		send_packet(p, in);
	}
}

/* Whatever was asked: nobody counts more or less than there was. */
static void adds_up(void)
{
	for (const struct session *s = d.sessions; s; s = s->next) {
		struct ticks t;

		session_ticks(s, &t);
		must(s->reader || t.total == t.binned + t.unmatched + t.lost);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = { bytes, n };
	unsigned int before;

	if (!d.event) {
		open_daemon();
		/* The loop's own descriptor for timers comes with the first. */
		must(sd_event_add_time(d.event, NULL, CLOCK_MONOTONIC, UINT64_MAX, 0, NULL, NULL) >=
		     0);
	}
	before = descriptors();
	for (int i = 0; i < CLIENTS; i++)
		peers[i].sock = -1;
	for (int steps = 0; in.left && steps < 64; steps++) {
		unsigned int what = input_byte(&in);

		step(&peers[what >> 3 & 3], what, &in);
		adds_up();
	}
	for (int i = 0; i < CLIENTS; i++)
		hang_up(&peers[i]);
	turn();
	must(!d.clients);
	while (d.sessions)
		session_end(d.sessions);
	policy_close(&d);
	must(descriptors() == before);
	return 0;
}
