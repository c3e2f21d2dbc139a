/* places.c - samples of attachments: each in one place, image and group, or in one visible counter
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profil.h"
#include "synthetic.h"
#include "tests/programs/loops.h"
#include "tests/lib/observed.h"
#include "tests/lib/observer.h"

SYNTHETIC_SUITE(synth_places, true);

#define PERIOD_NS 10000000u /* the daemon's usual rate */

/* @n samples of the calling thread, at @user_pc, or at @kernel_pc below it. */
static void give(uint64_t user_pc, uint64_t kernel_pc, uint32_t n)
{
	struct synth_count a = { .user_pc = user_pc,
				 .kernel_pc = kernel_pc,
				 .ns = (uint64_t)PERIOD_NS * n,
				 .clock_ns = PERIOD_NS,
				 .periods = n,
				 .flags = PROFIL_TARGET_TICK,
				 .wide = 1,
				 .user_mode = !kernel_pc };

	SYNTHETIC_RUN(&s, count, &a);
}

static struct profil_msg_observe ask_self(void)
{
	return observer_ask(PROFIL_SCOPE_PROCESSES, PERIOD_NS);
}

static void observe(struct observer *o, const struct profil_msg_observe *ask)
{
	int err = observer_open(o, &d, ask);

	cr_assert(!err, "OBSERVE: %s", strerror(err));
	if (ask->scope != PROFIL_SCOPE_PROCESSES)
		return;
	err = observer_add(o, getpid());
	cr_assert(!err, "ADD: %s", strerror(err));
}

struct span {
	uint64_t from;
	uint64_t bytes;
	uint32_t image;
	uint32_t group; /* 0: any */
};

static int is_in_span(const void *arg, uint64_t key)
{
	const struct span *span = arg;

	return !(key & (PROFIL_PLACE_SUM | PROFIL_PLACE_FOLDED)) &&
	       profil_place_image(key) == span->image &&
	       (!span->group || profil_place_group(key) == span->group) &&
	       profil_place_offset(key) - span->from < span->bytes;
}

/* Samples in loop @n of this program, of @group or of all. */
static uint64_t in_loop(const struct observer *o, unsigned int n, uint32_t group)
{
	struct span span = { .from = observed_offset(loop_at(n)),
			     .bytes = LOOP_BYTES,
			     .image = observer_find(o, PROFIL_IMAGE_FILE, "kernel-tests"),
			     .group = group };

	return observer_count_by(o, is_in_span, &span);
}

/* An address of the kernel's text. */
static uint64_t kernel_text(void)
{
	__cleanup(fclosep) FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char line[256], name[128];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %*c %127s", &address, name) == 2 && !strcmp(name, "_stext"))
			return address + 64;
	}
	cr_assert_fail("/proc/kallsyms has no _stext");
	return 0;
}

/* --- places ----------------------------------------------------------------------------------- */

Test(synth_places, have_each_sample)
{
	struct profil_msg_observe ask = ask_self();
	uint64_t want[LOOPS] = { 0 }, given = 0;
	struct observer o;

	observe(&o, &ask);
	for (int i = 0; i < 2000; i++) {
		unsigned int loop = (unsigned int)rand() % LOOPS, n = 1 + (unsigned int)rand() % 3;

		give(loop_at(loop) + (unsigned int)rand() % LOOP_BYTES, 0, n);
		want[loop] += n;
		given += n;
	}
	for (unsigned int i = 0; i < LOOPS; i++)
		cr_expect_eq(in_loop(&o, i, 0), want[i], "loop %u", i);
	cr_expect_eq(observer_check(&o), given);
	observer_close(&o);
}

