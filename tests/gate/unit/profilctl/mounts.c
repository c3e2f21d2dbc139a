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

/* --- who answers ------------------------------------------------------------------------------ */

static const char own[] =
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"23 22 0:30 / /var/lib/docker/merged rw - overlay overlay rw,lowerdir=/l\n"
	"24 22 0:31 / /home rw - nfs4 server:/home rw\n"
	"25 22 0:32 / /home/eve/m rw - fuse.sshfs host: rw,user_id=1000\n"
	"26 22 7:3 / /media/eve/disk rw - ext4 /dev/loop3 rw\n"
	"27 22 0:33 / /home/eve/Private rw - ecryptfs /home/eve/.Private rw\n";

static const char other[] = "122 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
			    "123 122 0:30 / /merged rw - overlay overlay rw,lowerdir=/l\n"
			    "124 122 0:40 / /top rw - overlay overlay rw,lowerdir=/tmp/low\n"
			    "125 122 0:41 / /tmp/low rw - fuse served rw\n"
			    "126 122 0:42 / /mine rw - tmpfs none rw\n"
			    "127 122 0:32 / /bound rw - fuse.sshfs host: rw\n";

Test(ctl_mounts, own_mounts_are_local_unless_users_serve_them)
{
	cr_expect_eq(mounts_kind(own, "", 22), MOUNT_LOCAL);
	cr_expect_eq(mounts_kind(own, "", 23), MOUNT_LOCAL, "an overlay that root mounted");
	cr_expect_eq(mounts_kind(own, "", 24), MOUNT_NETWORK);
	cr_expect_eq(mounts_kind(own, "", 25), MOUNT_FOREIGN);
	cr_expect_eq(mounts_kind(own, "", 26), MOUNT_FOREIGN);
	cr_expect_eq(mounts_kind(own, "", 27), MOUNT_FOREIGN);
}

Test(ctl_mounts, mounts_of_others_are_local_only_with_a_superblock_of_ours)
{
	cr_expect_eq(mounts_kind(own, other, 122), MOUNT_LOCAL);
	cr_expect_eq(mounts_kind(own, other, 123), MOUNT_LOCAL, "a container of root's");
	cr_expect_eq(mounts_kind(own, other, 124), MOUNT_FOREIGN, "an overlay on FUSE");
	cr_expect_eq(mounts_kind(own, other, 125), MOUNT_FOREIGN);
	cr_expect_eq(mounts_kind(own, other, 126), MOUNT_FOREIGN);
	cr_expect_eq(mounts_kind(own, other, 127), MOUNT_FOREIGN);
}

Test(ctl_mounts, unknown_mount_is_foreign)
{
	cr_expect_eq(mounts_kind(own, other, 99), MOUNT_FOREIGN);
	cr_expect_eq(mounts_kind("", "", 22), MOUNT_FOREIGN);
	cr_expect_eq(mounts_kind("22 cut off", "", 22), MOUNT_FOREIGN);
	cr_expect_eq(mounts_kind("22\n22 1\n22 1 8:1 / /\n", "", 22), MOUNT_FOREIGN);
}
