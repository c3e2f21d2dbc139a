/* spool.c - times on the command line, sums of profiles, and the directory of a spool */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/merge.h"
#include "profilctl/spool/spool_dir.h"
#include "base/gzip.h"
#include "profilctl/util/time_words.h"

/* 2026-11-22 09:00:00 in Berlin, in winter time */
#define NOW 1795334400

static void in_berlin(void)
{
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
}

static const char *read_time(const char *words, const time_t *after)
{
	static char text[64];
	time_t t;

	if (time_parse(&t, words, NOW, after) < 0)
		return "no time";
	return time_text(text, sizeof(text), t);
}

Test(ctl_spool, reads_times_as_people_write_them, .init = in_berlin)
{
	static const struct {
		const char *words, *time;
	} times[] = {
		{ "03:00", "2026-11-22 03:00:00" },
		{ "03:00:05", "2026-11-22 03:00:05" },
		{ "23:50", "2026-11-21 23:50:00" }, /* the last one */
		{ "today", "2026-11-22 00:00:00" },
		{ "yesterday", "2026-11-21 00:00:00" },
		{ "yesterday 03:12", "2026-11-21 03:12:00" },
		{ "2026-10-24 12:00", "2026-10-24 12:00:00" }, /* summer time */
		{ "2026-10-24T12:00:01", "2026-10-24 12:00:01" },
		{ "2026-10-24 12:00 UTC", "2026-10-24 14:00:00" },
		{ "2026-11-22T07:00:00Z", "2026-11-22 08:00:00" },
		{ "2026-11-01", "2026-11-01 00:00:00" },
		{ "-1h", "2026-11-22 08:00:00" },
		{ "-1h 30min", "2026-11-22 07:30:00" },
		{ "2d ago", "2026-11-20 09:00:00" },
		{ "now", "2026-11-22 09:00:00" },
		{ "@1795334400", "2026-11-22 09:00:00" },
	};
	static const char *const wrong[] = { "",	   "3",	      "25:00", "03:00x",   "-1y",
					     "2026-13-01", "morning", "ago",   "@",	   "@1x",
					     "yesterdays", "-",	      "../..", "03:00 UTC" };

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		cr_expect_str_eq(read_time(times[i].words, NULL), times[i].time, "%s",
				 times[i].words);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect_str_eq(read_time(wrong[i], NULL), "no time", "%s", wrong[i]);
}

Test(ctl_spool, the_end_of_a_span_follows_its_beginning, .init = in_berlin)
{
	struct time_span s;
	const char *wrong;
	char text[64];

	cr_assert_eq(time_span_parse(&s, "23:50", "00:10", NOW, &wrong), 0);
	cr_expect_str_eq(time_text(text, sizeof(text), s.since), "2026-11-21 23:50:00");
	cr_expect_str_eq(time_text(text, sizeof(text), s.until), "2026-11-22 00:10:00");
	cr_assert_eq(time_span_parse(&s, "08:50", "09:10", NOW, &wrong), 0);
	cr_expect_str_eq(time_text(text, sizeof(text), s.until), "2026-11-22 09:10:00");
	cr_expect_eq(time_span_parse(&s, "-1h", "-2h", NOW, &wrong), -ERANGE);
	cr_expect_eq(time_span_parse(&s, "-1h", "soon", NOW, &wrong), -EINVAL);
	cr_expect_str_eq(wrong, "soon");
	cr_expect(time_span_is(&s, "03:00..03:30", NOW));
	cr_expect_eq(s.until - s.since, 1800);
	cr_expect(time_span_is(&s, "..03:00", NOW));
	cr_expect(time_span_is(&s, "-1h..", NOW));
	cr_expect_not(time_span_is(&s, "../before", NOW));
	cr_expect_not(time_span_is(&s, "..", NOW));
	cr_expect_not(time_span_is(&s, "03:00", NOW));
}

