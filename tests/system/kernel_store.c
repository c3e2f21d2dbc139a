/* kernel_store.c - what a killed daemon leaves in bpffs, and what the next one makes of it */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <unistd.h>

#include "core/layout.h"
#include "core/scope.h"
#include "kernel_ticks.h"
#include "profil.h"

#define MS 1000000ul

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	ticks_need_bpffs();
	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_store, .init = start, .fini = stop);

static const char *store_path(const char *name)
{
	return ticks_stored(&d, name);
}

static void set_layout(__u32 version)
{
	__cleanup(closep) int fd = bpf_obj_get(store_path("state"));
	struct profil_state state;
	__u32 key = 0;

	cr_assert(fd >= 0, "%s: %s", store_path("state"), strerror(errno));
	cr_assert_eq(bpf_map_lookup_elem(fd, &key, &state), 0, "state: %s", strerror(errno));
	cr_expect_eq(state.version, PROFIL_LAYOUT_VERSION);
	state.version = version;
	cr_assert_eq(bpf_map_update_elem(fd, &key, &state, BPF_ANY), 0, "state: %s",
		     strerror(errno));
}

static int log_has(const char *words)
{
	char line[512];
	__cleanup(fclosep) FILE *f = fopen(d.log, "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, words))
			return 1;
	}
	return 0;
}

/* What an earlier daemon left cannot be read: the profile ends, and the next one counts. */
static void ends_what_it_cannot_read(const char *words)
{
	static unsigned short buf[LOOPS], next[LOOPS];
	struct loop_time time = { 0 };
	struct profil_msg_profile p;

	cr_assert_eq(ticks_profile(buf), 0);
	daemon_kill(&d);
	if (!strcmp(words, "layout"))
		set_layout(PROFIL_LAYOUT_VERSION + 1);
	else
		cr_assert_eq(unlink(store_path("owners")), 0);
	daemon_restart(&d);
	cr_expect(log_has(words), "it has not said so");
	cr_expect(!log_has("cannot store"), "the next daemon finds nothing");
	cr_expect(!ticks_list(&d, getpid(), &p), "the profile is there still");
	loop_timed(&time, 3, 100 * MS);
	cr_assert_eq(profil_sync(), 0);
	cr_expect_eq(buf[3], 0, "it got %u ticks", buf[3]);
	cr_assert_eq(ticks_profile(next), 0);
	time = (struct loop_time){ 0 };
	loop_timed(&time, 3, 250 * MS);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	ticks_expect_spell(next[3], &time, TICKS_PERIOD_NS);
}

Test(kernel_store, maps_of_another_layout_are_not_read)
{
	ends_what_it_cannot_read("layout");
}

Test(kernel_store, maps_that_are_not_all_there_are_not_read)
{
	ends_what_it_cannot_read("not all there");
}

Test(kernel_store, a_stop_after_a_kill_leaves_nothing_behind)
{
	static unsigned short buf[LOOPS];

	cr_assert_eq(ticks_profile(buf), 0);
	daemon_kill(&d);
	cr_expect_eq(access(store_path(""), F_OK), 0, "nothing outlives the daemon");
	daemon_restart(&d);
	daemon_stop(&d);
	cr_expect_neq(access(store_path(""), F_OK), 0, "%s is there still", store_path(""));
	daemon_restart(&d);
	ticks_await_profiles(&d, 0);
}

/* The first chunk of counters, mapped. */
static struct profil_chunk *first_chunk(void)
{
	__cleanup(closep) int fd = bpf_obj_get(store_path("chunk_0"));
	struct profil_chunk *chunk;

	cr_assert(fd >= 0, "%s: %s", store_path("chunk_0"), strerror(errno));
	chunk = mmap(NULL, sizeof(*chunk), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(chunk, MAP_FAILED, "chunk_0: %s", strerror(errno));
	return chunk;
}

/* A tick of a profile that is gone, which the daemon was killed before it could clear. */
Test(kernel_store, counts_that_are_nobodys_are_nobodys_next)
{
	static unsigned short buf[LOOPS];
	struct profil_chunk *chunk;

	daemon_kill(&d);
	chunk = first_chunk();
	chunk->dirty[0] = 1;
	chunk->count[0] = 777;
	daemon_restart(&d);
	cr_expect_eq(chunk->count[0], 0, "%u ticks lie there", chunk->count[0]);
	cr_assert_eq(ticks_profile(buf), 0);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_expect_lt(buf[0], 777, "it got %u ticks", buf[0]);
	munmap(chunk, sizeof(*chunk));
}
