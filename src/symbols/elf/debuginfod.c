/* debuginfod.c - downloads debug files from the servers in DEBUGINFOD_URLS */
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clocks.h"
#include "debuginfod.h"
#include "base/progress.h"

/* Says whether the time for downloads, counted from the first one's progress, is over. */
static bool late(void)
{
	static __u64 end_ns;

	if (!end_ns)
		end_ns = now_ns() + DEBUGINFOD_TIME_S * 1000000000ull;
	return now_ns() >= end_ns;
}

/*
 * libdebuginfod is called only where it is installed, so its header is not needed either: these are
 * debuginfod_set_progressfn() and debuginfod_find_debuginfo() of libdebuginfod.so.1.
 */
typedef void set_progress(debuginfod_client *client,
			  int (*on_progress)(debuginfod_client *, long, long));
typedef int find_debuginfo(debuginfod_client *client, const unsigned char *id, int bytes,
			   char **path);

static bool shown;

static int on_progress(debuginfod_client *client, long done, long total)
{
	if (progress_wanted()) {
		progress_fetch(done, total);
		shown = true;
	}
	return late() || done > DEBUGINFOD_BYTES_MAX || total > DEBUGINFOD_BYTES_MAX;
}

bool debuginfod_servers(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

/* A function of libdebuginfod, which libdw has loaded for @client if it is installed. */
static void *function(debuginfod_client *client, const char *name)
{
	void *so = client ? dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_NOLOAD) : NULL;

	return so ? dlsym(so, name) : NULL;
}

void limit_debuginfod(Dwfl *dwfl)
{
	set_progress *set;
	debuginfod_client *client;

	if (!debuginfod_servers())
		return;
	client = dwfl_get_debuginfod_client(dwfl);
	set = (set_progress *)function(client, "debuginfod_set_progressfn");
	if (set)
		set(client, on_progress);
}

int debuginfod_fetch(Dwfl *dwfl, const unsigned char *id, int bytes)
{
	find_debuginfo *find;
	debuginfod_client *client;

	if (!debuginfod_servers() || bytes <= 0)
		return -ENOENT;
	client = dwfl_get_debuginfod_client(dwfl);
	find = (find_debuginfo *)function(client, "debuginfod_find_debuginfo");
	return find ? find(client, id, bytes, NULL) : -ENOSYS;
}

void progress_end_debuginfod(void)
{
	if (shown)
		progress_clear();
	shown = false;
}
