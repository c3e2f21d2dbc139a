/* wire.c - a client that violates the protocol is refused or closed, and harms no other client */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/daemon.h"
#include "tests/lib/observer.h"
#include "tests/lib/state.h"
#include "tests/lib/users.h"

#define BASE 0x400000
#define TICKS "0x400000 3\n0x400002\n"

static struct daemon d;

static void start(void)
{
	daemon_start(&d, daemon_over_kernel() ? NULL : TICKS, NULL);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(wire, .init = start, .fini = stop);

/* A START of @nregions regions, the first @here of them in this message. The caller frees it. */
static struct profil_msg_start *start_of(const void *cookie, unsigned short *buf, __u32 nbins,
					 unsigned int nregions, unsigned int here)
{
	struct profil_msg_start *m = calloc(1, sizeof(*m) + here * sizeof(m->region[0]));

	cr_assert(m);
	wire_header(&m->h, PROFIL_MSG_START, sizeof(*m), sizeof(m->region[0]), here);
	m->cookie_addr = (unsigned long)cookie;
	m->width = 2;
	m->cap = 65535;
	m->nregions = nregions;
	for (unsigned int i = 0; i < here; i++) {
		struct profil_msg_region *r = &m->region[i];

		r->lo = BASE + 0x1000ul * i;
		r->x = (struct profil_xform){
			.base = r->lo, .span = 2ul * nbins, .mul = 1, .shift = 1, .nbins = nbins
		};
		r->addr = (unsigned long)buf;
		r->owner = i;
	}
	return m;
}

/* A correct client is served, and over replay gets its exact counts. */
static void good_client_is_served(void)
{
	static unsigned short buf[16];
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	__cleanup(freep) struct profil_msg_start *m = start_of(hello.cookie, buf, 16, 1, 1);
	struct profil_msg_self end = { .cookie_addr = (unsigned long)hello.cookie };

	memset(buf, 0, sizeof(buf));
	cr_assert_eq(client_ask(sock, &m->h, NULL), 0);
	wire_header(&end.h, PROFIL_MSG_STOP, sizeof(end), 0, 0);
	cr_assert_eq(client_ask(sock, &end.h, NULL), 0);
	if (!daemon_over_kernel()) {
		cr_assert_eq(buf[0], 3);
		cr_assert_eq(buf[1], 1);
	}
}

/*
 * The daemon has no profile or region left after it has noticed the closed connection and an RCU
 * grace period has passed.
 */
static void nothing_is_left(void)
{
	struct profil_msg_status status;

	AWAIT((client_status(&d, &status), !status.profiles && !status.regions));
}

/* The daemon closes a connection that sends @packet, and serves a correct client meanwhile. */
static void cuts_off(const void *packet, size_t bytes)
{
	__cleanup(closep) int sock = client_open(&d, NULL);
	char answer[PROFIL_MSG_MAX];

	cr_assert(client_send(sock, packet, bytes), "send: %s", strerror(errno));
	cr_assert_eq(client_recv(sock, answer, sizeof(answer)), 0, "answered a broken packet");
	good_client_is_served();
	nothing_is_left();
}

/* The daemon answers @h with an error and keeps the connection. */
static void refuses(const struct profil_header *h)
{
	__cleanup(closep) int sock = client_open(&d, NULL);
	struct profil_header ask;
	struct profil_msg_status status;

	cr_assert_neq(client_ask(sock, h, NULL), 0, "message %u was granted", h->type);
	wire_header(&ask, PROFIL_MSG_STATUS, sizeof(ask), 0, 0);
	cr_assert(client_send(sock, &ask, sizeof(ask)));
	cr_assert_eq(client_recv(sock, &status, sizeof(status)), sizeof(status),
		     "cut off after a bad request");
	good_client_is_served();
	nothing_is_left();
}

static void refuses_bare(unsigned int type)
{
	struct profil_header h;

	wire_header(&h, type, sizeof(h), 0, 0);
	refuses(&h);
}

static void cuts_off_bare(unsigned int type)
{
	struct profil_header h;

	wire_header(&h, type, sizeof(h), 0, 0);
	cuts_off(&h, sizeof(h));
}

Test(wire, speaks_first_and_gives_each_client_its_own_cookie)
{
	struct profil_msg_hello one, two;
	__cleanup(closep) int a = client_open(&d, &one);
	__cleanup(closep) int b = client_open(&d, &two);

	cr_assert_eq(one.h.magic, PROFIL_PROTO_MAGIC);
	cr_assert_eq(one.h.version, PROFIL_PROTO_VERSION);
	cr_assert_neq(memcmp(one.cookie, two.cookie, sizeof(one.cookie)), 0);
}

Test(wire, cuts_off_a_message_shorter_than_a_header)
{
	cuts_off("prfl", 4);
}

Test(wire, cuts_off_a_message_shorter_than_its_header_says)
{
	struct profil_msg_self m = { .cookie_addr = 1 };

	wire_header(&m.h, PROFIL_MSG_STOP, sizeof(m), 0, 0);
	cuts_off(&m, sizeof(m) - 4);
}

Test(wire, cuts_off_a_message_longer_than_its_header_says)
{
	struct profil_msg_self m[2] = { { .cookie_addr = 1 } };

	wire_header(&m[0].h, PROFIL_MSG_STOP, sizeof(m[0]), 0, 0);
	cuts_off(m, sizeof(m));
}

Test(wire, cuts_off_a_message_above_the_limit)
{
	size_t bytes = PROFIL_MSG_MAX + 8;
	__cleanup(freep) struct profil_header *h = calloc(1, bytes);

	cr_assert(h);
	wire_header(h, PROFIL_MSG_STATUS, bytes, 0, 0);
	cuts_off(h, bytes);
}

Test(wire, cuts_off_another_protocol_version)
{
	struct profil_header h;

	wire_header(&h, PROFIL_MSG_STATUS, sizeof(h), 0, 0);
	h.version++;
	cuts_off(&h, sizeof(h));
}

Test(wire, cuts_off_an_http_request)
{
	cuts_off("GET / HTTP/1.0\r\nHost: profil\r\n\r\n", 32);
}

Test(wire, cuts_off_an_unknown_message)
{
	cuts_off_bare(9999);
}

Test(wire, cuts_off_messages_of_the_daemon)
{
	cuts_off_bare(PROFIL_MSG_HELLO);
	cuts_off_bare(PROFIL_MSG_REPLY);
}

Test(wire, cuts_off_requests_without_their_body)
{
	cuts_off_bare(PROFIL_MSG_START);
	cuts_off_bare(PROFIL_MSG_EXTEND);
	cuts_off_bare(PROFIL_MSG_STOP);
	cuts_off_bare(PROFIL_MSG_SYNC);
	cuts_off_bare(PROFIL_MSG_OBSERVE);
	cuts_off_bare(PROFIL_MSG_MACHINE);
}

Test(wire, cuts_off_regions_without_a_start)
{
	cuts_off_bare(PROFIL_MSG_REGIONS);
}

Test(wire, profiles_an_observed_process)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, 10000000);
	struct observer o;

	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	cr_assert_eq(observer_add(&o, getpid()), 0);
	good_client_is_served();
	observer_close(&o);
	nothing_is_left();
}

