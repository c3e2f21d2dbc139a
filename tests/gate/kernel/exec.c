/* exec.c - a sample in an image that the programs have not seen executed */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/profil.h>
#include <unistd.h>

#include "profil.h"
#include "synthetic.h"

SYNTHETIC_SUITE(synth_exec, true);

#define BASE 0x10000000ul

static uint16_t buf[16];

/* One sample of this process at BASE, as the clock takes it. */
static void sample_self(void)
{
	const struct profil_target *t = synthetic_target(&s, getpid());
	struct synth_count a = { .user_pc = BASE,
				 .ns = t->period_ns,
				 .clock_ns = t->period_ns,
				 .periods = 1,
				 .flags = PROFIL_TARGET_TICK,
				 .user_mode = 1 };

	SYNTHETIC_RUN(&s, count, &a);
	cr_assert_eq(a.tgid, getpid());
}

/* The exec_id of another image than that of @entry; 0 would be an unknown one. */
static __u32 other_exec_id(__u64 entry)
{
	__u32 exec_id = (__u32)entry & PROFIL_ENTRY_EXEC_IDS;

	return exec_id == PROFIL_ENTRY_EXEC_ID ? 2 * PROFIL_ENTRY_EXEC_ID : PROFIL_ENTRY_EXEC_ID;
}

/* The place of @entry in the process table. */
static __u64 *place_of(__u64 entry)
{
	for (__u32 which = 0; which < 2; which++) {
		struct profil_bucket *bucket = &s.tables->bucket[profil_bucket_of(
			profil_entry_tgid(entry), s.object->rodata->bucket_seed, which)];

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			if (bucket->entry[i] == entry)
				return &bucket->entry[i];
		}
	}
	cr_assert_fail("entry %#llx is not in the table", entry);
	return NULL;
}

/* An exec that the programs have missed: the task has another exec_id than the entry. */
Test(synth_exec, a_sample_of_another_image_than_the_entrys_is_not_counted)
{
	const struct profil_target *t;
	__u64 entry, *place;

	cr_assert_eq(profil(buf, sizeof(buf), BASE, 0x10000), 0, "profil: %s", strerror(errno));
	sample_self();
	cr_assert_eq(profil_sync(), 0);
	entry = synthetic_entry(&s, getpid());
	t = synthetic_target(&s, getpid());
	place = place_of(entry);
	cr_assert(entry & PROFIL_ENTRY_EXEC_IDS, "the entry has no exec_id");
	*place = profil_entry_execd(entry, other_exec_id(entry));
	sample_self();
	cr_expect_eq(*place, 0, "the process is still in the table");
	cr_expect_eq(t->total, 1, "%llu samples are counted", t->total);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_expect_eq(buf[0], 1, "%u", buf[0]);
}

/* The caller of execve() may not read the new image, or may: then the process stays. */
Test(synth_exec, a_secret_image_ends_the_profile_of_an_unprivileged_owner)
{
	struct profil_target *t;
	struct synth_exec exec = { .tgid = (__u32)getpid() };
	__u64 entry;

	cr_assert_eq(profil(buf, sizeof(buf), BASE, 0x10000), 0, "profil: %s", strerror(errno));
	t = synthetic_target(&s, getpid());
	t->flags |= PROFIL_TARGET_FOLLOW;
	for (int secret = 0; secret < 3; secret++) {
		t->flags |= secret == 2 ? PROFIL_TARGET_UNPRIVILEGED : 0;
		entry = synthetic_entry(&s, getpid());
		exec.exec_id = other_exec_id(entry);
		exec.secret = secret > 0;
		SYNTHETIC_RUN(&s, exec, &exec);
		entry = synthetic_entry(&s, getpid());
		if (secret == 2)
			cr_expect_eq(entry, 0, "the process is still profiled");
		else
			cr_expect_eq(entry & PROFIL_ENTRY_EXEC_IDS, exec.exec_id);
	}
	cr_expect_eq(t->members, 0);
}

/* Late in execve() the saved pc is where the new image begins. */
Test(synth_exec, the_first_pc_of_a_new_image_is_hidden_from_an_unprivileged_owner)
{
	for (unsigned int i = 0; i < 8; i++) {
		bool hidden = i == 6;
		struct synth_pc a = { .user_pc = 0x400000,
				      .user_mode = i & 1,
				      .target_flags = i & 2 ? PROFIL_TARGET_UNPRIVILEGED : 0,
				      .new_image = i & 4 };

		SYNTHETIC_RUN(&s, pc, &a);
		cr_expect_eq(a.shown, hidden ? PROFIL_PC_NOWHERE : a.user_pc, "%u: %#llx", i,
			     a.shown);
	}
}
