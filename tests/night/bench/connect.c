/* connect.c - times connections with two round trips to an idle peer */
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "metric.h"

/* Answers each message of each connection with the same. */
static void echo(int listener)
{
	char message[64];
	int sock;

	while ((sock = accept(listener, NULL, NULL)) >= 0) {
		ssize_t got;

		while ((got = recv(sock, message, sizeof(message), 0)) > 0)
			send(sock, message, (size_t)got, MSG_NOSIGNAL);
		close(sock);
	}
	_exit(0);
}

static void connect_once(const struct sockaddr_un *to, socklen_t len)
{
	char message[64] = { 0 };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (sock < 0 || connect(sock, (const struct sockaddr *)to, len))
		die("connect");
	for (int i = 0; i < 2; i++) {
		if (send(sock, message, sizeof(message), 0) < 0 ||
		    recv(sock, message, sizeof(message), 0) < 0)
			die("round trip");
	}
	close(sock);
}

/* What profil() cannot do without. */
static void connects(size_t count)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uint32_t *ns = malloc(count * sizeof(*ns));
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				    (size_t)snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1,
						     "profil-bench-%d", (int)getpid()));
	pid_t peer;

	if (bind(listener, (const struct sockaddr *)&to, len) || listen(listener, 1))
		die("listen");
	peer = fork();
	if (peer == 0)
		echo(listener);
	for (size_t i = 0; i < count; i++) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC);

		connect_once(&to, len);
		ns[i] = (uint32_t)(clock_ns(CLOCK_MONOTONIC) - start);
	}
	kill(peer, SIGKILL);
	waitpid(peer, NULL, 0);
	tell_times("connect", ns, count);
	free(ns);
}

int main(int argc, char **argv)
{
	const char *cpu = getenv("BENCH_CPU");

	if (argc != 2) {
		fputs("usage: connect COUNT\n", stderr);
		return 2;
	}
	if (cpu)
		stay_on(atoi(cpu));
	connects(strtoul(argv[1], NULL, 10));
	return 0;
}
