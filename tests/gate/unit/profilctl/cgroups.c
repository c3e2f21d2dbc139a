/* cgroups.c - the systemd unit of a cgroup's path */
#include <criterion/criterion.h>

#include "symbols/proc/cgroups.h"

static const char *unit_of(const char *path)
{
	static char unit[256];

	return cgroups_unit(path, unit, sizeof(unit));
}

Test(ctl_cgroups, finds_the_unit_of_a_path)
{
	cr_expect_str_eq(unit_of("/system.slice/ssh.service"), "ssh.service");
	cr_expect_str_eq(unit_of("/system.slice/system-getty.slice/getty@tty1.service"),
			 "getty@tty1.service");
	cr_expect_str_eq(unit_of("/user.slice/user-1000.slice/session-3.scope"), "session-3.scope");
	cr_expect_str_eq(unit_of("/system.slice/docker-0123.scope/init/x.service"),
			 "docker-0123.scope", "what lies below belongs to it");
	cr_expect_str_eq(
		unit_of("/user.slice/user-1000.slice/user@1000.service/app.slice/a.service"),
		"a.service", "a unit of the user's own manager");
	cr_expect_str_eq(unit_of("/user.slice/user-1000.slice/user@1000.service/init.scope"),
			 "init.scope");
	cr_expect_str_eq(unit_of("/user.slice/user-1000.slice/user@1000.service"),
			 "user@1000.service");
	cr_expect_str_eq(unit_of("/"), "");
	cr_expect_str_eq(unit_of(""), "");
	cr_expect_str_eq(unit_of("/machine.slice/.service"), "");
}

/* No cgroup has these ids. */
Test(ctl_cgroups, looks_up_many_removed_cgroups_in_one_walk)
{
	struct cgroups c = { 0 };
	__u64 root;

	for (__u64 id = ~0ull; id > ~0ull - 1000; id--) {
		cr_assert_eq(cgroups_want(&c, id), 0);
		cr_assert_eq(cgroups_want(&c, id), 0);
		cr_assert_not(cgroups_knows(&c, id));
	}
	cgroups_look_up(&c);
	cgroups_look_up(&c);
	cr_expect_eq(c.walks, 1);
	for (__u64 id = ~0ull; id > ~0ull - 1000; id--) {
		cr_assert(cgroups_knows(&c, id));
		cr_assert_null(cgroups_path(&c, id));
	}
	if (!cgroups_id(&root, "/"))
		cr_expect_str_eq(cgroups_path(&c, root), "/");
	cr_expect_eq(c.walks, 1, "%zu walks", c.walks);
	cgroups_fini(&c);
}
