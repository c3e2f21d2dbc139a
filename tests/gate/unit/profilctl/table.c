/* table.c - a table of places is read into a profile */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "table/image_file.h"
#include "table/table_reader.h"
#include "symbols/elf/elf_file.h"
#include "symbols/build_dir.h"
#include "symbols/symbolize_cache.h"

#define IMAGES 16
#define GROUPS 64
#define LINES 64
#define PAGES \
	(1 + IMAGES / PROFIL_PAGE_IMAGES + GROUPS / PROFIL_PAGE_GROUPS + LINES / PROFIL_PAGE_LINES)
#define KERNEL_BASE 0xffffffff00000000ull

struct fake {
	int fd;
	struct profil_table *head;
	struct profil_image *image; /* [0] is image 1 */
	struct profil_group *group;
	struct profil_line *line;
};

static void fake_open(struct fake *f)
{
	f->fd = memfd_create("table", MFD_CLOEXEC);
	cr_assert_eq(ftruncate(f->fd, PAGES * PROFIL_TABLE_PAGE), 0);
	f->head =
		mmap(NULL, PAGES * PROFIL_TABLE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	cr_assert_neq(f->head, MAP_FAILED);
	*f->head = (struct profil_table){
		.version = PROFIL_TABLE_VERSION,
		.pages = PAGES,
		.image_page = 1,
		.images = IMAGES,
		.group_page = 3,
		.groups = GROUPS,
		.place_page = 5,
		.lines = LINES,
		.group_by = PROFIL_GROUP_PROCESS,
		.period_ns = 1000000,
	};
	f->image = (void *)((char *)f->head + PROFIL_TABLE_PAGE);
	f->group = (void *)((char *)f->head + 3 * PROFIL_TABLE_PAGE);
	f->line = (void *)((char *)f->head + 5 * PROFIL_TABLE_PAGE);
}

static void fake_close(struct fake *f)
{
	munmap(f->head, PAGES * PROFIL_TABLE_PAGE);
	close(f->fd);
}

/* Writes the components of @path, the last one first, as the kernel does. */
static void write_path(struct profil_image *image, const char *path)
{
	char *at = image->path, copy[PROFIL_IMAGE_PATH];
	char *slash;

	strcpy(copy, path);
	while ((slash = strrchr(copy, '/'))) {
		strcpy(at, slash + 1);
		at += strlen(at) + 1;
		*slash = '\0';
	}
}

static struct profil_image *add_image(struct fake *f, __u32 index, __u16 kind, const char *path)
{
	struct profil_image *image = &f->image[index - 1];

	image->id = index;
	image->kind = kind;
	image->tgid = (__u32)getpid();
	if (path)
		write_path(image, path);
	image->ready = 1;
	f->head->used_images++;
	return image;
}

static void add_group(struct fake *f, __u32 index, __u32 tgid, const char *command)
{
	struct profil_group *group = &f->group[index - 1];

	group->id = index;
	group->tgid = tgid;
	group->start_ns = tgid;
	strcpy(group->command, command);
	group->ready = 1;
	f->head->used_groups++;
}

static void add_place(struct fake *f, __u32 line, int slot, __u64 key, __u32 count)
{
	f->line[line].key[slot] = key;
	f->line[line].count[slot] = count;
}

Test(ctl_table, refuses_a_table_whose_parts_lie_outside)
{
	struct table t = { 0 };
	struct fake f;

	fake_open(&f);
	cr_assert_eq(table_open(&t, f.fd), 0);
	table_close(&t);
	f.head->lines = LINES + 1;
	cr_expect_eq(table_open(&t, f.fd), -EPROTO);
	f.head->lines = LINES;
	f.head->image_page = ~0u;
	cr_expect_eq(table_open(&t, f.fd), -EPROTO);
	f.head->image_page = 1;
	f.head->reserved = 1;
	cr_expect_eq(table_open(&t, f.fd), -EPROTO);
	f.head->reserved = 0;
	f.head->version++;
	cr_expect_eq(table_open(&t, f.fd), -EPROTO);
	fake_close(&f);
}

Test(ctl_table, joins_paths_from_their_last_component)
{
	struct profil_image image = { 0 };
	char path[PROFIL_IMAGE_PATH + 16];

	write_path(&image, "/usr/lib/libc.so.6");
	table_image_path(&image, path, sizeof(path));
	cr_expect_str_eq(path, "/usr/lib/libc.so.6");
	memset(image.path, 0, sizeof(image.path));
	table_image_path(&image, path, sizeof(path));
	cr_expect_str_eq(path, "");
	/* A path that is too long lacks its first components and the leading '/'. */
	memset(image.path, 'x', sizeof(image.path));
	memcpy(image.path, "b\0a", 4);
	image.path[PROFIL_IMAGE_PATH - 1] = '\0';
	image.path_cut = 1;
	table_image_path(&image, path, sizeof(path));
	cr_expect_eq(path[0], 'x');
	cr_expect_str_eq(path + strlen(path) - 4, "/a/b");
}

/* Samples of every kind and outcome, in a table whose images become ready late. */
Test(ctl_table, reads_every_sample_once)
{
	struct table_reader r;
	struct profile *p = profile_new();
	__u64 *samples;
	struct fake f;

	fake_open(&f);
	add_image(&f, 3, PROFIL_IMAGE_FILE, "/nowhere/program")->coarse[0] = 5;
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	cr_assert_eq(table_reader_update(&r), 0);
	cr_assert_eq(p->nobjects, 1);
	cr_expect_str_eq(p->objects[0].path, "/nowhere/program");
	add_image(&f, 9, PROFIL_IMAGE_ANON, NULL)->base = 0x7f0000000000;
	add_image(&f, 16, PROFIL_IMAGE_VDSO, NULL);
	add_group(&f, 64, 77, "worker");
	add_place(&f, 0, 0, profil_place(0, 3, 0x1000), 10);
	add_place(&f, 0, 1, profil_place(64, 3, 0x1000), 20);
	add_place(&f, 63, 0, profil_place(64, 9, 0x42), 30);
	add_place(&f, 63, 1, profil_place(64, 3, 0x1010) | PROFIL_PLACE_FOLDED, 7);
	add_place(&f, 63, 2, profil_place(0, 5, 0x1000), 2); /* image 5 was never completed */
	f.head->unmatched = 3;
	f.head->lost = 1;
	f.head->image_full = 4;
	f.head->secret = 6;
	cr_assert_eq(table_reader_read(&r, p), 0);
	cr_expect_eq(p->binned, 65);
	cr_expect_eq(p->unmatched, 3);
	cr_expect_eq(p->lost, 7);
	cr_expect_eq(p->total, 75);
	cr_expect_eq(table_total(&r.table), 75);
	cr_expect_eq(p->folded.sum, 7);
	cr_expect_eq(p->secret, 6);
	cr_expect_eq(p->place_full, 5);
	cr_assert_eq(p->nobjects, 3);
	cr_assert_eq(p->ngroups, 2);
	cr_expect_str_eq(p->groups[1].command, "worker");
	samples = profile_group_samples(p);
	cr_expect_eq(samples[0], 15);
	cr_expect_eq(samples[1], 50);
	cr_expect_eq(places_count(&p->places, &(struct place){ .offset = 0x7f0000000042,
							       .object = 1,
							       .width = 1,
							       .group = 1 }),
		     30);
	free(samples);
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
}

Test(ctl_table, looks_up_the_cgroups_of_new_groups_in_one_walk)
{
	struct table_reader r;
	struct profile *p = profile_new();
	struct fake f;

	fake_open(&f);
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	for (__u32 i = 1; i <= 20; i++) {
		f.group[i - 1].cgroup = ~0ull - i; /* no cgroup has this id */
		add_group(&f, i, 100 + i, "worker");
	}
	cr_assert_eq(table_reader_update(&r), 0);
	cr_expect_eq(p->ngroups, 21);
	cr_expect_eq(r.cgroups.walks, 1);
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
}

/*
 * Readings of a table that keeps counting; before each one an image or a group becomes ready late.
 * The differences add up to the table, place by place. Folded samples are counted apart.
 */
Test(ctl_table, differences_of_readings_add_up_to_the_table)
{
	struct profile *names = profile_new(), *all = profile_new(), *p;
	struct places whole = { 0 };
	struct table_seen seen;
	struct table_reader r;
	__u64 total = 0, lost = 0, unmatched = 0, place_full = 0;
	struct fake f;

	fake_open(&f);
	cr_assert_eq(table_reader_open(&r, f.fd, names), 0);
	cr_assert_eq(table_seen_init(&seen, &r.table), 0);
	for (__u32 i = 1; i <= 8; i++) {
		/* Samples in image i + 1 and of group i + 1, which are not ready yet. */
		add_image(&f, i, PROFIL_IMAGE_FILE, "/nowhere/program")->ino = i;
		add_group(&f, i, 100 + i, "worker");
		for (__u32 k = 1; k <= 9; k++) {
			add_place(&f, k, 0, profil_place(0, k, 0x40), f.line[k].count[0] + i);
			add_place(&f, k, 1, profil_place(k, 1, 0x80), f.line[k].count[1] + 2 * i);
			add_place(&f, k, 2, profil_place(k, 1, 0) | PROFIL_PLACE_SUM, 3 * i);
			add_place(&f, k, 3,
				  profil_place(k, 1, 0) | PROFIL_PLACE_SUM | PROFIL_PLACE_FOLDED,
				  i);
		}
		f.image[0].coarse[0] += i;
		f.head->lost += i;
		f.head->unmatched += 2 * i;
		p = profile_borrow(names);
		cr_assert_eq(table_reader_read_since(&r, &seen, p), 0);
		cr_expect_eq(p->total, p->binned + p->lost + p->unmatched);
		cr_assert_eq(places_add_all(&whole, &p->places), 0);
		total += p->total;
		lost += p->lost;
		unmatched += p->unmatched;
		place_full += p->place_full;
		profile_give_back(p);
	}
	add_image(&f, 9, PROFIL_IMAGE_FILE, "/nowhere/program")->ino = 9;
	add_group(&f, 9, 109, "worker");
	p = profile_borrow(names);
	cr_assert_eq(table_reader_read_since(&r, &seen, p), 0);
	cr_assert_eq(places_add_all(&whole, &p->places), 0);
	cr_expect_eq(p->sums.sum, 24, "only what waited for group 9");
	total += p->total;
	profile_give_back(p);
	profile_borrow_again(all, names);
	cr_assert_eq(table_reader_read(&r, all), 0);
	cr_expect_eq(total, all->total);
	cr_expect_eq(total, table_total(&r.table));
	cr_expect_eq(lost, all->lost);
	cr_expect_eq(unmatched, all->unmatched);
	cr_expect_eq(place_full, all->place_full);
	cr_expect_eq(all->sums.sum, 9 * 24);
	cr_expect_eq(whole.n, all->places.n);
	places_each(place, &all->places)
		cr_expect_eq(places_count(&whole, place), place->count);
	places_fini(&whole);
	profile_give_back(all);
	table_seen_fini(&seen);
	table_reader_close(&r);
	profile_free(names);
	fake_close(&f);
}

/* The kernel has counted 3 samples between the reading of the places and that of the groups. */
Test(ctl_table, groups_never_have_more_samples_than_places)
{
	static const __u32 places[] = { 10, 12, 20 }, sums[] = { 13, 15, 20 },
			   seen_sums[] = { 10, 2, 8 };
	struct profile *names = profile_new(), *p;
	struct table_seen seen;
	struct table_reader r;
	struct fake f;

	fake_open(&f);
	add_image(&f, 1, PROFIL_IMAGE_FILE, "/nowhere/program");
	add_group(&f, 1, 101, "worker");
	cr_assert_eq(table_reader_open(&r, f.fd, names), 0);
	cr_assert_eq(table_seen_init(&seen, &r.table), 0);
	for (size_t i = 0; i < 3; i++) {
		add_place(&f, 1, 0, profil_place(1, 1, 0) | PROFIL_PLACE_SUM, sums[i]);
		add_place(&f, 1, 1, profil_place(0, 1, 0x40), places[i]);
		p = profile_borrow(names);
		cr_assert_eq(table_reader_read_since(&r, &seen, p), 0);
		cr_expect_eq(p->sums.sum, seen_sums[i]);
		profile_give_back(p);
		p = profile_borrow(names);
		cr_assert_eq(table_reader_read(&r, p), 0);
		cr_expect_eq(p->sums.sum, sums[i] < places[i] ? sums[i] : places[i]);
		profile_give_back(p);
	}
	table_seen_fini(&seen);
	table_reader_close(&r);
	profile_free(names);
	fake_close(&f);
}

/* Several images of one file, or of one process's memory, are one object. */
Test(ctl_table, merges_images_that_are_one_object)
{
	struct profile *p = profile_new();
	struct table_reader r;
	struct fake f;

	fake_open(&f);
	for (__u32 i = 1; i <= 3; i++) {
		struct profil_image *image = add_image(&f, i, PROFIL_IMAGE_FILE, "/nowhere/lib.so");

		image->ino = i; /* a file that was installed again has another inode */
		image->build_id_bytes = 20;
		image->build_id[0] = i == 3;
	}
	add_image(&f, 4, PROFIL_IMAGE_ANON, NULL)->tgid = 1;
	add_image(&f, 5, PROFIL_IMAGE_ANON, NULL)->tgid = 1;
	add_image(&f, 6, PROFIL_IMAGE_ANON, NULL)->tgid = 2;
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	cr_assert_eq(table_reader_update(&r), 0);
	cr_expect_eq(p->nobjects, 4);
	cr_expect_eq(r.object[1], r.object[2]);
	cr_expect_neq(r.object[1], r.object[3], "another build");
	cr_expect_eq(r.object[4], r.object[5]);
	cr_expect_neq(r.object[4], r.object[6]);
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
}

/* A new build at the path of the old one can have its inode number. */
Test(ctl_table, keeps_two_builds_with_one_inode_apart)
{
	struct profile *p = profile_new();
	struct table_reader r;
	struct fake f;

	fake_open(&f);
	for (__u32 i = 1; i <= 3; i++) {
		struct profil_image *image =
			add_image(&f, i, PROFIL_IMAGE_FILE, "/nowhere/program");

		image->ino = 4711;
		image->generation = i;
		image->build_id_bytes = i == 3 ? 0 : 20;
		image->build_id[0] = (__u8)i;
	}
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	cr_assert_eq(table_reader_update(&r), 0);
	cr_expect_eq(p->nobjects, 2);
	cr_expect_neq(r.object[1], r.object[2]);
	cr_expect_eq(r.object[1], r.object[3], "without a build id, the inode counts");
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
}

/* Writes the perf map of @pid; the caller removes it. */
static void write_map(char *path, size_t bytes, pid_t pid)
{
	int fd;

	snprintf(path, bytes, "/tmp/perf-%d.map", (int)pid);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0);
	close(fd);
}

