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
#include "tests/lib/scripts.h"
#include "tests/lib/users.h"

#define ALICE 61001
#define BOB 61002

DAEMON_SUITE(kernel_places_room, "--rate", TICKS_RATE, "--user-rate", "10000");

Test(kernel_places_room, counts_samples_without_a_free_place_by_image)
{
	uint64_t all, coarse = scripts_without_places(&d, &all);

	cr_expect_gt(coarse, 0, "all of %llu samples have a place", (unsigned long long)all);
}

Test(kernel_places_room, counts_samples_without_a_free_image_as_image_full)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	struct observer o;

	ask.images = 1; /* rounded up to a page: 8 */
	observe_script(&o, &d, &ask, SCRIPT_BROAD);
	observer_check(&o);
	cr_expect_eq(o.table->used_images, o.table->images);
	cr_expect_gt(o.table->image_full, 0);
	cr_expect_eq(o.table->lost + o.table->unmatched, 0);
	observer_close(&o);
}

Test(kernel_places_room, counts_samples_without_a_free_group_in_group_0)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	struct observer o;

	ask.group_by = PROFIL_GROUP_PROCESS;
	ask.groups = 1; /* rounded up to a page: 32 */
	observe_script(&o, &d, &ask, "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done");
	observer_check(&o);
	cr_expect_gt(o.table->group_full, 0);
	cr_expect_eq(o.table->image_full + o.table->lost + o.table->unmatched, 0);
	observer_close(&o);
}

Test(kernel_places_room, keeps_build_ids_of_deleted_programs)
{
	unsigned int images;

	cr_expect_gt(scripts_deleted(&d, 24, &images), 0);
}

/* Runs as ALICE, whose child execs another user's set-id program. Returns 0, or the number of the
 * check that failed. */
static int observe_setid(unsigned int unused)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	char script[512];
	struct observer o;
	struct child c;

	snprintf(
		script, sizeof(script),
		"i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exec %s/setid -p -c 'i=0; while "
		"[ $i -lt 50000 ]; do i=$((i+1)); done'",
		d.dir);
	c = child_fork(script_exec, script);
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
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	struct profil_header detach;
	struct observer first, o;
	struct child c;

	observe_script(&first, &d, &ask, "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done");
	cr_expect_gt(observer_sum(&first), 0);
	o = first;
	cr_expect_eq(observer_take(&o, &ask.h), EBUSY);
	wire_header(&detach, PROFIL_MSG_DETACH, sizeof(detach), 0, 0);
	cr_assert_eq(observer_take(&o, &detach), 0);
	cr_assert_eq(observer_take(&o, &ask.h), 0);
	cr_expect_eq(observer_sum(&o), 0);
	c = child_fork(script_exec, "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done");
	cr_assert_eq(observer_add(&o, c.pid), 0);
	child_run(&c);
	cr_expect_gt(observer_check(&o), 0);
	cr_expect_gt(observer_sum(&first), 0);
	observer_close(&o);
}
