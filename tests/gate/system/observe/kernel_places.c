/* kernel_places.c - the image of a sample: deleted, replaced and memory files, mounts, compiled
 * code
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/file_copies.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observed.h"
#include "tests/lib/observer.h"

#define SPELL_NS \
	(100 * TICKS_PERIOD_NS) /* no more than TICKS_TOLERANCE of its samples may be missing */

DAEMON_SUITE(kernel_places, "--rate", TICKS_RATE);

/* --- files ------------------------------------------------------------------------------------ */

static const char *in_dir(const char *name)
{
	return daemon_file(&d, name);
}

static void work_in_fd(int fd)
{
	void *at = copy_map(fd);

	if (!at)
		_exit(1);
	copy_work(at, SPELL_NS);
}

static void work_in_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		_exit(2);
	work_in_fd(fd);
}

static uint32_t expect_file(const struct observer *o, const struct copy_expected *e)
{
	return copy_expect(o, e, 0);
}

/* The file is deleted before its first sample. */
static void work_in_deleted(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || unlink(path) < 0)
		_exit(2);
	work_in_fd(fd);
}

Test(kernel_places, names_deleted_file)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct observer o;

	copy_self(in_dir("gone.so"), 0xaa);
	observer_must_open(&o, &d, &ask);
	observer_run(&o, work_in_deleted, in_dir("gone.so"));
	observer_check(&o);
	cr_expect_eq(o.table->unmatched + o.table->lost, 0);
	expect_file(&o, &(struct copy_expected){ "gone.so", 0xaa, 1 });
	observer_close(&o);
}

/* Executes a copy of the shell whose file is deleted before the exec. */
static void exec_deleted(const char *path)
{
	char script[] = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
	char name[] = "sh", option[] = "-c", *argv[] = { name, option, script, NULL };
	char *env[] = { NULL };
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || unlink(path) < 0)
		_exit(2);
	fexecve(fd, argv, env);
	_exit(3);
}

Test(kernel_places, names_deleted_executable)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	const struct profil_image *image;
	struct observer o;
	char command[1200];
	uint32_t n;

	snprintf(command, sizeof(command), "cp -L /bin/sh %s", in_dir("ghost"));
	cr_assert_eq(system(command), 0);
	observer_must_open(&o, &d, &ask);
	observer_run(&o, exec_deleted, in_dir("ghost"));
	observer_check(&o);
	n = observer_find(&o, PROFIL_IMAGE_FILE, "ghost");
	cr_assert(n, "no image of the program");
	image = observer_image(&o, n);
	cr_expect(image->deleted);
	cr_expect_str_eq(observer_path(image), in_dir("ghost"));
	expect_build_id(image, "/bin/sh");
	cr_expect_gt(observer_count(&o, n, 0), 0);
	cr_expect_eq(o.table->unmatched, 0);
	observer_close(&o);
}

Test(kernel_places, distinguishes_replaced_file_from_its_predecessor)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct observer o;

	observer_must_open(&o, &d, &ask);
	copy_self(in_dir("lib.so"), 0x01);
	observer_run(&o, work_in_file, in_dir("lib.so"));
	copy_self(in_dir("new"), 0x02);
	cr_assert_eq(rename(in_dir("new"), in_dir("lib.so")), 0);
	observer_run(&o, work_in_file, in_dir("lib.so"));
	observer_check(&o);
	expect_file(&o, &(struct copy_expected){ "lib.so", 0x01, 0 });
	expect_file(&o, &(struct copy_expected){ "lib.so", 0x02, 0 });
	observer_close(&o);
}

static void work_in_memfd(const char *from)
{
	int fd = memfd_create("compiled", MFD_CLOEXEC), file = open(from, O_RDONLY);
	char block[65536];
	ssize_t n;

	while (fd >= 0 && file >= 0 && (n = read(file, block, sizeof(block))) > 0) {
		if (write(fd, block, (size_t)n) != n)
			_exit(2);
	}
	work_in_fd(fd);
}

Test(kernel_places, names_file_in_memory)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct observer o;

	copy_self(in_dir("image"), 0x03);
	observer_must_open(&o, &d, &ask);
	observer_run(&o, work_in_memfd, in_dir("image"));
	observer_check(&o);
	expect_file(&o, &(struct copy_expected){ "memfd:compiled", 0x03, 1 });
	observer_close(&o);
}

/* --- mounts ----------------------------------------------------------------------------------- */

/* In a mount namespace of its own, @from is mounted over the daemon's "app". */
static void work_behind_bind_mount(const char *from)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0 ||
	    mount(from, in_dir("app"), NULL, MS_BIND, NULL) < 0)
		_exit(3);
	work_in_file(in_dir("app"));
}