Test(ctl_table, looks_for_a_late_perf_map_at_each_reading)
{
	struct profile *p = profile_new();
	struct table_reader r;
	char path[64];
	struct fake f;

	fake_open(&f);
	add_image(&f, 1, PROFIL_IMAGE_ANON, NULL);
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	cr_assert_eq(table_reader_update(&r), 0);
	cr_assert_eq(p->nobjects, 1);
	write_map(path, sizeof(path), getpid());
	cr_expect_eq(table_reader_update(&r), 0);
	cr_expect_lt(p->objects[0].fd, 0, "an update looks once a second only");
	cr_expect_eq(table_reader_read(&r, p), 0);
	cr_expect_geq(p->objects[0].fd, 0);
	unlink(path);
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
}

/* Its map is looked for once more after its end, and then no longer: the pid is not its own. */
Test(ctl_table, does_not_look_for_the_perf_map_of_an_ended_process)
{
	struct profile *p = profile_new();
	struct table_reader r;
	char path[64];
	struct fake f;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	fake_open(&f);
	add_image(&f, 1, PROFIL_IMAGE_ANON, NULL)->tgid = (__u32)pid;
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	cr_assert_eq(table_reader_read(&r, p), 0);
	cr_assert_eq(p->nobjects, 1);
	write_map(path, sizeof(path), pid);
	cr_expect_eq(table_reader_read(&r, p), 0);
	cr_expect_lt(p->objects[0].fd, 0);
	unlink(path);
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
}

