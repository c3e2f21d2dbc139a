/* maps.c - parsing of /proc/PID/maps, valid and invalid */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/proc/file_account.h"
#include "symbols/proc/proc_maps.h"

static void parse(struct maps *maps, const char *text)
{
	cr_assert_eq(maps_parse(maps, strdup(text)), 0);
}

Test(ctl_maps, keeps_only_executable_mappings)
{
	struct maps maps;

	parse(&maps, "00400000-00401000 r--p 00000000 08:01 42    /bin/a\n"
		     "00401000-00403000 r-xp 00001000 08:01 42    /bin/a\n"
		     "00403000-00404000 rw-p 00003000 08:01 42    /bin/a\n");
	cr_assert_eq(maps.n, 1);
	cr_expect_eq(maps.mapping[0].lo, 0x401000);
	cr_expect_eq(maps.mapping[0].hi, 0x403000);
	cr_expect_eq(maps.mapping[0].offset, 0x1000);
	cr_expect_eq(maps.mapping[0].ino, 42);
	cr_expect_eq(maps.mapping[0].dev, 8ull << 32 | 1);
	cr_expect_str_eq(maps.mapping[0].path, "/bin/a");
	cr_expect_not(maps.mapping[0].deleted);
	maps_fini(&maps);
}

Test(ctl_maps, accepts_any_byte_in_paths)
{
	struct maps maps;

	parse(&maps, "1000-2000 r-xp 00000000 08:01 7          /a b/lib (deleted).so\n"
		     "2000-3000 r-xp 00000000 08:01 8          /tmp/x (deleted)\n"
		     "3000-4000 r-xp 00000000 00:00 0 \n"
		     "4000-5000 r-xp 00000000 00:00 0          [vdso]\n");
	cr_assert_eq(maps.n, 4);
	cr_expect_str_eq(maps.mapping[0].path, "/a b/lib (deleted).so");
	cr_expect_not(maps.mapping[0].deleted);
	cr_expect_str_eq(maps.mapping[1].path, "/tmp/x");
	cr_expect(maps.mapping[1].deleted);
	cr_expect_str_eq(maps.mapping[2].path, "");
	cr_expect_eq(maps.mapping[2].ino, 0);
	cr_expect_str_eq(maps.mapping[3].path, "[vdso]");
	maps_fini(&maps);
}

Test(ctl_maps, skips_lines_that_are_no_mapping)
{
	struct maps maps;

	parse(&maps, "\n"
		     "rubbish\n"
		     "2000-1000 r-xp 00000000 08:01 7 /backwards\n"
		     "1000-2000 r-x\n"
		     "1000-2000 r-xp zz 08:01 7 /offset\n"
		     "1000-2000 r-xp 00000000 0801 7 /device\n"
		     "1000-2000 r-xp 00000000 08:01 x /inode\n"
		     "ffffffffffffffffff-2000 r-xp 00000000 08:01 7 /long\n"
		     "5000-6000 r-xp 00000000 08:01 7 /good");
	cr_assert_eq(maps.n, 1);
	cr_expect_str_eq(maps.mapping[0].path, "/good");
	maps_fini(&maps);
}

Test(ctl_maps, keeps_one_of_overlapping_mappings)
{
	struct maps maps;

	parse(&maps, "1000-3000 r-xp 00000000 08:01 7 /a\n"
		     "2000-4000 r-xp 00000000 08:01 7 /b\n"
		     "3000-4000 r-xp 00000000 08:01 7 /c\n");
	cr_assert_eq(maps.n, 2);
	cr_expect_str_eq(maps.mapping[1].path, "/c");
	maps_fini(&maps);
}

