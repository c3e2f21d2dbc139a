/* http.c - fuzzes conversations of readers with profil-http, without a daemon, in one process */
#include "profil-http/server.c"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

#define READERS 4
#define TURNS 4 /* of the event loop after each step */

static struct server server;
static const struct options options = { .socket = "/nonexistent/profil.sock",
					.group = "root",
					.max_seconds = 1,
					.user_connections = READERS };
static const struct listener listener = { .fd = -1 };

static int readers[READERS];

static void turn(void)
{
	for (int i = 0; i < TURNS; i++)
		must(sd_event_run(server.event, 0) >= 0);
}

static void open_server(void)
{
	sd_event *event = NULL;

	must(sd_event_new(&event) >= 0);
	server.options = &options;
	server.event = event;
	access_init(&server.access, &options);
	must(snapshots_new(&server.snapshots, event, options.socket) >= 0);
	must(results_new(&server.results, event, options.socket) >= 0);
	must(graphs_new(&server.graphs, event, "/nonexistent/spool") >= 0);
	must(start_mhd(&server) >= 0);
}

static void hang_up(int *sock)
{
	if (*sock >= 0)
		close(steal_fd(*sock));
	turn();
}

static void dial(int *sock)
{
	struct sockaddr_storage address = { .ss_family = AF_UNIX };
	int pair[2];

	hang_up(sock);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	*sock = pair[0];
	admit(&server, &listener, pair[1], &address, sizeof(sa_family_t));
	run(&server);
	turn();
}

/* All that was answered so far; only HTTP may come. */
static void hear(int sock)
{
	static char answer[1 << 16];
	ssize_t n = recv(sock, answer, sizeof(answer), MSG_DONTWAIT);

	if (n > 5 && !memcmp(answer, "HTTP", 4))
		must(!memcmp(answer, "HTTP/1.", 7));
}

/* Whole requests are cut into pieces by the input. */
static const char *const words[] = {
	"GET / HTTP/1.1\r\n",
	"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /debug/pprof/profile?seconds=1 HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /debug/pprof/ HTTP/1.0\r\n\r\n",
	"POST /v1development/profiles HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
	"Content-Length: 18446744073709551615\r\n",
	"Content-Length: 5\r\n",
	"Host: a\r\n",
	"\r\n",
	"ffffffffffffffff\r\n",
	"5\r\nabcde\r\n0\r\n\r\n",
	"Accept-Encoding: gzip\r\n",
	"Connection: close\r\n",
	"Expect: 100-continue\r\n",
	"Range: bytes=0-\r\n",
	"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
};

static void say(int sock, unsigned int what, struct input *in)
{
	static char text[4096];
	const char *word = words[what >> 4 & 15];
	uint16_t n;

	if (what & 8) {
		send(sock, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT);
	} else {
		n = input_byte(in);
		input_take(in, text, n);
		send(sock, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	turn();
}

static void step(struct input *in)
{
	unsigned int what = input_byte(in), which = input_byte(in) % READERS;
	int *sock = &readers[which];

	switch (what & 7) {
	case 0:
		dial(sock);
		break;
	case 1:
		hang_up(sock);
		break;
	case 2:
		shutdown(*sock, SHUT_WR);
		turn();
		break;
	case 3:
		hear(*sock);
		break;
	default:
		if (*sock < 0)
			dial(sock);
		say(*sock, what, in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = { bytes, n };

	if (!server.event)
		open_server();
	for (int i = 0; i < READERS; i++)
		readers[i] = -1;
	for (int steps = 0; in.left && steps < 64; steps++)
		step(&in);
	for (int i = 0; i < READERS; i++)
		hang_up(&readers[i]);
	/* The sweep finds those that wait for the daemon, of which there is none. */
	for (int i = 0; i < 400 && server.connections; i++) {
		must(sd_event_run(server.event, 10000) >= 0);
		run(&server);
	}
	must(!server.connections && !server.access.connections);
	return 0;
}