Test(wire, cuts_off_an_add_without_descriptors)
{
	cuts_off_bare(PROFIL_MSG_ADD);
}

Test(wire, cuts_off_a_count_that_does_not_match_the_size)
{
	static unsigned short buf[16];
	__cleanup(freep) struct profil_msg_start *m = start_of(buf, buf, 16, 4, 4);

	m->h.count = 5;
	cuts_off(m, m->h.bytes);
	m->h.count = 0x20000004; /* times 56 bytes overflows to 4 times 56 in 32 bits */
	cuts_off(m, m->h.bytes);
}

Test(wire, cuts_off_a_start_within_a_start)
{
	static unsigned short buf[16];
	__cleanup(freep) struct profil_msg_start *m = start_of(buf, buf, 16, 8, 4);
	__cleanup(closep) int sock = client_open(&d, NULL);
	struct profil_msg_reply reply;

	cr_assert(client_send(sock, m, m->h.bytes));
	cr_assert(client_send(sock, m, m->h.bytes));
	cr_assert_eq(client_recv(sock, &reply, sizeof(reply)), 0, "answered");
	good_client_is_served();
	nothing_is_left();
}

Test(wire, refuses_requests_about_an_attachment_before_there_is_one)
{
	struct observer o = { .sock = client_open(&d, NULL) };

	refuses_bare(PROFIL_MSG_BEGIN);
	refuses_bare(PROFIL_MSG_DETACH);
	refuses_bare(PROFIL_MSG_STATS);
	cr_expect_eq(observer_add(&o, getpid()), EBADF);
	observer_close(&o);
}

