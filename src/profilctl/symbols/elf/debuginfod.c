/* debuginfod.c - limits libdwfl's downloads from the servers in DEBUGINFOD_URLS */
#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/clocks.h"
#include "debuginfod.h"
#include "profilctl/util/progress.h"

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

void limit_debuginfod(Dwfl *dwfl)
{
	__typeof__(debuginfod_set_progressfn) *set_progressfn;
	debuginfod_client *client;
	void *so;

	if (!debuginfod_servers())
		return;
	client = dwfl_get_debuginfod_client(dwfl);
	/* libdw has loaded libdebuginfod if it is installed. */
	so = client ? dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_NOLOAD) : NULL;
	set_progressfn =
		so ? (__typeof__(set_progressfn))dlsym(so, "debuginfod_set_progressfn") : NULL;
	if (set_progressfn)
		set_progressfn(client, on_progress);
}

void progress_end_debuginfod(void)
{
	if (shown)
		progress_clear();
	shown = false;
}
