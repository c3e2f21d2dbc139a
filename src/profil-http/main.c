/* main.c - profil-http: serves the machine profile by HTTP */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include "symbols/proc/guarded_file.h"
#include "base/log.h"
#include "base/truncated_file.h"
#include "server.h"

/* SIGTERM and SIGINT end the event loop. They are blocked before any thread is started. */
static int take_signals(sd_event *event)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* write() fails with EFBIG */
	err = sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL);
	return err < 0 ? err : sd_event_add_signal(event, NULL, SIGINT, NULL, NULL);
}

/* Each image's file stays open, for its symbols. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int argc, char **argv)
{
	static struct server server;
	struct options options;
	sd_event *event = NULL;
	int err;

	log_open("profil-http");
	switch (options_parse(&options, argc, argv)) {
	case OPTIONS_DONE:
		return 0;
	case OPTIONS_WRONG:
		return 2;
	case OPTIONS_RUN:
		break;
	}
	raise_limit();
	truncated_file_reads_as_zeroes();
	guarded_files_copy_network(); /* an answer must not wait for a file server */
	unsetenv("DEBUGINFOD_URLS");  /* requests must not wait for debuginfod servers */
	err = sd_event_new(&event);
	if (err >= 0)
		err = take_signals(event);
	if (err < 0) {
		log_err("cannot begin: %s", strerror(-err));
		return 1;
	}
	err = server_open(&server, &options, event);
	if (err >= 0) {
		sd_notify(0, "READY=1");
		err = sd_event_loop(event);
	}
	server_close(&server);
	return err < 0;
}