Test(wire, refuses_a_start_of_too_many_regions)
{
	static unsigned short buf[16];
	__cleanup(freep) struct profil_msg_start *m = start_of(buf, buf, 16, 0xffffffff, 1);

	refuses(&m->h);
}

Test(wire, refuses_a_cookie_at_the_wrong_address)
{
	static unsigned short buf[16];
	__cleanup(freep) struct profil_msg_start *m = start_of(buf, buf, 16, 1, 1);

	refuses(&m->h);
	m->cookie_addr = 8;
	refuses(&m->h);
	m->cookie_addr = ~0ull;
	refuses(&m->h);
}

static int start_over(int sock, const struct profil_msg_hello *hello, unsigned short buf[16])
{
	__cleanup(freep) struct profil_msg_start *m = start_of(hello->cookie, buf, 16, 1, 1);

	return client_ask(sock, &m->h, NULL);
}

static int stop_over(int sock)
{
	struct profil_msg_self end = { 0 };

	wire_header(&end.h, PROFIL_MSG_STOP, sizeof(end), 0, 0);
	return client_ask(sock, &end.h, NULL);
}

/* Its memory is that of the first profile, which has it open. */
Test(wire, replaces_the_profile_that_was_on_at_the_greeting)
{
	static unsigned short buf[2][16];
	struct profil_msg_hello first, second;
	__cleanup(closep) int sock = client_open(&d, &first);
	__cleanup(closep) int again = -1;

	cr_assert_eq(start_over(sock, &first, buf[0]), 0);
	again = client_open(&d, &second);
	cr_assert_eq(start_over(again, &second, buf[1]), 0);
	if (!daemon_over_kernel()) {
		cr_expect_eq(buf[1][0], 3);
		cr_expect_eq(buf[1][1], 1);
	}
	cr_expect_eq(start_over(again, &second, buf[1]), ESRCH, "a connection serves one START");
	cr_expect_eq(stop_over(again), 0);
	good_client_is_served();
	nothing_is_left();
}

/* A memory that is opened now could be that of an image that has the cookie from the one before. */
Test(wire, closes_a_start_whose_profile_at_the_greeting_has_ended)
{
	static unsigned short buf[16];
	struct profil_msg_hello first, second;
	__cleanup(closep) int sock = client_open(&d, &first);
	__cleanup(freep) struct profil_msg_start *m = NULL;
	__cleanup(closep) int late = -1;
	char reply[256];

	cr_assert_eq(start_over(sock, &first, buf), 0);
	late = client_open(&d, &second);
	cr_assert_eq(stop_over(sock), 0);
	m = start_of(second.cookie, buf, 16, 1, 1);
	cr_assert(client_send(late, &m->h, m->h.bytes));
	cr_expect_eq(client_recv(late, reply, sizeof(reply)), 0);
	good_client_is_served();
	nothing_is_left();
}

