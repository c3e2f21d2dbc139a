/* file_copies.c - copies of this program as files whose code is mapped, executed and observed */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "file_copies.h"
#include "kernel_ticks.h"
#include "observed.h"

void copy_self(const char *path, uint8_t mark)
{
	__cleanup(closep) int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	__cleanup(closep) int to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	uint8_t id[64], *at;
	struct stat st;

	cr_assert(from >= 0 && to >= 0 && fstat(from, &st) == 0, "%s: %s", path, strerror(errno));
	cr_assert(ftruncate(to, st.st_size) == 0);
	at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);
	cr_assert(at != MAP_FAILED);
	cr_assert_eq(pread(from, at, (size_t)st.st_size, 0), st.st_size);
	cr_assert_eq(build_id_of("/proc/self/exe", id), 20, "this program has no SHA-1 build id");
	*(uint8_t *)memmem(at, (size_t)st.st_size, id, 20) = mark;
	munmap(at, (size_t)st.st_size);
}

/* Maps the loops' page from this program's copy @fd, at @where if it is not NULL. */
static void *copy_map_at(void *where, int fd)
{
	void *at = mmap(where, 4096, PROT_READ | PROT_EXEC,
			MAP_PRIVATE | (where ? MAP_FIXED_NOREPLACE : 0), fd,
			(off_t)observed_offset(loop_at(0)));

	return at == MAP_FAILED ? NULL : at;
}

void *copy_map(int fd)
{
	return copy_map_at(NULL, fd);
}

void copy_work(const void *at, uint64_t ns)
{
	uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		((void (*)(unsigned long))(uintptr_t)at)(LOOP_TURNS / 10);
}

uint32_t copy_expect(const struct observer *o, const struct copy_expected *e, uint64_t few)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i <= o->table->images; i++) {
		const struct profil_image *m = observer_image(o, i);

		if (!m || m->kind != PROFIL_IMAGE_FILE || strcmp(m->path, e->name) != 0 ||
		    !m->build_id_bytes || m->build_id[0] != e->mark)
			continue;
		cr_expect(!found, "%s: two images of build id %02x...", e->name, e->mark);
		cr_expect_eq(m->deleted, e->deleted, "%s: deleted: %d", e->name, m->deleted);
		found = i;
	}
	cr_assert(found, "%s: no image of build id %02x...", e->name, e->mark);
	cr_expect_gt(observer_count(o, found, 0), few);
	return found;
}

/* The image of the file @name if it has a sample. The observed process asks, too: it has the table.
 */
static const struct profil_image *sampled(const struct observer *o, const char *name)
{
	uint32_t n = observer_find(o, PROFIL_IMAGE_FILE, name);

	return n && observer_count(o, n, 0) ? observer_image(o, n) : NULL;
}

/* --- a process that maps and unmaps continuously ---------------------------------------------- */

static const struct observer *storm_observer;
static uint64_t storm_ns;
static int storm_fd;

static bool is_loader_sampled(const struct observer *o)
{
	return sampled(o, "ld-linux-x86-64.so.2") || sampled(o, "ld-linux-aarch64.so.1");
}

static bool storm_is_on(void)
{
	uint64_t used = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);

	if (storm_ns)
		return used < storm_ns;
	return used < TICKS_NONE_NS &&
	       !(sampled(storm_observer, "code.so") && is_loader_sampled(storm_observer));
}

static void *map_data(void *arg)
{
	while (storm_is_on()) {
		char *p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			_exit(3);
		p[0] = p[8192] = 1;
		mprotect(p + 4096, 4096, PROT_READ);
		munmap(p, 1 << 16);
	}
	return arg;
}

static void *map_code(void *arg)
{
	while (storm_is_on()) {
		void *at = copy_map(storm_fd);

		copy_work(at, 100000);
		munmap(at, 4096);
	}
	return arg;
}

static void *open_libraries(void *arg)
{
	while (storm_is_on()) {
		void *h = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);

		if (!h)
			_exit(4);
		dlclose(h);
	}
	return arg;
}

static void storm(const char *path)
{
	void *(*const work[])(void *) = { map_data, map_code, open_libraries, map_code };
	pthread_t thread[4];

	storm_fd = open(path, O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&thread[i], NULL, work[i], NULL))
			_exit(5);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

uint64_t copies_storm(struct observer *o, const struct daemon *d, uint64_t ns, uint64_t few)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	const struct profil_image *image;
	uint64_t all;

	storm_ns = ns;
	storm_observer = o;
	copy_self(daemon_file(d, "code.so"), 0x30);
	observer_must_open(o, d, &ask);
	observer_run(o, storm, daemon_file(d, "code.so"));
	all = observer_check(o);
	cr_expect_eq(o->table->image_full + o->table->lost, 0);
	/* The kernel reads a build id only while mmap_lock is free. */
	image = sampled(o, "code.so");
	cr_assert(image, "no sample in code.so");
	if (ns || image->build_id_bytes)
		copy_expect(o, &(struct copy_expected){ "code.so", 0x30, 0 }, few);
	cr_expect(is_loader_sampled(o));
	return all;
}

/* --- files that take turns at one address ----------------------------------------------------- */

#define TURN_NS 3000000u

static const struct observer *turns_observer;
static unsigned int in_turns; /* of each file */
static const char *turning[] = { "one.so", "two.so" };

/* The kernel reads a build id that it could not read again at later samples. */
static bool has_build_id(const char *name)
{
	const struct profil_image *image = sampled(turns_observer, name);

	return image && image->build_id_bytes;
}

static bool is_turn_due(unsigned int done)
{
	if (in_turns)
		return done < 2 * in_turns;
	return cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < TICKS_NONE_NS &&
	       !(has_build_id(turning[0]) && has_build_id(turning[1]));
}

/* Maps both files in turn, as dlclose() and dlopen() of libraries of one size do. */
static void work_in_turn(const char *dir)
{
	/* Far from other mappings, which would take its place in the CPU's cache of ranges. */
	void *where = (void *)0x100000000000;

	for (unsigned int i = 0; is_turn_due(i); i++) {
		char path[600];
		void *at;
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, turning[i % 2]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		at = fd < 0 ? NULL : copy_map_at(where, fd);
		if (!at)
			_exit(6);
		close(fd);
		copy_work(at, TURN_NS);
		munmap(at, 4096);
	}
}

/* Linux 6.1 cannot check that a cached range has the same file. */
static int checks_mappings(void)
{
	struct utsname u;
	int major = 0, minor = 0;

	cr_assert(uname(&u) == 0 && sscanf(u.release, "%d.%d", &major, &minor) == 2);
	return !getenv("PROFIL_TEST_IMAGE_LOOKUP") && (major > 6 || minor > 1);
}

void copies_in_turn(const struct daemon *d, unsigned int turns, uint64_t few, uint64_t samples[2])
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	struct observer o;

	if (!checks_mappings())
		cr_skip_test("the kernel has no bpf_rdonly_cast()");
	in_turns = turns;
	turns_observer = &o;
	copy_self(daemon_file(d, turning[0]), 0x31);
	copy_self(daemon_file(d, turning[1]), 0x32);
	observer_must_open(&o, d, &ask);
	observer_run(&o, work_in_turn, d->dir);
	for (int i = 0; i < 2; i++) {
		struct copy_expected e = { turning[i], (uint8_t)(0x31 + i), 0 };

		samples[i] = observer_count(&o, copy_expect(&o, &e, few), 0);
	}
	observer_close(&o);
}