Test(synth_places, of_several_targets_of_a_process_have_all_samples_each)
{
	static uint32_t buf[LOOPS];
	struct prof one = { buf, sizeof(buf), loop_at(0), 4 * 65536 / LOOP_BYTES };
	struct profil_msg_observe ask = ask_self();
	struct profil_msg_profile p;
	struct observer o[10]; /* more than a bucket has entries */

	for (int i = 0; i < 10; i++)
		observe(&o[i], &ask);
	cr_assert_eq(sprofil(&one, 1, NULL, PROF_UINT), 0, "%s", strerror(errno));
	cr_expect_gt(s.tables->displaced, 0, "all entries are in the first bucket");
	give(loop_at(1), 0, 5);
	give(loop_at(2) + 1, 0, 7);
	give(8, 0, 3); /* in no mapping */
	for (int i = 0; i < 10; i++) {
		cr_expect_eq(in_loop(&o[i], 1, 0), 5);
		cr_expect_eq(in_loop(&o[i], 2, 0), 7);
		cr_expect_eq(o[i].table->unmatched, 3);
		cr_expect_eq(observer_check(&o[i]), 15);
	}
	cr_assert_eq(profil_sync(), 0);
	synthetic_list(&d, getpid(), &p);
	cr_expect_eq(p.total, 15);
	cr_expect_eq(p.unmatched, 3);
	cr_expect_eq(buf[1], 5);
	cr_expect_eq(buf[2], 7);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	for (int i = 0; i < 10; i++)
		observer_close(&o[i]);
}

/* One sample and two counts: the kernel's pc, and the user's as a FOLDED place. */
Test(synth_places, of_kernel_samples_are_folded_or_left_out)
{
	struct profil_msg_observe ask = ask_self();
	uint64_t text = kernel_text();
	struct observer all, user;

	observe(&all, &ask);
	ask.flags |= PROFIL_OBSERVE_USER_ONLY;
	observe(&user, &ask);
	give(loop_at(4), text, 6);
	give(loop_at(4), 0, 2);
	cr_expect_eq(observer_check(&all), 8);
	cr_expect_eq(observer_count(&all, observer_find(&all, PROFIL_IMAGE_KERNEL, NULL), 0), 6);
	cr_expect_eq(observer_count(&all, 0, PROFIL_PLACE_FOLDED), 6);
	cr_expect_eq(in_loop(&all, 4, 0), 2);
	cr_expect_eq(observer_check(&user), 2);
	cr_expect_eq(observer_count(&user, 0, PROFIL_PLACE_FOLDED), 0);
	observer_close(&all);
	observer_close(&user);
}

