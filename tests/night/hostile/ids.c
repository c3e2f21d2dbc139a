/* ids.c - one person with many user ids, each of which takes what its quota allows
 *
 * usage: ids WHAT USERS FIRST
 *        ids ask WHAT    asks as this user, who is none of them
 *
 * Started by root; the ids are those from FIRST on. WHAT:
 *
 *	churn     the largest tables, opened and closed in a loop
 *	tables    the largest tables, held
 *	slots     attachments with the smallest tables, held
 *	wide      attachments to all processes of the user
 *	events    attachments to page faults
 *	off-cpu   attachments to the time that all processes of the user sleep
 *	regions   profiles of as many regions as possible
 *	wall      attachments to all time of all processes of the user, with what wakes threads up, while
 *		  two processes of each id do nothing but wake each other up
 *	latency   attachments that divide CPU time by the threads that run, beside the same
 *
 * When the attack is over, another user asks for one of these: "others" says how often it got one,
 * "refused" how often not.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/observe_maps.h"
#include "core/wire.h"
#include "tests/lib/hostile.h"

#define OTHER 60030
#define HELD_MAX 256
#define MOST_PLACES 5000000
#define ASKED 20
#define REGIONS_MOST 8193

enum what { CHURN, TABLES, SLOTS, WIDE, EVENTS, OFF_CPU, REGIONS, WALL, LATENCY };

static const char *const names[] = {
	[CHURN] = "churn",     [TABLES] = "tables", [SLOTS] = "slots",
	[WIDE] = "wide",       [EVENTS] = "events", [OFF_CPU] = "off-cpu",
	[REGIONS] = "regions", [WALL] = "wall",	    [LATENCY] = "latency",
};

/* This process's uid as the daemon sees it: newuidmap may have given it a user namespace. */
static uid_t outer_uid(void)
{
	__cleanup(fclosep) FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned int inside, outside, n;

	while (f && fscanf(f, "%u %u %u", &inside, &outside, &n) == 3) {
		if (getuid() >= inside && getuid() - inside < n)
			return outside + (getuid() - inside);
	}
	return getuid();
}

static struct profil_msg_observe message(enum what what)
{
	struct profil_msg_observe m = { .scope = PROFIL_SCOPE_PROCESSES };

	wire_header(&m.h, PROFIL_MSG_OBSERVE, sizeof(m), 0, 0);
	switch (what) {
	case SLOTS:
		m.places = 320;
		m.images = 8;
		m.groups = 32;
		break;
	case EVENTS:
		m.flags = PROFIL_OBSERVE_EVENT;
		m.event_type = PERF_TYPE_SOFTWARE;
		m.event_config = PERF_COUNT_SW_PAGE_FAULTS;
		break;
	case WALL:
		m.flags = PROFIL_OBSERVE_WAITS | PROFIL_OBSERVE_WAKERS;
		m.stack_mode = PROFIL_STACK_FP;
		m.scope = PROFIL_SCOPE_USER;
		m.uid = outer_uid();
		break;
	case LATENCY:
		m.flags = PROFIL_OBSERVE_LATENCY | PROFIL_OBSERVE_CPU_CLOCK;
		m.scope = PROFIL_SCOPE_USER;
		m.uid = outer_uid();
		break;
	case OFF_CPU:
		m.flags = PROFIL_OBSERVE_EVENT;
		m.event_type = PROFIL_EVENT_OFF_CPU;
		m.stack_mode = PROFIL_STACK_FP;
		m.period_ns = 10000;
		/* fall through */
	case WIDE:
		m.scope = PROFIL_SCOPE_USER;
		m.uid = outer_uid();
		break;
	default:
		break;
	}
	return m;
}

/* A new connection with an attachment, or a profile of @size regions; -1: refused. */
static int take(enum what what, uint32_t size)
{
	static struct profil_cookie_area cookie;
	static unsigned short buf[64];
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = peer_dial(&hello);
	struct profil_msg_observe m = message(what);
	int err;

	if (sock < 0)
		return -1;
	if (what == REGIONS) {
		peer_send_start(sock, &hello, &cookie, buf, size, 1);
		err = peer_reply(sock, NULL);
	} else {
		m.places = size ? size : m.places;
		err = peer_ask(sock, &m.h, NULL, 0, NULL);
	}
	if (err) {
		errno = err;
		return -1;
	}
	return steal_fd(sock);
}