static __u32 add_object(struct profile *p, const char *path, const char *build_id)
{
	__u32 index;

	cr_assert_eq(profile_add_object(p, path, 0, 0, -1, &index), 0);
	strcpy(p->objects[index].build_id, build_id);
	return index;
}

static void add_function(struct profile *p, const char *name, __u32 object, __u64 offset,
			 __u64 samples)
{
	struct function f = {
		.name = strdup(name), .object = object, .offset = offset, .samples = samples
	};

	cr_assert_eq(profile_add_function(p, &f), 0);
	cr_assert_eq(profile_add_place(p, object, offset, 1, samples), 0);
}

/* The profiles list the objects in different orders; one has no sample of an object. */
static struct profile *part(const char *first, const char *second, __u64 samples)
{
	struct profile *p = profile_new();
	struct group g = { .command = strdup(first), .cgroup = strdup("/a") };
	struct place sum = { .count = samples };

	p->command = strdup("machine");
	p->tick_ns = 1000;
	add_object(p, "/bin/idle", "0");
	add_function(p, "f", add_object(p, first, "aa"), 0x100, samples);
	add_function(p, "g", add_object(p, second, "bb"), 0x100, 2 * samples);
	cr_assert_eq(profile_add_group(p, &g, &sum.group), 0);
	sum.object = 1;
	cr_assert_eq(places_add(&p->sums, &sum), 0);
	p->lost = 1;
	p->unmatched = 2;
	p->place_full = samples;
	p->total = p->binned + 3;
	p->duration_ns = 10;
	return p;
}

Test(ctl_spool, the_sum_of_profiles_has_each_object_and_function_once)
{
	struct profile *a = part("/x", "/y", 1), *b = part("/y", "/x", 10);
	struct merge m = { .into = profile_new() };
	struct profile *p = m.into;

	cr_assert_eq(merge_add(&m, a), 0);
	cr_assert_eq(merge_add(&m, b), 0);
	cr_assert_eq(merge_add(&m, a), 0);
	merge_end(&m);
	cr_expect_eq(p->total, 45);
	cr_expect_eq(p->binned, 36);
	cr_expect_eq(p->lost, 3);
	cr_expect_eq(p->unmatched, 6);
	cr_expect_eq(p->place_full, 12);
	cr_expect_eq(p->duration_ns, 30);
	cr_expect_eq(p->nobjects, 4, "the builds of /x and /y in a differ from those in b");
	cr_expect_eq(p->nfunctions, 4);
	cr_expect_eq(p->ngroups, 3);
	cr_expect_eq(p->sums.sum, 12);
	cr_expect_eq(p->functions[0].samples, 20);
	cr_expect_str_eq(p->functions[0].name, "g");
	b->tick_ns = 999;
	cr_expect_eq(merge_add(&m, b), -EDOM);
	cr_expect_eq(m.added, 3);
	profile_free(a);
	profile_free(b);
	profile_free(p);
}

/* Samples of @n processes, from pid @first on. */
static struct profile *of_processes(pid_t first, pid_t n)
{
	struct profile *p = profile_new();
	struct place place = { .width = 1, .count = 1 };

	p->command = strdup("machine");
	p->tick_ns = 1000;
	place.object = add_object(p, "/x", "aa");
	for (pid_t pid = first; pid < first + n; pid++) {
		struct group g = { .command = strdup("x"), .pid = pid, .start_ns = 7 };

		cr_assert_eq(profile_add_group(p, &g, &place.group), 0);
		cr_assert_eq(places_add(&p->places, &place), 0);
	}
	p->total = p->binned = p->places.sum;
	return p;
}

