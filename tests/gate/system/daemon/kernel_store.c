/* kernel_store.c - the pins of a killed daemon in bpffs, and the next daemon */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/shared_maps.h"
#include "base/cleanup.h"
#include "tests/lib/kernel_ticks.h"
#include "profil.h"

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

/* The pins cannot be read: the profile ends, and a new one counts. */
static void expect_unreadable_pins_to_end_the_profile(const char *words)
{
	static unsigned short buf[LOOPS], next[LOOPS];
	struct profil_msg_profile p;

	cr_assert_eq(ticks_profile(buf), 0);
	daemon_kill(&d);
	if (!strcmp(words, "layout"))
		set_layout(PROFIL_LAYOUT_VERSION + 1);
	else
		cr_assert_eq(unlink(store_path("owners")), 0);
	daemon_restart(&d);
	cr_expect(log_has(words), "the log has no \"%s\"", words);
	cr_expect(!log_has("cannot store"), "the next daemon cannot store its maps");
	cr_expect(!ticks_list(&d, getpid(), &p), "the profile is still listed");
	cr_assert_eq(ticks_profile(next), 0);
	TICKS_SPIN(3, TICKS_SYNCED(next[3]));
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_expect_eq(buf[3], 0, "the ended profile got %u ticks", buf[3]);
}

Test(kernel_store, maps_of_another_layout_are_not_read)
{
	expect_unreadable_pins_to_end_the_profile("layout");
}

Test(kernel_store, an_incomplete_set_of_maps_is_not_read)
{
	expect_unreadable_pins_to_end_the_profile("are incomplete");
}

/* Maps the first chunk of counters. */
static struct profil_chunk *first_chunk(void)
{
	__cleanup(closep) int fd = bpf_obj_get(store_path("chunk-0"));
	struct profil_chunk *chunk;