/* Maps a copy of "a" that belongs to @owner. Its image is opened through the mapping. */
static void add_mapped(struct fake *f, __u32 index, uid_t owner)
{
	struct profil_image *image = add_image(f, index, PROFIL_IMAGE_FILE, "/nowhere/lib.so");
	char path[128];
	void *map;
	int fd;

	snprintf(path, sizeof(path), "cp a copy%u", index);
	build_dir_run(path);
	snprintf(path, sizeof(path), "%s/copy%u", build_dir, index);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(fd >= 0 && fchown(fd, owner, owner) == 0);
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(map, MAP_FAILED);
	close(fd);
	image->tgid = (__u32)getpid();
	image->start = (__u64)(unsigned long)map;
	image->end = image->start + 4096;
	image->ino = index;
	image->build_id_bytes = 8;
	memcpy(image->build_id, "\1\43\105\147\211\253\315\357", 8);
}

Test(ctl_table, keeps_files_of_several_owners_apart)
{
	struct profile *p = profile_new();
	struct table_reader r;
	struct fake f;

	if (geteuid())
		cr_skip_test("needs root");
	build_dir_open("int main(void) { return 0; }\n", "");
	build_dir_run("gcc -Wl,--build-id=0x0123456789abcdef -o a a.c");
	fake_open(&f);
	add_mapped(&f, 1, 65534);
	add_mapped(&f, 2, 0);
	add_mapped(&f, 3, 0);
	add_mapped(&f, 4, 65534);
	add_mapped(&f, 5, 0);
	f.image[4].start = 0; /* cannot be opened any more */
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	cr_assert_eq(table_reader_update(&r), 0);
	cr_expect_eq(p->nobjects, 2);
	cr_expect_neq(r.object[1], r.object[2], "another user's file has the same build id");
	cr_expect_eq(r.object[2], r.object[3]);
	cr_expect_eq(r.object[1], r.object[4]);
	cr_expect_eq(r.object[2], r.object[5]);
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
	build_dir_close();
}