/* Many more places than the smallest table has room for. */
Test(synth_places, without_room_are_counted_by_image)
{
	struct profil_msg_observe ask = ask_self();
	const unsigned int pcs = 1 << 16;
	uint64_t given = 0, placed;
	struct observer o;
	char *code;

	code = mmap(NULL, pcs, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(code, MAP_FAILED);
	ask.places = 1024;
	observe(&o, &ask);
	for (unsigned int i = 0; i < pcs; i += 8) {
		give((uintptr_t)code + i, 0, 1 + i % 2);
		given += 1 + i % 2;
	}
	placed = observer_count(&o, 0, 0);
	cr_expect_eq(observer_check(&o), given);
	cr_expect_lt(placed, given, "the table has room for all");
	observer_close(&o);
	munmap(code, pcs);
}

/* Code of the test's own, in a file of its own. It stays mapped, since its range is cached. */
static uintptr_t map_file(unsigned int file)
{
	__cleanup(closep) int fd = -1;
	char name[16];
	void *code;

	snprintf(name, sizeof(name), "code%u", file);
	fd = memfd_create(name, MFD_CLOEXEC);
	cr_assert(fd >= 0 && !ftruncate(fd, 4096));
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert_neq(code, MAP_FAILED);
	return (uintptr_t)code;
}

Test(synth_places, of_images_without_room_are_counted)
{
	struct profil_msg_observe ask = ask_self();
	struct observer o;

	ask.images = 1; /* rounded up to a page */
	observe(&o, &ask);
	for (unsigned int i = 0; i < PROFIL_PAGE_IMAGES + 3; i++)
		give(map_file(i), 0, 5);
	cr_expect_leq(o.table->used_images, PROFIL_PAGE_IMAGES);
	cr_expect_eq(o.table->image_full, (PROFIL_PAGE_IMAGES + 3 - o.table->used_images) * 5ull,
		     "%llu", o.table->image_full);
	cr_expect_eq(observer_check(&o), (PROFIL_PAGE_IMAGES + 3) * 5);
	observer_close(&o);
}

/* The counter of a place has room for this many. */
#define PLACE_TOP 0xf0000000u

Test(synth_places, at_the_top_of_their_counter_are_counted_by_image)
{
	struct profil_msg_observe ask = ask_self();
	struct observer o;

	observe(&o, &ask);
	for (int i = 0; i < 2; i++) /* a place may have a counter in each of two lines */
		give(loop_at(3), 0, PLACE_TOP);
	give(loop_at(3), 0, 0x20000000);
	cr_expect_eq(in_loop(&o, 3, 0) % PLACE_TOP, 0, "%#llx",
		     (unsigned long long)in_loop(&o, 3, 0));
	cr_expect_eq(observer_check(&o), 2ull * PLACE_TOP + 0x20000000);
	observer_close(&o);
}

/* --- groups ----------------------------------------------------------------------------------- */

/* The number of the group of thread @tid. */
static uint32_t group_of(const struct observer *o, pid_t tid)
{
	for (uint32_t i = 1; i <= o->table->groups; i++) {
		const struct profil_group *group = observer_group(o, i);

		if (group && group->tid == (uint32_t)tid)
			return i;
	}
	cr_assert_fail("no group has thread %d", (int)tid);
	return 0;
}

static void *give_in_thread(void *arg)
{
	give(loop_at(5), 0, 9);
	*(pid_t *)arg = gettid();
	return NULL;
}

Test(synth_places, of_threads_are_grouped_by_thread)
{
	struct profil_msg_observe ask = ask_self();
	struct observer o;
	pthread_t thread;
	pid_t tid;

	ask.group_by = PROFIL_GROUP_THREAD;
	observe(&o, &ask);
	give(loop_at(5), 0, 4);
	cr_assert_eq(pthread_create(&thread, NULL, give_in_thread, &tid), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(in_loop(&o, 5, group_of(&o, gettid())), 4);
	cr_expect_eq(in_loop(&o, 5, group_of(&o, tid)), 9);
	cr_expect_eq(observer_check(&o), 13);
	observer_close(&o);
}

Test(synth_places, of_groups_without_room_are_counted)
{
	struct profil_msg_observe ask = ask_self();
	struct observer o;
	pthread_t thread;
	pid_t tid;

	ask.group_by = PROFIL_GROUP_THREAD;
	ask.groups = 1; /* rounded up to a page */
	observe(&o, &ask);
	for (unsigned int i = 0; i < PROFIL_PAGE_GROUPS + 3; i++) {
		cr_assert_eq(pthread_create(&thread, NULL, give_in_thread, &tid), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
	}
	cr_expect_leq(o.table->used_groups, PROFIL_PAGE_GROUPS);
	cr_expect_eq(o.table->group_full, (PROFIL_PAGE_GROUPS + 3 - o.table->used_groups) * 9ull,
		     "%llu", o.table->group_full);
	cr_expect_eq(in_loop(&o, 5, 0), (PROFIL_PAGE_GROUPS + 3) * 9);
	cr_expect_eq(observer_check(&o), (PROFIL_PAGE_GROUPS + 3) * 9);
	observer_close(&o);
}

/* The child follows its parent into the attachment; its samples are of its own process. */
Test(synth_places, of_a_fork_child_are_in_its_group)
{
	struct profil_msg_observe ask = ask_self();
	const struct profil_group *group;
	struct observer o;
	int status;
	pid_t pid;

	ask.group_by = PROFIL_GROUP_PROCESS;
	observe(&o, &ask);
	give(loop_at(6), 0, 4);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		give(loop_at(6), 0, 2);
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	for (uint32_t i = 1; i <= o.table->groups; i++) {
		group = observer_group(&o, i);
		if (!group)
			continue;
		cr_expect(group->tgid == (uint32_t)pid || group->tgid == (uint32_t)getpid());
		cr_expect_eq(in_loop(&o, 6, i), group->tgid == (uint32_t)pid ? 2 : 4);
	}
	cr_expect_eq(o.table->used_groups, 2, "%u groups", o.table->used_groups);
	cr_expect_eq(observer_check(&o), 6);
	observer_close(&o);
}

/* Runs @program in the calling thread, which has run for @ran_ns. */
static void run_at(const struct bpf_program *program, uint64_t ran_ns)
{
	uint64_t args[12] = { ran_ns };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = args, .ctx_size_in = sizeof(args));

	cr_assert_eq(bpf_prog_test_run_opts(bpf_program__fd(program), &run), 0);
}

/* The calling thread, which has run for @ran_ns, executes another program; see synth_execs(). */
static void exec_at(uint64_t ran_ns)
{
	run_at(s.object->progs.synth_execs, ran_ns);
}

/* Forks a child that runs @program at @ran_ns and ends. */
static void child_at(const struct bpf_program *program, uint64_t ran_ns)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (!pid) {
		run_at(program, ran_ns);
		run_at(program, ran_ns); /* charged already */
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
}

/* A child without a sample is a copy of its parent until it is another program. */
Test(synth_places, of_a_child_before_its_exec_are_where_its_parents_are)
{
	struct profil_msg_observe ask = ask_self();
	struct observer o;

	observe(&o, &ask);
	exec_at(0);
	give(loop_at(6), 0, 4);
	child_at(s.object->progs.synth_execs, 3ull * PERIOD_NS);
	cr_expect_eq(in_loop(&o, 6, 0), 4 + 3);
	cr_expect_eq(observer_check(&o), 4 + 3);
	observer_close(&o);
}

/* A child that ends without a sample waits for one of its name, here that of the next child's parent. */
Test(synth_places, of_a_child_that_ends_are_where_others_of_its_name_are)
{
	struct profil_msg_observe ask = ask_self();
	struct observer o;

	observe(&o, &ask);
	exec_at(0);
	give(loop_at(6), 0, 4);
	child_at(s.object->progs.synth_exits, 3ull * PERIOD_NS);
	cr_expect_eq(observer_check(&o), 4);
	child_at(s.object->progs.synth_execs, 2ull * PERIOD_NS);
	cr_expect_eq(in_loop(&o, 6, 0), 4 + 3 + 2);
	cr_expect_eq(observer_check(&o), 4 + 3 + 2);
	observer_close(&o);
}

/* --- shares ----------------------------------------------------------------------------------- */

/* The CPU time of a real process that ends is never a sample of this. */
#define LONG_NS 1000000000u

static void give_long(uint64_t pc)
{
	struct synth_count a = { .user_pc = pc,
				 .ns = LONG_NS,
				 .clock_ns = LONG_NS,
				 .periods = 1,
				 .flags = PROFIL_TARGET_TICK,
				 .wide = 1,
				 .user_mode = 1 };

	SYNTHETIC_RUN(&s, count, &a);
}

/* A process of user @uid has @n samples in loop @loop, each with a name of its own. */
static void give_as(uid_t uid, const char *command, unsigned int n, unsigned int loop)
{
	int status;
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid) {
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert_eq(status, 0);
		return;
	}
	if (setreuid(uid, (uid_t)-1)) /* the other ids keep the right to give samples */
		_exit(1);
	for (unsigned int i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%s%u", command, i);
		prctl(PR_SET_NAME, name);
		give_long(loop_at(loop));
	}
	_exit(0);
}

/* Samples in loop @loop of groups whose command begins with @command. */
static uint64_t in_groups(const struct observer *o, const char *command, unsigned int loop)
{
	uint64_t sum = 0;

	for (uint32_t i = 1; i <= o->table->groups; i++) {
		const struct profil_group *group = observer_group(o, i);

		if (group && !strncmp(group->command, command, strlen(command)))
			sum += in_loop(o, loop, i);
	}
	return sum;
}

/* Three quarters of the table, less what the user and all others have. */
Test(synth_places, of_names_that_a_user_makes_up_leave_room_for_other_users)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_MACHINE, LONG_NS);
	const unsigned int room = PROFIL_PAGE_GROUPS / 4 * 3, first = room / 2,
			   second = (room - first) / 2;
	struct observer o;

	ask.group_by = PROFIL_GROUP_COMMAND;
	ask.groups = 1; /* rounded up to a page */
	observe(&o, &ask);
	give_as(60001, "made", 2 * PROFIL_PAGE_GROUPS, 1);
	cr_expect_eq(in_groups(&o, "made", 1), first);
	cr_expect_eq(o.table->group_full, 2 * PROFIL_PAGE_GROUPS - first);
	give_as(60002, "other", 2, 2);
	cr_expect_eq(in_groups(&o, "other", 2), 2);
	give_as(60002, "other", PROFIL_PAGE_GROUPS, 2);
	cr_expect_eq(o.table->used_groups, first + second);
	give_as(0, "root", 2, 3);
	cr_expect_eq(in_groups(&o, "root", 3), 2);
	cr_expect_eq(observer_check(&o), 2 * PROFIL_PAGE_GROUPS + 2 + PROFIL_PAGE_GROUPS + 2);
	observer_close(&o);
}