	cr_assert(fd >= 0, "%s: %s", store_path("chunk-0"), strerror(errno));
	chunk = mmap(NULL, sizeof(*chunk), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(chunk, MAP_FAILED, "chunk-0: %s", strerror(errno));
	return chunk;
}

static uint64_t samples_in(const volatile struct profil_chunk *chunk)
{
	uint64_t n = 0;

	for (size_t i = 0; i < PROFIL_CHUNK_COUNTERS; i++)
		n += chunk->count[i];
	return n;
}

/* Without a daemon the profile of @buf still counts, and the next daemon writes those samples. */
static void expect_next_daemon_to_write_samples_before_it(const unsigned short buf[LOOPS])
{
	struct profil_chunk *chunk = first_chunk();
	uint64_t before = samples_in(chunk);

	TICKS_SPIN(3, samples_in(chunk) > before);
	munmap(chunk, sizeof(*chunk));
	daemon_restart(&d);
	cr_assert_eq(profil_sync(), 0, "profil_sync: %s", strerror(errno));
	cr_expect_gt(buf[3], 0, "no sample without a daemon was kept");
	/* A sample of a child between its fork and its exec is lost. */
	ticks_conserved(&d, buf[3]);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
}

/* Faster than any timer tick: the start fails after it has found the maps. */
static const char *const too_fast[] = { "--clock", "tick", "--rate", "40000" };

Test(kernel_store, a_start_that_fails_leaves_the_profiles_of_the_killed_daemon)
{
	static unsigned short buf[LOOPS];
	const char *args[] = { "--socket",  d.socket,	 too_fast[0], too_fast[1],
			       too_fast[2], too_fast[3], NULL };
	char log[512];

	cr_assert_eq(ticks_profile(buf), 0);
	daemon_kill(&d);
	cr_expect_eq(daemon_refuses(args, log, sizeof(log)), 1, "%s", log);
	expect_next_daemon_to_write_samples_before_it(buf);
}

/* Starts a profild whose @turn-th bpf() fails and which refuses to run anyway. Says whether there
 * was a @turn-th bpf(). */
static int start_under_fault(int turn)
{
	const char *build = getenv("BUILD");
	char command[512], trace[96], line[512];
	int failed = 0;
	FILE *f;

	snprintf(trace, sizeof(trace), "%s/trace", d.dir);
	snprintf(command, sizeof(command),
		 "strace -f -o %s -e trace=bpf -e inject=bpf:error=ENOMEM:when=%d %s/profild "
		 "--socket %s --clock tick --rate 40000 2>/dev/null",
		 trace, turn, build ? build : "build", d.socket);
	cr_expect_neq(system(command), 0, "profild started");
	f = fopen(trace, "re");
	while (f && fgets(line, sizeof(line), f))
		failed |= strstr(line, "(INJECTED)") != NULL;
	fclosep(&f);
	return failed;
}

static unsigned int entries_stored(void)
{
	DIR *dir = opendir(store_path(""));
	unsigned int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* After the maps, programs are loaded: some of those calls suffice. */
#define FAULT_TURNS 60
#define FAULT_TURNS_EACH 24

Test(kernel_store, a_start_in_which_a_bpf_call_fails_leaves_every_pin)
{
	const char *args[] = { "--rate", TICKS_RATE, "--machine", NULL };
	static unsigned short buf[LOOPS];
	unsigned int n, failed = 0;

	if (system("strace -o /dev/null true 2>/dev/null"))
		cr_skip_test("strace cannot trace here");
	daemon_stop(&d);
	daemon_start(&d, NULL, args);
	cr_assert_eq(ticks_profile(buf), 0);
	daemon_kill(&d);
	n = entries_stored();
	cr_expect_eq(access(store_path("machine-table"), F_OK), 0, "no table of the machine");
	for (int turn = 1; turn <= FAULT_TURNS; turn += turn < FAULT_TURNS_EACH ? 1 : 6) {
		failed += (unsigned int)start_under_fault(turn);
		cr_assert_eq(entries_stored(), n, "turn %d: %u entries of %u", turn,
			     entries_stored(), n);
	}
	cr_expect_geq(failed, FAULT_TURNS_EACH);
	expect_next_daemon_to_write_samples_before_it(buf);
	cr_expect(log_has("the machine's profile continues"),
		  "the machine profile was not taken over");
}

Test(kernel_store, the_machine_profile_continues_at_its_rate)
{
	static const char *before[] = { "--machine=97", NULL };
	static const char *after[] = { "--machine=51", NULL };

	daemon_stop(&d);
	daemon_start(&d, NULL, before);
	daemon_kill(&d);
	daemon_restart(&d);
	cr_expect(log_has("the machine's profile continues"), "it does not continue");
	cr_expect_not(log_has("instead of"), "a warning at the same rate");
	daemon_kill(&d);
	d.args = after;
	daemon_restart(&d);
	cr_expect(log_has("the profile continues at 97 Hz instead of 51 Hz"), "no warning");
}

Test(kernel_store, a_directory_that_others_may_use_is_not_used)
{
	static unsigned short buf[LOOPS];
	struct profil_msg_profile p;

	cr_assert_eq(ticks_profile(buf), 0);
	daemon_kill(&d);
	cr_assert_eq(chmod(store_path(""), 0755), 0, "%s: %s", store_path(""), strerror(errno));
	daemon_restart(&d);
	cr_expect(log_has("only this user"), "the log does not say why");
	cr_expect(!ticks_list(&d, getpid(), &p), "the profile is still listed");
	cr_expect_eq(chmod(store_path(""), 0700), 0);
	daemon_kill(&d);
	daemon_restart(&d);
	cr_expect(ticks_list(&d, getpid(), &p), "the profile has ended");
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
}

Test(kernel_store, a_stop_after_a_kill_leaves_no_pin)
{
	static unsigned short buf[LOOPS];

	cr_assert_eq(ticks_profile(buf), 0);
	daemon_kill(&d);
	cr_expect_eq(access(store_path(""), F_OK), 0, "nothing outlives the daemon");
	daemon_restart(&d);
	daemon_stop(&d);
	cr_expect_neq(access(store_path(""), F_OK), 0, "%s still exists", store_path(""));
	daemon_restart(&d);
	ticks_await_profiles(&d, 0);
}

/* Counts of an ended profile, which the killed daemon had not cleared yet. */
Test(kernel_store, stale_counts_do_not_reach_the_next_profile)
{
	static unsigned short buf[LOOPS];
	struct profil_chunk *chunk;

	daemon_kill(&d);
	chunk = first_chunk();
	chunk->dirty[0] = 1;
	chunk->count[0] = 777;
	daemon_restart(&d);
	cr_expect_eq(chunk->count[0], 0, "%u stale ticks remain", chunk->count[0]);
	cr_assert_eq(ticks_profile(buf), 0);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_expect_lt(buf[0], 777, "the next profile got %u ticks", buf[0]);
	munmap(chunk, sizeof(*chunk));
}
