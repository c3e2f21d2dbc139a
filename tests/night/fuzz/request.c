/* request.c - fuzzes whole conversations of clients with the daemon, over replay, in one process */
int profild_main(int argc, char **argv);
#define main profild_main
#include "profild/main.c"
#include "profild/ipc/request.h"
#undef main

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "arena.h"
#include "fuzz.h"

#define CLIENTS 4
#define TURNS \
	8 /* of the event loop after each step: the timer of the passes is due in every one \
	   */

static struct profild d;

static struct end {
	int sock;
	struct profil_cookie_area area;
} peers[CLIENTS];

/* Some samples are where regions are likely to be. */
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
	d.config.quota.user.of[RES_PROFILES] = 3;
	d.config.quota.user.of[RES_TARGETS] = 6;
	d.config.quota.user.of[RES_REGIONS] = 64;
	d.config.quota.user.of[RES_COUNTERS] = 1 << 20;
	d.config.quota.user.of[RES_CONNECTIONS] = 3;
	d.config.quota.requests = (struct rate_limit){ 0, 0 };
	d.config.quota.time_ns = (struct rate_limit){ 0, 0 };
	must(quota_new(&d.quota, &d.config.quota) == 0);
	d.operators = (gid_t)-1;
	must(sd_event_default(&d.event) >= 0);
	must(own_profiles_open(&d) >= 0);
	sink.arg = &d;
	d.listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	must(d.listener >= 0 && bind(d.listener, (void *)&any, sizeof(any.sun_family)) == 0);
	must(listen(d.listener, CLIENTS) == 0);
	must(lanes_open(&d.lanes, d.event, NSEC_PER_SEC, on_lost, &d) == 0);
	must(disposal_open(&d.disposal, d.event) == 0);
	must(retired_tables_open(&d.retired) == 0);
	must(sampler_replay_open(&d.sampler, &d.config, &sink) == 0);
	retired_tables_list_by(d.retired, d.sampler->table_ids);
	quota_reclaim_by(d.quota, retired_tables_sweep, d.retired);
	d.places = &replay_places;
}

/* Runs some passes, then the event loop until the worker is idle and its answers are handled. */
static void turn(void)
{
	for (int i = 0; i < TURNS || lanes_busy(d.lanes) || d.dirty; i++) {
		must(sd_event_run(d.event, lanes_busy(d.lanes) ? UINT64_MAX : 0) >= 0);
		if (i >= TURNS)
			continue;
		sync_arm(&d);
		sync_run(&d);
	}
}

static void hang_up(struct end *p)
{
	if (p->sock >= 0)
		close(steal_fd(p->sock));
	turn();
}

/* Replaces the credentials that the kernel reports for the peer. */
static void set_user(struct client *c, uid_t uid)
{
	struct user *u;

	must(user_get(&u, d.quota, uid, uid == 0) == 0);
	if (charge_transfer(&c->charge, u) < 0) { /* it has as many connections as it may */
		user_unref(u);
		client_close(c);
		return;
	}
	user_unref(c->user);
	c->user = u;
	c->peer.cred.uid = uid;
	c->peer.privileged = uid == 0;
}

/* Connects as root or as another user. */
static void connect_as(struct end *p, uid_t uid)
{
	struct profil_msg_hello hello;
	struct sockaddr_un address;
	socklen_t len = sizeof(address);

	hang_up(p);
	p->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	must(p->sock >= 0 && getsockname(d.listener, (void *)&address, &len) == 0);
	must(connect(p->sock, (void *)&address, len) == 0);
	client_open(&d, accept4(d.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC),
		    request_handle);
	turn();
	if (wire_recv(p->sock, &hello, sizeof(hello), NULL, NULL))
		return;
	p->area = hello.area;
	if (d.clients)
		set_user(d.clients, uid);
}

/* The number of bytes before the regions of a message of this type; 0: it has none. */
static size_t before_regions(unsigned int type)
{
	switch (type) {
	case PROFIL_MSG_START:
	case PROFIL_MSG_EXTEND:
		return sizeof(struct profil_msg_start);
	case PROFIL_MSG_REGIONS:
		return sizeof(struct profil_msg_regions);
	}
	return 0;
}

/* The daemon writes to this process, so every buffer must be in the arena. */
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

/* Corrects fields of a packet that the input could hardly guess. */
enum right {
	RIGHT_HEADER = 1,
	RIGHT_COOKIE = 2,
	RIGHT_COUNT = 4,
};

static void make_right(uint8_t *packet, size_t n, unsigned int right, const struct end *p)
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
		((struct profil_msg_self *)h)->cookie_addr = (unsigned long)&p->area;
}

/* Two descriptors that an ADD may or may not accept. */
static unsigned int open_fds(int fds[2], unsigned int kind)
{
	if (!(kind & 3))
		return 0;
	fds[0] = kind & 1 ? (int)syscall(SYS_pidfd_open, getpid(), 0) : dup(d.listener);
	fds[1] = kind & 2 ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : dup(fds[0]);
	return kind & 4 ? 1 : 2;
}

static union packet {
	struct profil_header h;
	uint8_t space[PROFIL_MSG_MAX + 64];
} packet;

