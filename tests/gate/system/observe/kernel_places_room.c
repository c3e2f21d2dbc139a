/* kernel_places_room.c - full tables of places, and images of processes that ended or are hidden
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observed.h"
#include "tests/lib/observer.h"
#include "tests/lib/users.h"

#define FAST_NS 100000 /* the period of 10000 Hz */
#define ALICE 61001
#define BOB 61002

DAEMON_SUITE(kernel_places_room, "--rate", TICKS_RATE, "--user-rate", "10000");

static void shell(const char *script)
{
	execl("/bin/sh", "sh", "-c", script, (char *)NULL);
	_exit(127);
}

static void observe_script(struct observer *o, const struct profil_msg_observe *ask,
			   const char *script)
{
	struct child c = child_fork(shell, script);

	cr_assert_eq(observer_open(o, &d, ask), 0);
	cr_assert_eq(observer_add(o, c.pid), 0);
	child_run(&c);
}

/* Several programs and libraries with hundreds of functions each. */
#define BROAD                                                                                     \
	"ls -lR /usr/share/doc | head -20000 | sort | uniq -c | gzip -9 | od | awk '{ n += NF } " \
	"END { print n }' >/dev/null; find /usr/include -type f | xargs cat | tr a-z A-Z | "      \
	"sha256sum | cut -c 1-3 >/dev/null"

Test(kernel_places_room, counts_samples_without_a_free_place_by_image)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, FAST_NS);
	uint64_t coarse = 0, folded = 0, all;
	struct observer o;

	ask.places = 1; /* rounded up to a page: 320 */
	observe_script(&o, &ask, BROAD);
	all = observer_check(&o);
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *m = observer_image(&o, i);

		coarse += m ? m->coarse[0] : 0;
		folded += m ? m->coarse[1] : 0;
	}
	cr_expect_gt(coarse, 0, "all of %llu samples have a place", (unsigned long long)all);
	cr_expect_gt(folded, 0);
	cr_expect_eq(o.table->image_full + o.table->lost + o.table->unmatched, 0);
	cr_expect_leq(o.table->used_places, o.table->lines * PROFIL_LINE_PLACES);
	observer_close(&o);
}

Test(kernel_places_room, counts_samples_without_a_free_image_as_image_full)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, FAST_NS);
	struct observer o;

	ask.images = 1; /* rounded up to a page: 8 */
	observe_script(&o, &ask, BROAD);
	observer_check(&o);
	cr_expect_eq(o.table->used_images, o.table->images);
	cr_expect_gt(o.table->image_full, 0);
	cr_expect_eq(o.table->lost + o.table->unmatched, 0);
	observer_close(&o);
}

Test(kernel_places_room, counts_samples_without_a_free_group_in_group_0)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, FAST_NS);
	struct observer o;

	ask.group_by = PROFIL_GROUP_PROCESS;
	ask.groups = 1; /* rounded up to a page: 32 */
	observe_script(&o, &ask, "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done");
	observer_check(&o);
	cr_expect_gt(o.table->group_full, 0);
	cr_expect_eq(o.table->image_full + o.table->lost + o.table->unmatched, 0);
	observer_close(&o);
}

/*
 * Programs that run for some milliseconds and are then deleted: neither process nor file exists
 * when the table is read. An image whose notes were not in memory has no build id, and none has a
 * wrong one.
 */
Test(kernel_places_room, keeps_build_ids_of_deleted_programs)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, FAST_NS);
	unsigned int images = 0, n, right = 0, without = 0;
	struct observer o;
	uint8_t id[64] = { 0 };
	char script[1024];

	snprintf(script, sizeof(script),
		 "cd %s; for i in 0 1 2 3; do for k in 0 1 2 3 4 5; do "
		 "cp -L /bin/sh gone$i$k; ./gone$i$k -c "
		 "'i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done'; rm gone$i$k; done; done",
		 d.dir);
	observe_script(&o, &ask, script);
	observer_check(&o);
	n = build_id_of("/bin/sh", id);
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *m = observer_image(&o, i);

		if (!m || m->kind != PROFIL_IMAGE_FILE || strncmp(m->path, "gone", 4) != 0)
			continue;
		images++;
		right += m->build_id_bytes == n && !memcmp(m->build_id, id, n);
		without += m->build_id_bytes == 0;
	}
	cr_expect_gt(right, 0);
	cr_expect_eq(right + without, images, "%u of %u images have their build ids, %u none",
		     right, images, without);
	observer_close(&o);
}

/* Runs as ALICE, whose child execs another user's set-id program. Returns 0, or the number of the
 * check that failed. */
static int observe_setid(unsigned int unused)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, FAST_NS);
	char script[512];
	struct observer o;
	struct child c;

	(void)unused;
	snprintf(
		script, sizeof(script),
		"i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exec %s/setid -p -c 'i=0; while "
		"[ $i -lt 50000 ]; do i=$((i+1)); done'",
		d.dir);
	c = child_fork(shell, script);
	if (observer_open(&o, &d, &ask) || observer_add(&o, c.pid))
		return 1;
	child_run(&c);
	if (!observer_find(&o, PROFIL_IMAGE_FILE, "dash") &&
	    !observer_find(&o, PROFIL_IMAGE_FILE, "sh"))
		return 2;
	if (observer_find(&o, PROFIL_IMAGE_FILE, "setid"))
		return 3;
	return o.table->secret == 1 ? 0 : 4;
}

Test(kernel_places_room, observation_ends_at_exec_of_set_id_program_and_that_is_counted)
{
	char command[1200];

	snprintf(command, sizeof(command),
		 "cp -L /bin/sh %s/setid && chown %d %s/setid && "
		 "chmod 4755 %s/setid",
		 d.dir, BOB, d.dir, d.dir);
	cr_assert_eq(system(command), 0);
	users_expect_end(users_run(ALICE, observe_setid, 0), 0, "the observer of a set-id program");
}

/* A client with a full table can get an empty one on the same connection. */
Test(kernel_places_room, client_gets_new_table_after_detach)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, FAST_NS);
	struct profil_header detach;
	struct observer first, o;
	struct child c;

	observe_script(&first, &ask, "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done");
	cr_expect_gt(observer_sum(&first), 0);
	o = first;
	cr_expect_eq(observer_take(&o, &ask.h), EBUSY);
	wire_header(&detach, PROFIL_MSG_DETACH, sizeof(detach), 0, 0);
	cr_assert_eq(observer_take(&o, &detach), 0);
	cr_assert_eq(observer_take(&o, &ask.h), 0);
	cr_expect_eq(observer_sum(&o), 0);
	c = child_fork(shell, "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done");
	cr_assert_eq(observer_add(&o, c.pid), 0);
	child_run(&c);
	cr_expect_gt(observer_check(&o), 0);
	cr_expect_gt(observer_sum(&first), 0);
	observer_close(&o);
}