/* Sends START with the right cookie, after @spoil has changed one thing in it. */
static void refuses_start(const char *what, void (*spoil)(struct profil_msg_start *m))
{
	static unsigned short buf[16];
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	__cleanup(freep) struct profil_msg_start *m = start_of(hello.cookie, buf, 16, 1, 1);

	spoil(m);
	cr_assert_neq(client_ask(sock, &m->h, NULL), 0, "%s was granted", what);
	good_client_is_served();
	nothing_is_left();
}

static void width_3(struct profil_msg_start *m)
{
	m->width = 3;
}

static void width_0(struct profil_msg_start *m)
{
	m->width = 0;
}

static void cap_above_width(struct profil_msg_start *m)
{
	m->cap = 65536;
}

static void owner_out_of_range(struct profil_msg_start *m)
{
	m->region[0].owner = 1;
}

static void bins_without_end(struct profil_msg_start *m)
{
	m->region[0].x.nbins = 0xffffffff;
}

Test(wire, refuses_invalid_numbers_in_a_start)
{
	refuses_start("width_3", width_3);
	refuses_start("width_0", width_0);
	refuses_start("cap_above_width", cap_above_width);
	refuses_start("owner_out_of_range", owner_out_of_range);
	refuses_start("bins_without_end", bins_without_end);
}

Test(wire, discards_an_incomplete_start_of_a_closed_connection)
{
	static unsigned short buf[16];
	struct profil_msg_hello hello;
	int sock = client_open(&d, &hello);
	__cleanup(freep) struct profil_msg_start *m = start_of(hello.cookie, buf, 16, 2048, 512);

	cr_assert(client_send(sock, m, m->h.bytes));
	close(sock);
	nothing_is_left();
	good_client_is_served();
}

Test(wire, survives_a_client_that_closes_before_the_answers)
{
	struct profil_header h;
	int sock = client_open(&d, NULL);

	wire_header(&h, PROFIL_MSG_LIST, sizeof(h), 0, 0);
	for (int i = 0; i < 4; i++)
		cr_assert(client_send(sock, &h, sizeof(h)));
	close(sock);
	good_client_is_served();
}

Test(wire, serves_others_while_one_never_reads)
{
	__cleanup(closep) int sock = client_open(&d, NULL);
	struct profil_msg_status status;
	struct profil_header h;
	int sent = 0, answered = 0;

	wire_header(&h, PROFIL_MSG_STATUS, sizeof(h), 0, 0);
	for (int full = 0; full < 3 && sent < 20000; full++) {
		while (send(sock, &h, sizeof(h), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
			sent++;
			full = 0;
		}
		good_client_is_served(); /* the daemon has served the other one by then */
	}

	/* The client gets every answer, or its connection is closed. */
	while (answered < sent && client_recv(sock, &status, sizeof(status)))
		answered++;
	cr_assert_gt(answered, 0);
}

Test(wire, serves_others_while_many_are_silent)
{
	int idle[16];

	for (unsigned int i = 0; i < 16; i++)
		idle[i] = client_open(&d, NULL);
	good_client_is_served();
	for (unsigned int i = 0; i < 16; i++)
		close(idle[i]);
	good_client_is_served();
}

Test(wire, closes_unexpected_descriptors)
{
	__cleanup(closep) int sock = client_open(&d, NULL);
	struct profil_header h;
	int ends[2];
	char byte;

	cr_assert(pipe(ends) == 0);
	wire_header(&h, PROFIL_MSG_LIST, sizeof(h), 0, 0);
	cr_assert_eq(wire_send(sock, &h, &ends[1], 1), 0);
	close(ends[1]);
	cr_assert_eq(client_recv(ends[0], &byte, 1), 0, "the pipe is still open in the daemon");
	close(ends[0]);
	good_client_is_served();
}

Test(wire, pcs_for_an_unwritable_buffer_end_the_profile)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	__cleanup(freep) struct profil_msg_start *m = start_of(hello.cookie, NULL, 16, 1, 1);

	if (daemon_over_kernel())
		cr_skip_test("only replay has ticks before the reply");
	m->flags = PROFIL_START_PCS | PROFIL_START_FAULT_ENDS;
	m->width = 8;
	cr_assert_eq(client_ask(sock, &m->h, NULL), 0);
	nothing_is_left();
}

