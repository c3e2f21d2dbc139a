/* debuginfod.c - downloads debug files from the servers in DEBUGINFOD_URLS */
#include <dlfcn.h>
#include <elfutils/debuginfod.h>
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

static bool shown;

static int on_progress(debuginfod_client *client, long done, long total)
{
	(void)client;
	if (progress_wanted()) {
		progress_fetch(done, total);
		shown = true;
	}
	return late();
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
	__typeof__(debuginfod_set_progressfn) *set_progressfn;
	debuginfod_client *client;

	if (!debuginfod_servers())
		return;
	client = dwfl_get_debuginfod_client(dwfl);
	set_progressfn = (__typeof__(set_progressfn))function(client, "debuginfod_set_progressfn");
	if (set_progressfn)
		set_progressfn(client, on_progress);
}

int debuginfod_fetch(Dwfl *dwfl, const unsigned char *id, int bytes)
{
	__typeof__(debuginfod_find_debuginfo) *find;
	debuginfod_client *client;

	if (!debuginfod_servers() || bytes <= 0)
		return -ENOENT;
	client = dwfl_get_debuginfod_client(dwfl);
	find = (__typeof__(find))function(client, "debuginfod_find_debuginfo");
	return find ? find(client, id, bytes, NULL) : -ENOSYS;
}

void progress_end_debuginfod(void)
{
	if (shown)
		progress_clear();
	shown = false;
}