/* A profile has no absolute addresses of the kernel. */
Test(ctl_table, places_in_the_kernel_are_relative_to_its_text)
{
	struct profile *p = profile_new();
	struct table_reader r;
	struct fake f;

	fake_open(&f);
	add_image(&f, 1, PROFIL_IMAGE_KERNEL, NULL)->base = KERNEL_BASE;
	add_place(&f, 0, 0, profil_place(0, 1, 0x81000040), 3);
	add_place(&f, 0, 1, profil_place(0, 1, 0), 2);
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	r.kernel_text = KERNEL_BASE + 0x81000000;
	cr_assert_eq(table_reader_read(&r, p), 0);
	cr_expect_eq(p->objects[0].kind, OBJECT_KERNEL);
	cr_expect_eq(places_count(&p->places, &(struct place){ .offset = 0x40, .width = 1 }), 3);
	cr_expect_eq(places_count(&p->places, &(struct place){ .width = 0 }), 2);
	cr_expect_eq(profile_kernel_samples(p), 5);
	profile_clear_places(p);
	r.kernel_text = 0;
	cr_assert_eq(table_reader_read(&r, p), 0);
	cr_expect_eq(places_count(&p->places, &(struct place){ .width = 0 }), 5);
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
}

/* The image of this test's own program. */
static void describe_self(struct profil_image *image, char *path, size_t bytes)
{
	ssize_t n = readlink("/proc/self/exe", path, bytes - 1);
	struct stat st;

	cr_assert_gt(n, 0);
	path[n] = '\0';
	cr_assert_eq(stat(path, &st), 0);
	*image = (struct profil_image){ .ino = st.st_ino,
					.dev = (__u32)major(st.st_dev) << 20 | minor(st.st_dev) };
}