Test(ctl_maps, finds_by_address)
{
	struct maps maps;

	parse(&maps, "1000-2000 r-xp 00000000 08:01 7 /a\n"
		     "3000-4000 r-xp 00000000 08:01 7 /b\n"
		     "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
	cr_expect_null(maps_find(&maps, 0xfff));
	cr_expect_str_eq(maps_find(&maps, 0x1000)->path, "/a");
	cr_expect_str_eq(maps_find(&maps, 0x1fff)->path, "/a");
	cr_expect_null(maps_find(&maps, 0x2000));
	cr_expect_str_eq(maps_find(&maps, 0x3000)->path, "/b");
	cr_expect_null(maps_find(&maps, 0x4000));
	cr_expect_str_eq(maps_find(&maps, 0xffffffffff600400)->path, "[vsyscall]");
	maps_fini(&maps);
}

Test(ctl_maps, reads_the_maps_of_this_process)
{
	struct maps maps;
	const struct mapping *m;

	cr_assert_eq(maps_read(&maps, getpid()), 0);
	m = maps_find(&maps, (unsigned long)maps_read);
	cr_assert_not_null(m);
	cr_expect_neq(m->ino, 0);
	maps_fini(&maps);
}

/* A process of user @owner that has the file of a path of nearly 4 KiB mapped @n times. */
static pid_t start_crowded(uid_t owner, int n, int *hold)
{
	static char name[250];
	char top[] = "/tmp/profil-maps-XXXXXX";
	int begun[2], end[2], fd;
	char ok;
	pid_t pid;

	cr_assert(pipe(begun) == 0 && pipe(end) == 0);
	pid = fork();
	if (pid == 0) {
		close(end[1]);
		memset(name, 'd', sizeof(name) - 1);
		ok = mkdtemp(top) && !chdir(top);
		for (int i = 0; i < 15; i++)
			ok = ok && !mkdir(name, 0700) && !chdir(name);
		fd = open("file", O_RDWR | O_CREAT, 0700);
		ok = ok && fd >= 0 && !ftruncate(fd, 4096);
		for (int i = 0; ok && i < n; i++)
			ok = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) !=
			     MAP_FAILED;
		ok = ok && !setuid(owner) && write(begun[1], &ok, 1) == 1 &&
		     read(end[0], &ok, 1) == 0;
		_exit(!ok);
	}
	close(end[0]);
	close(begun[1]);
	cr_assert_eq(read(begun[0], &ok, 1), 1);
	close(begun[0]);
	*hold = end[1];
	return pid;
}

static void end_crowded(pid_t pid, int hold)
{
	char path[4096], *slash;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	cr_assert_eq(chdir(path), 0);
	close(hold);
	waitpid(pid, NULL, 0);
	unlink("file");
	n = readlink("/proc/self/cwd", path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	for (; strstr(path, "/profil-maps-"); *slash = '\0') {
		slash = strrchr(path, '/');
		cr_assert_eq(chdir(".."), 0);
		rmdir(slash + 1);
	}
}

Test(ctl_maps, of_a_process_take_a_limited_amount_of_memory)
{
	struct maps maps;
	int hold;
	pid_t pid = start_crowded(geteuid(), 6000, &hold);

	cr_assert_eq(maps_read(&maps, pid), 0);
	cr_expect_gt(maps.n, 3000);
	cr_expect_lt(strlen(maps.mapping[maps.n - 1].path), 4096);
	cr_expect(strstr(maps.mapping[maps.n - 1].path, "/file"), "no path is cut off");
	cr_expect_lt(maps.n, 6000);
	maps_fini(&maps);
	end_crowded(pid, hold);
}

Test(ctl_maps, are_read_in_the_time_of_the_user_of_the_process)
{
	struct file_account *account;
	struct maps maps;
	int hold;
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root, to run a process of another user");
	pid = start_crowded(4000000001u, 6000, &hold);
	account = file_account_for(4000000001u);
	cr_expect_eq(file_account_of_process(pid), account);
	cr_assert_eq(maps_read(&maps, pid), 0);
	maps_fini(&maps);
	cr_expect_lt(file_account_time_left(account, FILE_TIME), FILE_ACCOUNTS_NS / 2,
		     "it is charged");
	file_account_use_time(account, FILE_TIME, file_account_time_left(account, FILE_TIME));
	cr_expect_eq(maps_read(&maps, pid), -ETIMEDOUT);
	cr_expect_eq(maps_read(&maps, getpid()), 0);
	maps_fini(&maps);
	end_crowded(pid, hold);
}
