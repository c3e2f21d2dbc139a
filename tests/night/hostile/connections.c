/* connections.c - as many connections as possible: held, silent, or opened and closed in a loop
 *
 * usage: connections hold USERS   as root: from so many users, kept alive by requests
 *        connections churn        opened and closed without a request
 *        connections silent       opened, and a message before the greeting is read
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/hostile.h"

#define HELD_MAX 1024

static int ask_status(int sock)
{
	struct profil_header ask;
	static char status[PROFIL_MSG_MAX];

	wire_header(&ask, PROFIL_MSG_STATUS, sizeof(ask), 0, 0);
	if (wire_send(sock, &ask, NULL, 0))
		return -1;
	return wire_recv(sock, status, sizeof(status), NULL, NULL);
}

/* As many connections as this user gets, each with an attachment so that it is not idle. */
static unsigned int hold(int sock[HELD_MAX])
{
	unsigned int n = 0;

	while (n < HELD_MAX && (sock[n] = peer_dial(NULL)) >= 0) {
		peer_observe_pid(sock[n], getpid(), 0, false);
		n++;
	}
	return n;
}

static void hold_on(int begun)
{
	static int sock[HELD_MAX];
	unsigned int n = hold(sock);

	if (write(begun, &n, sizeof(n)) != sizeof(n))
		_exit(1);
	while (!attack_over()) {
		attack_wait(1000);
		for (unsigned int i = 0; i < n; i++) {
			if (ask_status(sock[i]) == 0)
				continue;
			closep(&sock[i]);
			sock[i] = peer_dial(NULL);
		}
	}
	_exit(0);
}

static void hold_as(unsigned int users)
{
	unsigned int n, all = 0;
	int begun[2];

	if (pipe(begun) < 0)
		attack_fail("pipe");
	for (unsigned int i = 0; i < users; i++) {
		pid_t pid = attack_fork();

		if (pid < 0)
			attack_fail("fork");
		if (pid == 0) {
			if (getuid() == 0)
				attack_become(ATTACKER + i);
			hold_on(begun[1]);
		}
	}
	for (unsigned int i = 0; i < users; i++) {
		if (read(begun[0], &n, sizeof(n)) != sizeof(n))
			attack_fail("read");
		all += n;
	}
	attack_result("connections", all);
	attack_under_way();
	attack_wait(-1);
}

static void churn(void)
{
	attack_under_way();
	while (!attack_over()) {
		int sock = peer_connect();

		closep(&sock);
	}
}

/* The daemon must close this connection, not those of others. */
static void silent(void)
{
	struct profil_header ask;
	int sock[64];

	wire_header(&ask, PROFIL_MSG_STATUS, sizeof(ask), 0, 0);
	attack_under_way();
	while (!attack_over()) {
		unsigned int n = 0;

		while (n < 64 && (sock[n] = peer_connect()) >= 0)
			wire_send(sock[n++], &ask, NULL, 0);
		while (n)
			close(sock[--n]);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	raise_limit(RLIMIT_NOFILE);
	if (strcmp(what, "hold") == 0)
		hold_as(argc > 2 ? (unsigned int)atoi(argv[2]) : 8);
	else if (strcmp(what, "churn") == 0)
		churn();
	else if (strcmp(what, "silent") == 0)
		silent();
	else
		return 2;
	return 0;
}