/* As far as the owner goes: the path can lead to another user's file meanwhile. */
Test(ctl_table, reopens_a_file_that_was_released)
{
	struct profile *p = profile_new();
	struct table_reader r;
	char path[PROFIL_IMAGE_PATH];
	struct profil_image *image, self;
	struct fake f;

	fake_open(&f);
	describe_self(&self, path, sizeof(path));
	image = add_image(&f, 1, PROFIL_IMAGE_FILE, path);
	image->ino = self.ino;
	image->dev = self.dev;
	cr_assert_eq(table_reader_open(&r, f.fd, p), 0);
	cr_assert_eq(table_reader_update(&r), 0);
	cr_assert_geq(p->objects[0].fd, 0);
	symbolize_cache_renew(&(struct symbolize_cache){ 0 }, p, 1);
	cr_assert_lt(p->objects[0].fd, 0);
	table_reader_reopen(&r, 0);
	cr_expect_geq(p->objects[0].fd, 0);
	cr_expect_eq(p->objects[0].segments.n > 0, true);
	symbolize_cache_renew(&(struct symbolize_cache){ 0 }, p, 1);
	p->objects[0].owner++;
	table_reader_reopen(&r, 0);
	cr_expect_lt(p->objects[0].fd, 0);
	table_reader_close(&r);
	profile_free(p);
	fake_close(&f);
}

Test(ctl_table, opens_only_the_file_that_was_executed)
{
	struct profil_image image;
	char path[PROFIL_IMAGE_PATH];
	int fd;

	describe_self(&image, path, sizeof(path));
	fd = image_file_open(&image, path);
	cr_expect_geq(fd, 0);
	close(fd);
	image.ino++;
	cr_expect_lt(image_file_open(&image, path), 0, "another inode");
	image.ino--;
	image.build_id_bytes = 20;
	cr_expect_lt(image_file_open(&image, path), 0, "another build id");
	cr_expect_lt(image_file_open(&image, "/dev/null"), 0);
	cr_expect_lt(image_file_open(&image, ""), 0);
}