/* Sends @n bytes of the packet. Not by wire_send(), which sends as many bytes as the header says.
 */
static void send_packet(struct end *p, size_t n, unsigned int right, unsigned int kind)
{
	int fds[2] = { -1, -1 };
	unsigned int nfds;
	struct iovec iov = { &packet, n };
	union {
		char space[CMSG_SPACE(sizeof(fds))];
		struct cmsghdr align;
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	make_right(packet.space, n, right, p);
	tame(packet.space, n);
	nfds = open_fds(fds, kind);
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

static void send_any(struct end *p, struct input *in)
{
	unsigned int right = input_byte(in), kind = input_byte(in);
	uint16_t n;

	input_take(in, &n, sizeof(n));
	n = n % 8192;
	if (right & RIGHT_HEADER && n < sizeof(packet.h))
		n = sizeof(packet.h);
	memset(&packet, 0, sizeof(packet.h));
	input_take(in, &packet, n);
	send_packet(p, n, right, kind);
}

/* Every request, as a client sends it. */
static const struct usual {
	unsigned int type;
	size_t bytes;
	unsigned int kind; /* of its descriptors */
} usual[] = {
	{ PROFIL_MSG_START, sizeof(struct profil_msg_start) + sizeof(struct profil_msg_region), 0 },
	{ PROFIL_MSG_EXTEND, sizeof(struct profil_msg_start) + 2 * sizeof(struct profil_msg_region),
	  0 },
	{ PROFIL_MSG_REGIONS, sizeof(struct profil_msg_regions) + sizeof(struct profil_msg_region),
	  0 },
	{ PROFIL_MSG_STOP, sizeof(struct profil_msg_self), 0 },
	{ PROFIL_MSG_SYNC, sizeof(struct profil_msg_self), 0 },
	{ PROFIL_MSG_OBSERVE, sizeof(struct profil_msg_observe), 0 },
	{ PROFIL_MSG_ADD, sizeof(struct profil_header), 3 },
	{ PROFIL_MSG_BEGIN, sizeof(struct profil_header), 0 },
	{ PROFIL_MSG_DETACH, sizeof(struct profil_header), 0 },
	{ PROFIL_MSG_STATS, sizeof(struct profil_header), 0 },
	{ PROFIL_MSG_MACHINE, sizeof(struct profil_msg_machine), 0 },
	{ PROFIL_MSG_LIST, sizeof(struct profil_header), 0 },
	{ PROFIL_MSG_STATUS, sizeof(struct profil_header), 0 },
};

/*
 * A usual request with some words of the input, so that conversations get further than their first
 * message.
 */
static void send_usual(struct end *p, struct input *in)
{
	const struct usual *u = &usual[input_byte(in) % (sizeof(usual) / sizeof(*usual))];
	unsigned int words = input_byte(in) % 8;

	memset(&packet, 0, u->bytes);
	if (u->type == PROFIL_MSG_START || u->type == PROFIL_MSG_EXTEND) {
		struct profil_msg_start *m = (void *)&packet;

		m->width = 2;
		m->cap = UINT16_MAX;
		m->nregions = u->type == PROFIL_MSG_START ? 1 : 2;
	}
	while (words--) {
		size_t at = sizeof(packet.h) + 4u * input_byte(in);

		if (at + 4 <= u->bytes)
			input_take(in, packet.space + at, 4);
	}
	packet.h.type = (__u16)u->type;
	send_packet(p, u->bytes, RIGHT_HEADER | RIGHT_COOKIE | RIGHT_COUNT, u->kind);
}

static void hear(struct end *p)
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

static void step(struct end *p, unsigned int what, struct input *in)
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
	case 7:
		send_usual(p, in);
		break;
	default:
		send_any(p, in);
	}
}

/* The totals of every profile add up after any requests. */
static void adds_up(void)
{
	for (const struct own_profile *own = d.profiles; own; own = own->next) {
		struct samples t;

		own_profile_samples(own, &t);
		must(t.total == t.binned + t.unmatched + t.lost);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = { bytes, n };
	unsigned int before;

	if (!d.event) {
		open_daemon();
		/* The first timer opens the event loop's timerfd. */
		must(sd_event_add_time(d.event, NULL, CLOCK_MONOTONIC, UINT64_MAX, 0, NULL, NULL) >=
		     0);
		/* A worker opens descriptors, too; one worker is left at the end. */
		peers[0].sock = -1;
		connect_as(&peers[0], 0);
		hang_up(&peers[0]);
		for (int i = 0; i < 30; i++)
			must(sd_event_run(d.event, 10000) >= 0);
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
	/* A connection with an operation under way ends after it. */
	for (int i = 0; i < 200 && d.clients; i++)
		must(sd_event_run(d.event, 10000) >= 0);
	must(!d.clients);
	while (d.profiles)
		own_profile_end(d.profiles);
	machine_off(&d); /* which belongs to no connection */
	turn();
	/* A long input starts a second worker, which ends after a while. */
	for (int i = 0; i < 200 && descriptors() != before; i++)
		must(sd_event_run(d.event, 10000) >= 0);
	must(descriptors() == before);
	return 0;
}