Test(ctl_spool, the_sum_of_profiles_has_each_group_once)
{
	struct profile *a = of_processes(1, 1000), *b = of_processes(501, 1000);
	struct merge m = { .into = profile_new() };
	__u64 *samples;

	cr_assert_eq(merge_add(&m, a), 0);
	merge_end(&m);
	cr_assert_eq(merge_add(&m, b), 0);
	cr_assert_eq(merge_add(&m, a), 0);
	merge_end(&m);
	cr_assert_eq(m.into->ngroups, 1 + 1500);
	samples = profile_group_samples(m.into);
	for (size_t i = 1; i <= 1500; i++) {
		pid_t pid = m.into->groups[i].pid;

		cr_expect_eq(samples[i], pid <= 500 ? 2 : pid <= 1000 ? 3 : 1);
	}
	free(samples);
	profile_free(a);
	profile_free(b);
	profile_free(m.into);
}

/* A profile with a sample of the kernel; "": as written before the kernel had a build id. */
static struct profile *of_kernel(const char *build_id)
{
	struct profile *p = profile_new();

	p->command = strdup("machine");
	p->tick_ns = 1000;
	add_function(p, "schedule", add_object(p, PROFILE_KERNEL, build_id), 0x100, 1);
	return p;
}

Test(ctl_spool, a_kernel_without_a_build_id_is_the_same_object_as_one_with_it)
{
	struct profile *old = of_kernel(""), *now = of_kernel("aa"), *next = of_kernel("bb");
	struct merge m = { .into = profile_new() };

	cr_assert_eq(merge_add(&m, old), 0);
	cr_assert_eq(merge_add(&m, now), 0);
	cr_assert_eq(merge_add(&m, old), 0);
	merge_end(&m);
	cr_expect_eq(m.into->nobjects, 1);
	cr_expect_str_eq(m.into->objects[0].build_id, "aa");
	cr_assert_eq(m.into->nfunctions, 1);
	cr_expect_eq(m.into->functions[0].samples, 3);
	cr_assert_eq(merge_add(&m, next), 0);
	merge_end(&m);
	cr_expect_eq(m.into->nobjects, 2, "another kernel is another object");
	profile_free(old);
	profile_free(now);
	profile_free(next);
	profile_free(m.into);
}

Test(ctl_spool, reads_back_gzipped_bytes)
{
	size_t n = 300000, got, zipped;
	char *bytes = malloc(n), *back = NULL, *file;
	FILE *f = open_memstream(&file, &zipped);

	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i * i >> 3);
	cr_assert_eq(gzip_write(f, bytes, n), 0);
	fclose(f);
	cr_expect(gzip_is(file, zipped));
	cr_assert_eq(gzip_read(&back, &got, file, zipped, 1 << 20), 0);
	cr_expect_eq(got, n);
	cr_expect_eq(memcmp(back, bytes, n), 0);
	free(back);
	back = NULL;
	cr_expect_eq(gzip_read(&back, &got, file, zipped - 1, 1 << 20), -EINVAL, "cut off");
	cr_expect_eq(gzip_read(&back, &got, file, zipped, 100000), -EFBIG);
	file[zipped / 2] ^= 1;
	cr_expect_eq(gzip_read(&back, &got, file, zipped, 1 << 20), -EINVAL, "damaged");
	free(file);
	free(bytes);
}

static size_t entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void put(const char *dir, const char *name)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	cr_assert(f);
	fputs("x", f);
	fclose(f);
}

