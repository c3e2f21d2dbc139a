/* cgroups.c - the systemd unit of a cgroup's path */
#include <criterion/criterion.h>

#include "profilctl/proc/cgroups.h"

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