Test(synth_places, of_files_that_a_user_makes_up_leave_room_for_other_users)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_MACHINE, LONG_NS);
	const unsigned int files = 2 * PROFIL_PAGE_IMAGES, share = PROFIL_PAGE_IMAGES / 4 * 3 / 2;
	struct observer o;

	ask.images = 1; /* rounded up to a page */
	observe(&o, &ask);
	cr_assert_eq(setreuid(60001, (uid_t)-1), 0);
	for (unsigned int i = 0; i < files; i++)
		give_long(map_file(i));
	cr_assert_eq(setreuid(0, (uid_t)-1), 0);
	cr_expect_eq(o.table->used_images, share);
	cr_expect_eq(o.table->image_full, files - share, "%llu", o.table->image_full);
	cr_expect_eq(observer_check(&o), files);
	give_long(loop_at(1));
	cr_expect_eq(in_loop(&o, 1, 0), 1);
	observer_close(&o);
}

/* --- wide scopes and stacks ------------------------------------------------------------------- */

/* The daemon's tick is disconnected, so no other process of the machine has samples. */
Test(synth_places, of_wide_scopes_have_each_sample)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_MACHINE, PERIOD_NS);
	struct observer machine, user, other;

	observe(&machine, &ask);
	ask.scope = PROFIL_SCOPE_USER;
	ask.uid = getuid();
	observe(&user, &ask);
	ask.uid = 60001;
	observe(&other, &ask);
	give(loop_at(7), 0, 5);
	give(8, 0, 2);
	cr_expect_eq(observer_check(&machine), 7);
	cr_expect_eq(machine.table->unmatched, 2);
	cr_expect_eq(in_loop(&machine, 7, 0), 5);
	cr_expect_eq(observer_check(&user), 7);
	cr_expect_eq(observer_check(&other), 0);
	observer_close(&machine);
	observer_close(&user);
	observer_close(&other);
}

/* total = all nodes + stack_lost; the leaf is the flat profile's place. */
Test(synth_places, of_stacks_add_up_to_the_total)
{
	struct profil_msg_observe ask = ask_self();
	uint64_t sum = 0, leaf = 0;
	struct observer o;
	uint32_t image;

	ask.stack_mode = PROFIL_STACK_FP;
	observe(&o, &ask);
	for (unsigned int i = 0; i < 100; i++)
		give(loop_at(i % LOOPS), 0, 1 + i % 3);
	give(8, 0, 2);
	image = observer_find(&o, PROFIL_IMAGE_FILE, "kernel-tests");
	for (uint32_t i = 0; i < o.table->nodes; i++) {
		const struct profil_node *node = observer_node(&o, PROFIL_STACK_ROOTS + i);

		sum += node->count;
		leaf += profil_place_image(node->place) == image ? node->count : 0;
	}
	cr_expect_eq(observer_check(&o), 199 + 2);
	cr_expect_eq(sum + o.table->stack_lost, 199 + 2, "%llu + %llu", (unsigned long long)sum,
		     o.table->stack_lost);
	cr_expect_eq(leaf, 199, "%llu leaves", (unsigned long long)leaf);
	observer_close(&o);
}
