/* mounts.c - files whose file system may never answer */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "symbols/proc/mounts.h"

static const char mountinfo[] =
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"30 22 0:25 / /home rw shared:7 master:1 - nfs4 server:/home rw,vers=4.2\n"
	"31 22 0:26 / /mnt/a\\040b rw - fuse.sshfs host: rw\n"
	"32 22 0:27 / /mnt/disk rw - fuseblk /dev/sdb1 rw\n"
	"33 30 0:28 / /home/local rw - tmpfs tmpfs rw\n"
	"34 22 0:29 / /srv/hung rw - fuse none rw\n"
	"35 22 cut off\n";

static bool has_server(const char *path)
{
	FILE *f = fmemopen((void *)mountinfo, strlen(mountinfo), "r");
	bool is = mounts_has_server(f, path, false);

	fclose(f);
	return is;
}

Test(ctl_mounts, network_file_systems_have_a_server)
{
	cr_expect(has_server("/home/user/bin/a.out"));
	cr_expect(has_server("/home"));
	cr_expect(has_server("/srv/hung/x"));
	cr_expect(has_server("/mnt/disk/x"), "a FUSE server, though the disk is local");
}

Test(ctl_mounts, local_file_systems_have_none)
{
	cr_expect(!has_server("/usr/bin/ls"));
	cr_expect(!has_server("/homes/a"), "a prefix of a name is no mount point");
}

Test(ctl_mounts, escapes_in_mount_points_are_read)
{
	cr_expect(has_server("/mnt/a b/program"));
	cr_expect(!has_server("/mnt/a\\040b/program"));
}

Test(ctl_mounts, a_mount_on_the_way_counts)
{
	cr_expect(has_server("/home/local/x"), "the lookup of /home asks the server");
}

Test(ctl_mounts, the_own_root_does_not_count)
{
	char root[] = "22 1 0:9 / / rw - nfs server:/root rw\n";

	for (int is_own = 0; is_own < 2; is_own++) {
		FILE *f = fmemopen(root, strlen(root), "r");

		cr_expect_eq(mounts_has_server(f, "/usr/bin/ls", is_own), !is_own);
		fclose(f);
	}
}

Test(ctl_mounts, a_process_that_has_ended_is_not_trusted)
{
	cr_expect(mounts_has_server_for("0", "/usr/bin/ls"));
	cr_expect(!mounts_has_server_for("self", "/proc/self/exe"));
}