/* One process has one profile: each is started by a child, which stays. */
static bool take_regions(uint32_t n)
{
	int begun[2];
	char ok = 0;

	if (pipe(begun) < 0 || attack_fork() == 0) {
		ok = take(REGIONS, n) >= 0;
		if (write(begun[1], &ok, 1) < 0 || !ok)
			_exit(0);
		for (;;)
			pause();
	}
	if (read(begun[0], &ok, 1) < 1)
		ok = 0;
	close(begun[0]);
	close(begun[1]);
	return ok;
}

/* Passes a byte to the other process and waits for one; both do so from now on. */
static void switch_always(void)
{
	int there[2], back[2];
	char byte = 0;
	pid_t pid;

	if (pipe(there) || pipe(back) || (pid = attack_fork()) < 0)
		attack_fail("pipe");
	while (write(pid ? there[1] : back[1], &byte, 1) == 1 &&
	       read(pid ? back[0] : there[0], &byte, 1) == 1)
		;
}

static void take_all(enum what what, int begun)
{
	uint32_t size = what == TABLES ? MOST_PLACES : what == REGIONS ? REGIONS_MOST : 0;
	unsigned int n = 0;

	while (n < HELD_MAX) {
		bool got = what == REGIONS ? take_regions(size) : take(what, size) >= 0;

		n += got;
		if (got)
			continue;
		if (size < 64)
			break;
		size /= 2;
	}
	if (write(begun, &n, sizeof(n)) < 0)
		attack_fail("write");
	if (what == WALL || what == LATENCY)
		switch_always();
	for (;;)
		pause();
}

static void churn(int begun)
{
	unsigned int n = 0;

	if (write(begun, &n, sizeof(n)) < 0)
		attack_fail("write");
	for (;;) {
		int sock = take(CHURN, MOST_PLACES);

		closep(&sock);
	}
}

static void attack_as(enum what what, unsigned int users, uid_t first)
{
	unsigned int n, all = 0;
	int begun[2];

	if (pipe(begun) < 0)
		attack_fail("pipe");
	for (unsigned int i = 0; i < users; i++) {
		if (attack_fork() != 0)
			continue;
		attack_become(first + i);
		if (what == CHURN)
			churn(begun[1]);
		take_all(what, begun[1]);
	}
	for (unsigned int i = 0; i < users; i++) {
		if (read(begun[0], &n, sizeof(n)) != sizeof(n))
			attack_fail("read");
		all += n;
	}
	attack_result("held", all);
}

/* How often this user gets one. */
static int ask(enum what what)
{
	int served = 0;

	for (int i = 0; i < ASKED; i++) {
		int sock = take(what == CHURN ? TABLES : what, what == REGIONS);

		served += sock >= 0;
		closep(&sock);
	}
	return served;
}

static void tell(int served)
{
	attack_result("others", served);
	attack_result("refused", ASKED - served);
}

static void ask_as_another(enum what what)
{
	pid_t pid = attack_fork();
	int served = 0;

	if (pid == 0) {
		attack_become(OTHER);
		_exit(ask(what));
	}
	waitpid(pid, &served, 0);
	tell(WIFEXITED(served) ? WEXITSTATUS(served) : 0);
}

/* The kind of attack @name; -1: there is none. */
static int what_of(const char *name)
{
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(name, names[i]))
			return (int)i;
	}
	return -1;
}

int main(int argc, char **argv)
{
	bool asks = argc == 3 && !strcmp(argv[1], "ask");
	int what = argc == 4 || asks ? what_of(argv[asks ? 2 : 1]) : -1;

	raise_limit(RLIMIT_NOFILE);
	if (what < 0)
		return 2;
	if (asks) {
		tell(ask((enum what)what));
		return 0;
	}
	attack_as((enum what)what, (unsigned int)atoi(argv[2]), (uid_t)atoi(argv[3]));
	attack_under_way();
	attack_wait(-1);
	ask_as_another((enum what)what);
	attack_end_children();
	return 0;
}
