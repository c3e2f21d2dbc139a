/* replay.c - ticks from a file: which of them count, and where */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profild/config.h"
#include "profild/sampler.h"
#include "profild/session.h"

static unsigned int counted[16];

static void count(struct target *t, uint32_t owner, uint32_t bin, const uint32_t *n, uint32_t bins,
		  struct profil_journal *journal)
{
	cr_expect_eq(bins, 1);
	cr_expect_eq(owner, 0);
	cr_expect_null(journal);
	counted[bin] += *n;
	(void)t;
}

static const struct sampler_sink sink = { .counts = count };

/* A counter for each byte. */
static const struct profil_msg_region region = {
	.lo = 0x1000,
	.x = { .base = 0x1000, .span = 16, .mul = 1, .nbins = 16 },
	.addr = 1,
};

static int open_text(struct sampler **s, const char *text)
{
	char path[64];
	struct config config = { .replay_path = path };
	int fd = memfd_create("ticks", 0), err;

	cr_assert_geq(fd, 0);
	cr_assert_geq(dprintf(fd, "%s", text), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = sampler_replay_open(s, &config, &sink);
	close(fd);
	return err;
}

Test(replay, ticks_count_once_for_each_profile_that_starts)
{
	struct session session = { 0 };
	struct sampler *s;
	struct target *t;
	struct ticks ticks;
	uint32_t at = 0;

	cr_assert_eq(open_text(&s, "0x1000 3\n4097\t2 # in decimal\n0x2000 5\n"), 0);
	cr_assert_eq(target_new(&t, &session, 1, &region, 1), 0);
	cr_assert_eq(s->ops->start(s, t, NULL, 0), 0);
	cr_expect_eq(counted[0], 3);
	cr_expect_eq(counted[1], 2);
	s->ops->ticks(s, t, &ticks);
	cr_expect_eq(ticks.total, 10);
	cr_expect_eq(ticks.unmatched, 5);
	cr_expect_eq(t->ledger->drained, 5);

	s->ops->release(s, t);
	s->ops->region_off(s, t, 0); /* its buffer has gone */
	cr_assert_eq(s->ops->start(s, t, NULL, 0), 0);
	s->ops->ticks(s, t, &ticks);
	cr_expect_eq(counted[0], 3);
	cr_expect_eq(ticks.total, 20);
	cr_expect_eq(ticks.unmatched, 15);

	cr_expect_null(s->ops->next(s, &at), "nothing is left to drain");
	cr_expect_not(s->ops->keeps(s), "nothing is kept for another daemon");
	s->ops->release(s, t);
	target_free(t);
	s->ops->close(s);
}

Test(replay, a_reader_gets_no_ticks)
{
	struct session session = { .reader = (struct client *)counted };
	struct sampler *s;
	struct target *t;

	cr_assert_eq(open_text(&s, "0x1000\n"), 0);
	cr_assert_eq(target_new(&t, &session, 1, NULL, 0), 0);
	cr_assert_eq(s->ops->start(s, t, NULL, 0), 0);
	cr_expect_eq(t->replayed.total, 0);
	s->ops->release(s, t);
	target_free(t);
	s->ops->close(s);
}

Test(replay, a_line_is_a_pc_and_a_count)
{
	static const char *const wrong[] = {
		"pc",
		"-1",
		"0x1000x",
		"0x10000000000000000",
		"0x1000 4294967296",
		"0x1000 -1",
		"0x1000 1 1",
		"0x1000 x",
		"0x",
	};
	struct sampler *s;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(open_text(&s, wrong[i]), -EINVAL, "%s", wrong[i]);
	cr_assert_eq(open_text(&s, " \t\n# nothing\n0xffffffffffffffff 4294967295 \n"), 0);
	s->ops->close(s);
}

Test(replay, a_file_that_is_none_is_refused)
{
	struct config config = { .replay_path = "/nonexistent/ticks" };
	struct sampler *s;

	cr_expect_eq(sampler_replay_open(&s, &config, &sink), -ENOENT);
	config.replay_path = "/";
	cr_expect_eq(sampler_replay_open(&s, &config, &sink), -EISDIR);
}

Test(replay, a_file_may_have_any_number_of_lines)
{
	struct session session = { 0 };
	char text[8192], *at = text;
	struct sampler *s;
	struct target *t;

	for (unsigned int i = 0; i < 1000; i++)
		at += sprintf(at, "0x1002\n");
	cr_assert_eq(open_text(&s, text), 0);
	cr_assert_eq(target_new(&t, &session, 1, &region, 1), 0);
	cr_assert_eq(s->ops->start(s, t, NULL, 0), 0);
	cr_expect_eq(counted[2], 1000);
	s->ops->release(s, t);
	target_free(t);
	s->ops->close(s);
}