Test(ctl_spool, gives_unique_names_and_removes_the_oldest)
{
	char path[] = "/tmp/spool-XXXXXX", notes[64];
	struct profile *p = part("/x", "/y", 1);
	struct spool_entry *all;
	struct spool_dir d = { .max_age_s = 1000, .max_bytes = 1 << 30 }, other = { 0 };
	size_t n;

	cr_assert(mkdtemp(path));
	put(path, "notes.txt");
	put(path, "machine-20261122T031200Z-60s.json.gz.4711.0");
	put(path, "machine-20261122T031200Z-60s.2.pb.gz.4711.0");
	put(path, "machine-20231114T221200Z-60s.pb.gz");
	cr_assert_eq(spool_dir_open(&d, path), 0);
	cr_expect_eq(entries(path), 2, "what was not completed is gone");
	cr_expect_eq(spool_dir_open(&other, path), -EBUSY);
	for (int i = 0; i < 4; i++) {
		p->started = 1700000000 + 60 * (i / 2); /* the clock was set back twice */
		p->duration_ns = 60000000000;
		cr_assert_eq(spool_dir_add(&d, p, format_find("pprof")), 0);
		cr_assert_eq(spool_dir_flush(&d), 0);
	}
	cr_assert_eq(spool_files_list(&all, &n, path, false), 0);
	cr_assert_eq(n, 9);
	for (size_t i = 0; i < n; i++)
		cr_expect(spool_files_has(all, n, all[i].name), "%s", all[i].name);
	cr_expect_not(spool_files_has(all, n, "machine-20231114T221320Z-60s.3.json.gz"));
	cr_expect_not(spool_files_has(all, 0, all[0].name));
	cr_expect_str_eq(all[1].name, "machine-20231114T221320Z-60s.2.json.gz");
	cr_expect_str_eq(all[3].name, "machine-20231114T221320Z-60s.json.gz");
	cr_expect_eq(all[3].start, 1700000000);
	cr_expect_eq(all[3].seconds, 60);
	cr_expect(all[3].is_profile);
	cr_expect_not(all[0].is_profile);
	cr_assert_eq(spool_dir_rotate(&d, 1700000000 + 1061), 0);
	cr_expect_eq(entries(path), 5, "those of the first minute were too old");
	d.max_bytes = all[8].bytes;
	cr_assert_eq(spool_dir_rotate(&d, 1700000000), 0);
	cr_expect_eq(entries(path), 2);
	d.max_bytes = 1;
	cr_assert_eq(spool_dir_rotate(&d, 1700000000), 0);
	cr_expect_eq(entries(path), 1, "what is not the spool's stays");
	free(all);
	spool_dir_close(&d);
	profile_free(p);
	snprintf(notes, sizeof(notes), "%s/notes.txt", path);
	cr_expect_eq(unlink(notes), 0);
	cr_expect_eq(rmdir(path), 0, "nothing else is in it");
}

static int write_six_megabytes(FILE *out, const struct profile *p)
{
	for (int i = 0; i < 6 << 20; i++)
		putc('x', out);
	return p->total ? 0 : -EINVAL;
}

Test(ctl_spool, keeps_the_newest_profiles_until_they_can_be_written)
{
	const struct format big = { .name = "big", .write = write_six_megabytes };
	char path[] = "/tmp/spool-XXXXXX";
	struct profile *p = part("/x", "/y", 1);
	struct spool_dir d = { .max_age_s = 1000, .max_bytes = 1 << 30 };
	struct rlimit usual, none = { 0 };
	struct spool_entry *all;
	size_t n;

	cr_assert(mkdtemp(path));
	cr_assert_eq(spool_dir_open(&d, path), 0);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &usual), 0);
	none.rlim_max = usual.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	for (int i = 0; i < 4; i++) {
		p->started = 1700000000 + 60 * i;
		cr_assert_eq(spool_dir_add(&d, p, &big), 0);
		cr_expect_eq(spool_dir_flush(&d), -EFBIG);
		cr_expect_eq(entries(path), 0, "what is not complete leaves no file");
	}
	cr_expect_eq(d.dropped, 2, "16 MiB have room for two");
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &usual), 0);
	cr_expect_eq(spool_dir_flush(&d), 0);
	cr_expect_eq(d.nwaiting, 0);
	cr_assert_eq(spool_files_list(&all, &n, path, false), 0);
	cr_assert_eq(n, 4);
	cr_expect_eq(all[0].start, 1700000120);
	cr_expect_eq(all[3].start, 1700000180);
	for (size_t i = 0; i < n; i++)
		cr_expect_eq(unlinkat(d.fd, all[i].name, 0), 0);
	free(all);
	spool_dir_close(&d);
	profile_free(p);
	cr_expect_eq(rmdir(path), 0);
}
