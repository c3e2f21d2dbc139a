/* maps.c - parsing of /proc/PID/maps, valid and invalid */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

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
