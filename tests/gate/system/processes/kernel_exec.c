/* kernel_exec.c - exec ends a profile: the new image gets no count, no signal and no write */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/users.h"

DAEMON_SUITE(kernel_exec, "--rate", TICKS_RATE, "--user-rate", "10000");

/* A run of tests/programs/image.c, and its output. */
struct image {
	pid_t pid;
	FILE *says;
	int stay; /* it runs until this is closed */
	unsigned long buffer[2], loop[2];
	unsigned int ticks;
};

/* Runs in the child: never returns. */
static void become(const char *program, const char *how, int in, int out)
{
	const char *build = getenv("BUILD");
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/programs/%s", build ? build : "build", program);
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execl(path, path, how, (char *)NULL);
	_exit(127);
}

static void image_run(struct image *im, const char *program, const char *how)
{
	int in[2], out[2];

	memset(im, 0, sizeof(*im));
	cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	im->pid = fork();
	cr_assert(im->pid >= 0, "fork: %s", strerror(errno));
	if (im->pid == 0)
		become(program, how, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	im->stay = in[1];
	im->says = fdopen(out[0], "r");
	cr_assert(im->says && fscanf(im->says, "before: buffer %lx loop %lx", &im->buffer[0],
				     &im->loop[0]) == 2,
		  "%s %s was not profiled", program, how);
}

/* Returns the wait status. */
static int image_end(struct image *im)
{
	int status;

	close(im->stay);
	cr_assert_eq(waitpid(im->pid, &status, 0), im->pid);
	fclose(im->says);
	return status;
}

/* The new image lies where the old one did, so it would see a write meant for the old one. */
static void new_image_is_left_alone(const char *how)
{
	struct profil_msg_profile p;
	struct image im;
	int listed, status;

	image_run(&im, "image.linked", how);
	cr_assert_eq(fscanf(im.says, " after: buffer %lx loop %lx ticks %u", &im.buffer[1],
			    &im.loop[1], &im.ticks),
		     3, "the new image did not finish");
	listed = ticks_list(&d, im.pid, &p);
	status = image_end(&im);
	cr_expect_eq(im.buffer[0], im.buffer[1], "the images' buffers are not at one address");
	cr_expect_eq(im.loop[0], im.loop[1], "the images' loops are not at one address");
	cr_expect_eq(im.ticks, 0, "%u ticks in the new image's memory", im.ticks);
	cr_expect_eq(status, 0, "it ended with wait status 0x%x", status);
	/* Only a process that forks and waits is still the profiled image. */
	cr_expect_eq(listed, strcmp(how, "exec") && strcmp(how, "thread"));
}

Test(kernel_exec, ends_the_profile_of_the_process)
{
	new_image_is_left_alone("exec");
}

Test(kernel_exec, in_another_thread_ends_the_profile_of_the_process)
{
	new_image_is_left_alone("thread");
}

Test(kernel_exec, of_a_fork_child_ends_the_childs_profile)
{
	new_image_is_left_alone("fork");
}

Test(kernel_exec, of_a_vfork_child_leaves_the_new_image_alone)
{
	new_image_is_left_alone("vfork");
}

Test(kernel_exec, of_a_spawned_program_leaves_the_new_image_alone)
{
	new_image_is_left_alone("spawn");
}

/* For comparison: libc's own profil() kills the new image by SIGPROF. */
Test(kernel_exec, libcs_own_profil_kills_the_new_image)
{
	struct image im;
	int status;

	image_run(&im, "image", "exec");
	cr_expect_neq(fscanf(im.says, " after: buffer %lx loop %lx ticks %u", &im.buffer[1],
			     &im.loop[1], &im.ticks),
		      3, "the new image kept running");
	status = image_end(&im);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF,
		  "it ended with wait status 0x%x, not by SIGPROF", status);
}

/* --- addresses of the new image --------------------------------------------------------------- */

#define USER 60001
#define ENOUGH_NOWHERE 50
#define MOST_EXECS 20000

/* The file offset of the dynamic linker's entry: the first pc of nearly every new image. */
static uint64_t linker_entry(void)
{
	const ElfW(Ehdr) *e = (const void *)getauxval(AT_BASE);
	const ElfW(Phdr) *p = (const void *)((const char *)e + e->e_phoff);

	for (int i = 0; i < e->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD && e->e_entry - p[i].p_vaddr < p[i].p_filesz)
			return e->e_entry - p[i].p_vaddr + p[i].p_offset;
	}
	return 0;
}

static int is_at_offset(const void *offset, uint64_t key)
{
	return !(key & PROFIL_PLACE_SUM) && profil_place_offset(key) == *(const uint64_t *)offset;
}

/* Samples in the kernel for which the table has no user pc. */
static uint64_t count_nowhere(const struct observer *o)
{
	uint64_t kernel = 0;

	for (uint32_t i = 1; i <= o->table->images; i++) {
		const struct profil_image *image = observer_image(o, i);

		if (image && image->kind == PROFIL_IMAGE_KERNEL)
			kernel += observer_count(o, i, 0);
	}
	return kernel - observer_count(o, 0, PROFIL_PLACE_FOLDED);
}

/* Observes itself and its children, which exec, until enough samples have hit an exec. */
static int exec_and_observe(unsigned int unused)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, 1000000);
	uint64_t entry = linker_entry();
	struct observer o;

	ask.flags = PROFIL_OBSERVE_INHERIT;
	if (!entry || observer_open(&o, &d, &ask) || observer_add(&o, getpid()))
		return 1;
	for (int i = 0; i < MOST_EXECS && count_nowhere(&o) < ENOUGH_NOWHERE; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	if (count_nowhere(&o) < ENOUGH_NOWHERE)
		return 2;
	return observer_count_by(&o, is_at_offset, &entry) ? 3 : 0;
}

/*
 * At the end of execve() the thread already has the new image's first pc, which would disclose the
 * address of an image that the user may not read.
 */
Test(kernel_exec, place_of_the_new_image_is_hidden_from_users)
{
	users_expect_end(users_run(USER, exec_and_observe, 0), 0,
			 "the observer (2: too few samples between images, 3: one at the new "
			 "image's entry)");
}
