/* config.c - which options a running daemon applies when it reads its file again */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "profild/config.h"

static char path[] = "/tmp/profil-config.XXXXXX";
static char *argv[] = { (char *)"profild", (char *)"--config", path, NULL };

static void write_file(const char *text)
{
	FILE *f = fopen(path, "we");

	cr_assert(f && fputs(text, f) >= 0);
	fclose(f);
}

static void make_file(void)
{
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	close(fd);
}

static void remove_file(void)
{
	unlink(path);
}

Test(config, reload_applies_only_limits_and_restrict_fast, .init = make_file, .fini = remove_file)
{
	struct config c, began;

	cr_assert_eq(config_parse(&c, 3, argv), 0);
	began = c;
	cr_assert_not(began.restrict_fast);
	write_file("restrict-fast\nuser-rate 200\nrate 50\nfast-rate 500\nclock tick\n"
		   "mirror-interval 7\n");
	cr_assert_eq(config_reload(&c), 0);
	cr_expect(c.restrict_fast);
	cr_expect_eq(c.quota.user.of[RES_SAMPLES], 200);
	cr_expect_eq(c.period_ns, began.period_ns);
	cr_expect_eq(c.fast_period_ns, began.fast_period_ns);
	cr_expect_eq(c.mirror_interval_ns, began.mirror_interval_ns);
	cr_expect_eq(c.clock, began.clock);

	write_file("user-rate = 300 # a comment\nuser-events=3\n");
	cr_assert_eq(config_reload(&c), 0);
	cr_expect_eq(c.quota.user.of[RES_SAMPLES], 300);
	cr_expect_eq(c.quota.user.of[RES_EVENTS], 3);

	write_file("");
	cr_assert_eq(config_reload(&c), 0);
	cr_expect_not(c.restrict_fast);
	cr_expect_eq(c.quota.user.of[RES_SAMPLES], began.quota.user.of[RES_SAMPLES]);
}

Test(config, machine_takes_a_rate_and_stacks, .init = make_file, .fini = remove_file)
{
	static const struct {
		const char *text;
		uint64_t hz;
		bool stacks;
	} lines[] = {
		{ "machine\n", 0, false },	     { "machine = 97\n", 97, false },
		{ "machine 97 stacks\n", 97, true }, { "machine = 97,stacks\n", 97, true },
		{ "machine stacks\n", 0, true },
	};
	struct config c;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		write_file(lines[i].text);
		cr_assert_eq(config_parse(&c, 3, argv), 0, "%s", lines[i].text);
		cr_expect(c.machine);
		cr_expect_eq(c.machine_period_ns, lines[i].hz ? period_of(lines[i].hz) : 0);
		cr_expect_eq(c.stacks, lines[i].stacks, "%s", lines[i].text);
	}
	write_file("machine 97 heaps\n");
	cr_expect_eq(config_parse(&c, 3, argv), -EINVAL);
	write_file("machine 97 stacks more\n");
	cr_expect_eq(config_parse(&c, 3, argv), -EINVAL);
}