/* --- ordinary users --------------------------------------------------------------------------- */

#define ALICE 12345

static bool ask(int sock, unsigned int type, void *answer, size_t bytes)
{
	struct profil_header h;

	wire_header(&h, type, sizeof(h), 0, 0);
	return client_send(sock, &h, sizeof(h)) && client_recv(sock, answer, bytes) > 0;
}

/* In the child. Returns how many users and profiles it is told of that are not its own. */
static int count_others(unsigned int own)
{
	static char list[PROFIL_MSG_MAX], status[PROFIL_MSG_MAX];
	const struct profil_msg_status *s = (const void *)status;
	const struct profil_header *l = (const void *)list;
	int sock = client_open(&d, NULL), others = 0;

	if (!ask(sock, PROFIL_MSG_LIST, list, sizeof(list)) || l->type != PROFIL_MSG_LIST ||
	    !ask(sock, PROFIL_MSG_STATUS, status, sizeof(status)))
		return 98;
	for (unsigned int i = 0; i < s->h.count; i++)
		others += s->user[i].uid != own && s->user[i].uid != (__u32)-1; /* -1: the sum */
	return others + (int)l->count;
}

Test(wire, tells_a_user_nothing_of_others)
{
	static unsigned short buf[16];
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	__cleanup(freep) struct profil_msg_start *m = start_of(hello.cookie, buf, 16, 1, 1);

	if (geteuid())
		cr_skip_test("needs root, to be two users");
	cr_assert_eq(client_ask(sock, &m->h, NULL), 0);
	users_expect_end(users_run(ALICE, count_others, ALICE), 0,
			 "a user that counts the others it is told of");
}

/* In the child. Tells the test by descriptor @ready that it is connected, and stays so. */
static int stay_connected(unsigned int ready)
{
	return client_open(&d, NULL) < 0 || write((int)ready, "", 1) != 1 || pause() < 0;
}

Test(wire, tells_root_of_as_many_users_as_an_answer_has_room_for)
{
	static char answer[PROFIL_MSG_MAX];
	const struct profil_msg_status *status = (const void *)answer;
	int sock = client_open(&d, NULL), ready[2];
	pid_t pid[PROFIL_MSG_USER_MAX];
	char byte;

	if (geteuid())
		cr_skip_test("needs root, to be many users");
	cr_assert_eq(pipe(ready), 0);
	for (unsigned int i = 0; i < PROFIL_MSG_USER_MAX; i++) {
		pid[i] = users_run(ALICE + i, stay_connected, (unsigned int)ready[1]);
		cr_assert_eq(read(ready[0], &byte, 1), 1);
	}
	cr_assert(ask(sock, PROFIL_MSG_STATUS, answer, sizeof(answer)));
	cr_expect_eq(status->h.count, PROFIL_MSG_USER_MAX);
	for (unsigned int i = 0; i < PROFIL_MSG_USER_MAX; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	close(sock);
}

/* In the child. Asks until it is refused, and returns why. */
static int ask_too_often(unsigned int unused)
{
	int sock = client_open(&d, NULL), err;
	struct profil_msg_self sync = { 0 };

	wire_header(&sync.h, PROFIL_MSG_SYNC, sizeof(sync), 0, 0);
	do {
		err = client_try(sock, &sync.h, NULL, 0);
	} while (!err);
	return err;
}

Test(wire, refuses_more_requests_than_a_user_may_send)
{
	static const char *args[] = { "--user-requests", "1", NULL };

	if (geteuid())
		cr_skip_test("needs root, whom the limit does not concern");
	daemon_stop(&d);
	daemon_start(&d, daemon_over_kernel() ? NULL : TICKS, args);
	users_expect_end(users_run(ALICE, ask_too_often, 0), EAGAIN,
			 "a user beyond its limit of requests");
}
