/* replay.c - ticks from a file: which of them count, and in which bin */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profild/config.h"
#include "profild/profile/sampler.h"
#include "profild/profile/own_profile.h"

static unsigned int counted[16];
static const struct sampler_sink sink;

/* Drains all counts, as the writer does. */
static void take_all(struct sampler *s, struct target *t)
{
	uint32_t count[PROFIL_SPAN];
	struct counts c = { .count = count, .room = PROFIL_SPAN };

	while (s->ops->take(s, t, &c) == 1) {
		uint64_t sum = 0;

		cr_expect_eq(c.owner, 0);
		for (uint32_t i = 0; i < c.n; i++) {
			counted[c.bin + i] += count[i];
			sum += count[i];
		}
		cr_expect_eq(c.sum, sum);
	}
}

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

Test(replay, ticks_count_once_for_each_started_profile)
{
	struct own_profile profile = { 0 };
	struct sampler *s;
	struct target *t;
	struct samples samples;
	uint32_t at = 0;

	cr_assert_eq(open_text(&s, "0x1000 3\n4097\t2 # in decimal\n0x2000 5\n"), 0);
	cr_assert_eq(target_new(&t, &profile, 1, &region, 1), 0);
	cr_assert_eq(s->ops->start(s, t, NULL, 0), 0);
	take_all(s, t);
	cr_expect_eq(counted[0], 3);
	cr_expect_eq(counted[1], 2);
	s->ops->samples(s, t, &samples);
	cr_expect_eq(samples.total, 10);
	cr_expect_eq(samples.unmatched, 5);

	s->ops->release(s, t);
	s->ops->region_off(s, t, 0); /* its buffer is unmapped */
	cr_assert_eq(s->ops->start(s, t, NULL, 0), 0);
	take_all(s, t);
	s->ops->samples(s, t, &samples);
	cr_expect_eq(counted[0], 3);
	cr_expect_eq(samples.total, 10);
	cr_expect_eq(samples.unmatched, 10);

	cr_expect_eq(s->ops->next(s, &at), t, "each pass looks whether the process is there");
	cr_expect(profile.probe);
	cr_expect_null(s->ops->next(s, &at));
	cr_expect_not(s->ops->keeps(s), "nothing is kept for another daemon");
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

Test(replay, an_invalid_file_is_refused)
{
	struct config config = { .replay_path = "/nonexistent/ticks" };
	struct sampler *s;

	cr_expect_eq(sampler_replay_open(&s, &config, &sink), -ENOENT);
	config.replay_path = "/";
	cr_expect_eq(sampler_replay_open(&s, &config, &sink), -EISDIR);
}

Test(replay, a_file_may_have_any_number_of_lines)
{
	struct own_profile profile = { 0 };
	char text[8192], *at = text;
	struct sampler *s;
	struct target *t;

	for (unsigned int i = 0; i < 1000; i++)
		at += sprintf(at, "0x1002\n");
	cr_assert_eq(open_text(&s, text), 0);
	cr_assert_eq(target_new(&t, &profile, 1, &region, 1), 0);
	cr_assert_eq(s->ops->start(s, t, NULL, 0), 0);
	take_all(s, t);
	cr_expect_eq(counted[2], 1000);
	s->ops->release(s, t);
	target_free(t);
	s->ops->close(s);
}
