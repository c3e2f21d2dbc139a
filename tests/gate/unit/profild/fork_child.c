/* fork_child.c - in which profile a sample that arrives as a pc is counted */
#include <criterion/criterion.h>
#include <string.h>

#include "profild/profile/own_profile.h"
#include "profild/profile/sampler.h"

#define PID 4711

/* Two profiles; @now is the one that counts PID now, of generation 2. */
static struct profild d;
static struct own_profile before, now;
static struct target targets[2];
static int left;

static struct target *find(struct sampler *s, pid_t tgid, bool *unbound, uint32_t *generation)
{
	*unbound = false;
	*generation = 2;
	return now.target;
}

static bool leave(struct sampler *s, struct target *t, pid_t tgid)
{
	left++;
	return false;
}

static const struct sampler_ops ops = { .find = find, .leave = leave };
static struct sampler sampler = { .ops = &ops };

static void start(void)
{
	struct own_profile *own[2] = { &before, &now };

	d.sampler = &sampler;
	for (int i = 0; i < 2; i++) {
		own[i]->daemon = &d;
		own[i]->state = OWN_PROFILE_ON;
		own[i]->target = &targets[i];
		targets[i].profile = own[i];
		targets[i].ledger = &targets[i].counts;
	}
}

TestSuite(fork_child, .init = start);

Test(fork_child, counts_sample_of_bound_child_in_its_profile)
{
	own_profile_pc(&before, PID, 2, 0x1000);
	cr_expect_eq(now.target->ledger->unmatched, 1);
	cr_expect_eq(before.target->ledger->dropped, 0);
}

Test(fork_child, loses_pcs_of_profile_that_is_given_up)
{
	static struct profil_region region = { .x.nbins = 10 };

	before.flags = PROFIL_START_PCS;
	before.tgid = PID;
	before.target->region = &region;
	before.target->nregions = 1;
	own_profile_pc(&before, PID, 0, 0x1000);
	cr_expect_eq(before.npcs, 1);
	before.state = OWN_PROFILE_GIVEN_UP;
	own_profile_pc(&before, PID, 0, 0x1000);
	cr_expect_eq(before.npcs, 1);
	cr_expect_eq(before.target->ledger->dropped, 1);
}

Test(fork_child, loses_sample_of_ended_child_whose_pid_is_reused)
{
	own_profile_pc(&before, PID, 1, 0x1000);
	cr_expect_eq(now.target->ledger->events, 0);
	cr_expect_eq(now.target->ledger->unmatched, 0);
	cr_expect_eq(before.target->ledger->events, 1);
	cr_expect_eq(before.target->ledger->dropped, 1);
	cr_expect_eq(left, 0, "the process that has the pid now is no longer followed");
}
