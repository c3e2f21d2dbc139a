/* kernel_observe_limits.c - what attachments use is charged to their user for as long as it exists
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/users.h"

#define ALICE 61001

DAEMON_SUITE(kernel_observe_limits, "--rate", TICKS_RATE, "--user-tables", "4",
	     "--user-connections", "100");

static struct profil_msg_observe ask_processes(void)
{
	return observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
}

/* --- memory of tables ------------------------------------------------------------------------- */

#define KEPT_MAX 64

/* Opens attachments and closes their connections, but keeps the tables: their number. */
static unsigned int keep_tables(struct observer *kept, bool mapped, int *err)
{
	struct profil_msg_observe ask = ask_processes();
	unsigned int n = 0;

	while (n < KEPT_MAX && (*err = observer_open(&kept[n], &d, &ask)) == 0) {
		close(kept[n].sock);
		if (mapped)
			close(kept[n].fd);
		n++;
	}
	close(kept[n % KEPT_MAX].sock);
	return n;
}

/* Runs as ALICE; returns 0, or the number of the check that failed. */
static int keep_and_close(unsigned int mapped)
{
	struct profil_msg_observe ask = ask_processes();
	struct observer kept[KEPT_MAX], o;
	unsigned int n;
	int err;

	n = keep_tables(kept, mapped, &err);
	if (n == 0 || n == KEPT_MAX || err != ENOMEM)
		return 1;
	/* The daemon closes their connections meanwhile, and does not forget them. */
	for (int i = 0; i < 50; i++) {
		if (observer_open(&o, &d, &ask) != ENOMEM)
			return 2;
		close(o.sock);
	}
	for (unsigned int i = 0; i < n; i++) {
		kept[i].sock = -1;
		if (mapped)
			kept[i].fd = -1;
		observer_close(&kept[i]);
	}
	for (unsigned int i = 0; i < n; i++) {
		if (observer_open(&kept[i], &d, &ask))
			return 3;
	}
	return 0;
}

Test(kernel_observe_limits, tables_kept_by_fd_after_disconnect_stay_charged)
{
	users_expect_end(users_run(ALICE, keep_and_close, 0), 0, "the user who keeps tables");
}

Test(kernel_observe_limits, tables_kept_mapped_after_disconnect_stay_charged)
{
	users_expect_end(users_run(ALICE, keep_and_close, 1), 0, "the user who keeps tables");
}

/* Runs as ALICE: each request needs what the one before has just given back. */
static int observe_again_and_again(unsigned int unused)
{
	struct profil_msg_observe ask = ask_processes();

	ask.places = 100000; /* more than half of the limit */
	for (int i = 1; i <= 50; i++) {
		struct observer o;

		if (observer_open(&o, &d, &ask))
			return i;
		observer_close(&o);
	}
	return 0;
}

Test(kernel_observe_limits, user_gets_table_again_right_after_closing_one)
{
	users_expect_end(users_run(ALICE, observe_again_and_again, 0), 0,
			 "the user who observes again and again");
}

/* --- slots of tables -------------------------------------------------------------------------- */

#define SLOTS 64

/* The smallest table: 32 KiB or less. */
static struct profil_msg_observe ask_small(void)
{
	struct profil_msg_observe ask = ask_processes();

	ask.places = ask.images = 1;
	return ask;
}

static int take_slots(unsigned int unused)
{
	struct profil_msg_observe ask = ask_small();
	struct observer o[SLOTS + 1];

	for (int i = 0; i < SLOTS; i++) {
		if (observer_open(&o[i], &d, &ask))
			return 1;
	}
	if (observer_open(&o[SLOTS], &d, &ask) != EAGAIN)
		return 2;
	close(o[SLOTS].sock);
	/* A request waits for slots that its user has just given back. */
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < SLOTS; i++)
			observer_close(&o[i]);
		for (int i = 0; i < SLOTS; i++) {
			if (observer_open(&o[i], &d, &ask))
				return 3;
		}
	}
	return 0;
}

Test(kernel_observe_limits, user_has_64_slots_for_tables)
{
	users_expect_end(users_run(ALICE, take_slots, 0), 0, "the user who takes all slots");
}

/* --- wide scopes ------------------------------------------------------------------------------ */

#define USERS 8
#define USER_WIDE 2 /* so they want all that there are */

static int hold[2], held[2];

/* Takes the wide scopes that it gets, and holds them until @hold is closed. */
static int hold_wide(unsigned int unused)
{
	struct profil_msg_observe ask = ask_small();
	struct observer o[USER_WIDE];
	char end;

	close(hold[1]);
	ask.scope = PROFIL_SCOPE_USER;
	ask.uid = getuid();
	for (int i = 0; i < USER_WIDE; i++)
		observer_open(&o[i], &d, &ask);
	return write(held[1], "", 1) != 1 || read(hold[0], &end, 1) != 0;
}

Test(kernel_observe_limits, wide_scopes_are_reserved_for_root)
{
	struct profil_msg_observe ask = ask_small();
	struct observer o;
	pid_t pid[USERS];
	char byte;

	cr_assert(pipe(hold) == 0 && pipe(held) == 0);
	for (unsigned int i = 0; i < USERS; i++)
		pid[i] = users_run(ALICE + i, hold_wide, 0);
	close(held[1]);
	for (unsigned int i = 0; i < USERS; i++)
		cr_assert_eq(read(held[0], &byte, 1), 1, "a user has ended");
	ask.scope = PROFIL_SCOPE_MACHINE;
	cr_expect_eq(observer_open(&o, &d, &ask), 0, "root is refused");
	close(hold[1]);
	for (unsigned int i = 0; i < USERS; i++)
		users_expect_end(pid[i], 0, "a user with wide scopes");
	observer_close(&o);
}
