/* observers.c - as many and as large observers as the daemon grants, and STARTs of all regions
 *
 * usage: observers tables    the largest tables, requested in a loop
 *        observers targets   as many observations as one connection gets
 *        observers starts    profiles of 8193 regions, started in a loop
 *        observers stalled   observers at the highest rate that never read what they get
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/hostile.h"

#define HELD_MAX 256
#define REGIONS 8193
#define STALLED 4

static pid_t asleep(void)
{
	pid_t pid = attack_fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	return pid;
}

static pid_t busy(void)
{
	pid_t pid = attack_fork();

	if (pid == 0) {
		for (;;)
			;
	}
	return pid;
}

/* Opens as many observers as the daemon accepts, then continues to request more. */
static void observe_more(void)
{
	static int sock[HELD_MAX];
	unsigned int n = 0;
	pid_t pid = asleep();
	long long granted = 0;

	while (n < HELD_MAX && (sock[n] = peer_dial(NULL)) >= 0) {
		granted += peer_observe_pid(sock[n], pid, 0, true) == 0;
		n++;
	}
	attack_result("granted", granted);
	attack_under_way();
	for (unsigned int i = 0; !attack_over(); i = n ? (i + 1) % n : 0) {
		if (n && sock[i] >= 0)
			closep(&sock[i]);
		sock[i] = peer_dial(NULL);
		if (sock[i] >= 0)
			peer_observe_pid(sock[i], pid, 0, true);
	}
}

/* Holds the largest tables that the daemon accepts, then requests more in a loop. */
static void take_tables(void)
{
	static int sock[HELD_MAX];
	uint32_t places = 1u << 24;
	unsigned int n = 0;
	long long granted = 0;

	while (n < HELD_MAX && places && (sock[n] = peer_dial(NULL)) >= 0) {
		if (peer_observe_places(sock[n], places, 0, -1) == 0) {
			granted += places;
			n++;
		} else {
			places /= 2;
			close(sock[n]);
		}
	}
	attack_result("tables", n);
	attack_result("places", granted);
	attack_under_way();
	for (unsigned int i = 0; n && !attack_over(); i = (i + 1) % n) {
		closep(&sock[i]);
		sock[i] = peer_dial(NULL);
		if (sock[i] >= 0)
			peer_observe_places(sock[i], 1 << 16, 0, getuid());
	}
}

/* Each START takes 8193 regions, which are free again only after a grace period. */
static void start_large(void)
{
	static struct profil_cookie_area cookie;
	static unsigned short buf[64];
	long long granted = 0, asked = 0;

	attack_under_way();
	for (; !attack_over(); asked++) {
		struct profil_msg_hello hello;
		__cleanup(closep) int sock = peer_dial(&hello);

		if (sock < 0)
			continue;
		peer_send_start(sock, &hello, &cookie, buf, REGIONS, 1);
		granted += peer_reply(sock, NULL) == 0;
	}
	attack_result("asked", asked);
	attack_result("granted", granted);
}

static void stalled(void)
{
	uint64_t period = 20000;
	long long granted = 0;
	pid_t pid = busy();

	for (int i = 0; i < STALLED; i++) {
		int sock = peer_dial(NULL);

		while (sock >= 0 && peer_observe_pid(sock, pid, period, false) != 0 &&
		       period < 1000000000) {
			close(sock);
			period += period / 4;
			sock = peer_dial(NULL);
		}
		granted += sock >= 0;
	}
	attack_result("granted", granted);
	attack_result("hz", granted * (long long)(1000000000 / period));
	attack_under_way();
	attack_wait(-1);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	raise_limit(RLIMIT_NOFILE);
	if (strcmp(what, "tables") == 0)
		take_tables();
	else if (strcmp(what, "targets") == 0)
		observe_more();
	else if (strcmp(what, "starts") == 0)
		start_large();
	else if (strcmp(what, "stalled") == 0)
		stalled();
	else
		return 2;
	attack_end_children();
	return 0;
}