Test(kernel_places, distinguishes_files_of_one_path_in_two_mount_namespaces)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	const struct profil_image *a, *b;
	struct observer o;
	struct stat own;

	copy_self(in_dir("app"), 0x10);
	cr_assert(!mkdir(in_dir("one"), 0755) && !mkdir(in_dir("two"), 0755));
	copy_self(in_dir("one/a"), 0x11);
	copy_self(in_dir("two/b"), 0x12);
	observer_must_open(&o, &d, &ask);
	observer_run(&o, work_behind_bind_mount, in_dir("one/a"));
	observer_run(&o, work_behind_bind_mount, in_dir("two/b"));
	observer_check(&o);
	a = observer_image(&o, expect_file(&o, &(struct copy_expected){ "app", 0x11, 0 }));
	b = observer_image(&o, expect_file(&o, &(struct copy_expected){ "app", 0x12, 0 }));
	cr_expect_str_eq(observer_path(a), in_dir("app"));
	cr_expect_str_eq(observer_path(b), in_dir("app"));
	cr_assert_eq(stat("/proc/self/ns/mnt", &own), 0);
	cr_expect(a->mount_ns && a->mount_ns != own.st_ino);
	cr_expect(b->mount_ns && b->mount_ns != own.st_ino);
	observer_close(&o);
}

/* As two containers of one image: each has an overlay of its own over "lower". */
static void work_in_overlay(const char *name)
{
	char options[2048];

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0 ||
	    mount("none", in_dir(name), "tmpfs", 0, NULL) < 0 || chdir(in_dir(name)) < 0 ||
	    mkdir("upper", 0755) < 0 || mkdir("work", 0755) < 0)
		_exit(3);
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=upper,workdir=work",
		 in_dir("lower"));
	if (mount("none", in_dir("root"), "overlay", 0, options) < 0)
		_exit(4);
	work_in_file(in_dir("root/bin/app"));
}

static int has_overlay(void)
{
	char line[256];
	FILE *f = fopen("/proc/filesystems", "re");
	int found = 0;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, "overlay") != NULL;
	if (f)
		fclose(f);
	return found;
}

Test(kernel_places, identifies_file_that_two_overlays_share)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	const char *dirs[] = { "lower", "root", "first", "second" };
	const struct profil_image *image;
	struct observer o;

	if (!has_overlay())
		cr_skip_test("this kernel has no overlayfs, or has not loaded it");
	/* Of an overlay over another one, a mapping has the path in the lower one only. */
	cr_assert_eq(unshare(CLONE_NEWNS), 0);
	cr_assert_eq(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL), 0);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		cr_assert_eq(mkdir(in_dir(dirs[i]), 0755), 0);
	cr_assert_eq(mount("none", in_dir("lower"), "tmpfs", 0, NULL), 0);
	cr_assert_eq(mkdir(in_dir("lower/bin"), 0755), 0);
	copy_self(in_dir("lower/bin/app"), 0x20);
	observer_must_open(&o, &d, &ask);
	observer_run(&o, work_in_overlay, "first");
	observer_run(&o, work_in_overlay, "second");
	observer_check(&o);
	image = observer_image(&o, expect_file(&o, &(struct copy_expected){ "app", 0x20, 0 }));
	cr_expect_gt(observer_count(&o, observer_find(&o, PROFIL_IMAGE_FILE, "app"), 0), 0);
	cr_expect_str_eq(observer_path(image), in_dir("root/bin/app"));
	cr_expect_eq(umount2(in_dir("lower"), MNT_DETACH), 0);
	observer_close(&o);
}

/* --- code in no file -------------------------------------------------------------------------- */

static void read_clock(const char *unused)
{
	uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + SPELL_NS;

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (int i = 0; i < 10000; i++)
			cpu_ns(CLOCK_MONOTONIC_COARSE);
	}
}

Test(kernel_places, counts_vdso)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	struct observer o;
	uint32_t vdso;

	observer_must_open(&o, &d, &ask);
	observer_run(&o, read_clock, NULL);
	observer_check(&o);
	cr_expect_eq(o.table->unmatched, 0);
	vdso = observer_find(&o, PROFIL_IMAGE_VDSO, NULL);
	cr_assert(vdso, "no sample in the vdso");
	cr_expect_gt(observer_count(&o, vdso, 0), 0);
	observer_close(&o);
}

static void work_in_memory(const char *unused)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	if (at == MAP_FAILED)
		_exit(3);
	memcpy(at, loops, LOOP_BYTES);
	__builtin___clear_cache(at, (char *)at + LOOP_BYTES);
	copy_work(at, SPELL_NS);
}

Test(kernel_places, counts_compiled_code_by_process)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct child c[2] = { child_fork(work_in_memory, NULL), child_fork(work_in_memory, NULL) };
	unsigned int found = 0;
	struct observer o;

	observer_must_open(&o, &d, &ask);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(observer_add(&o, c[i].pid), 0);
		child_run(&c[i]);
	}
	observer_check(&o);
	cr_expect_eq(o.table->unmatched, 0);
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *m = observer_image(&o, i);

		if (!m || m->kind != PROFIL_IMAGE_ANON)
			continue;
		found += (m->tgid == (uint32_t)c[0].pid) + 2 * (m->tgid == (uint32_t)c[1].pid);
		cr_expect_gt(observer_count(&o, i, 0), 0);
	}
	cr_expect_eq(found, 3, "not exactly one image of each process");
	observer_close(&o);
}

/* --- mappings that change --------------------------------------------------------------------- */

Test(kernel_places, finds_images_while_threads_map_and_unmap)
{
	struct observer o;

	copies_storm(&o, &d, 0, 0);
	observer_close(&o);
}

Test(kernel_places, counts_files_that_take_turns_at_one_address)
{
	uint64_t samples[2];

	copies_in_turn(&d, 0, 0, samples);
}
