/* kernel_exec.c - exec ends a profile: the new image gets no count, no signal and no write */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/scope.h"
#include "kernel_ticks.h"

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_exec, .init = start, .fini = stop);

/* tests/programs/image.c, and what it says. */
struct image {
	pid_t pid;
	FILE *says;
	int stay; /* it stays until this is closed */
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

/* The new image is where the old one was, so whatever still came to that would be seen. */
static void new_image_is_left_alone(const char *how)
{
	struct profil_msg_profile p;
	struct image im;
	int listed, status;

	image_run(&im, "image.linked", how);
	cr_assert_eq(fscanf(im.says, " after: buffer %lx loop %lx ticks %u", &im.buffer[1],
			    &im.loop[1], &im.ticks),
		     3, "the new image did not come to its end");
	listed = ticks_list(&d, im.pid, &p);
	status = image_end(&im);
	cr_expect_eq(im.buffer[0], im.buffer[1], "the images' buffers are not at one address");
	cr_expect_eq(im.loop[0], im.loop[1], "the images' loops are not at one address");
	cr_expect_eq(im.ticks, 0, "%u ticks in the new image's memory", im.ticks);
	cr_expect_eq(status, 0, "it ended with wait status 0x%x", status);
	/* Only who forks and waits still is what was profiled. */
	cr_expect_eq(listed, strcmp(how, "exec") && strcmp(how, "thread"));
}

Test(kernel_exec, of_the_process_itself)
{
	new_image_is_left_alone("exec");
}

Test(kernel_exec, of_another_thread_than_the_leader)
{
	new_image_is_left_alone("thread");
}

Test(kernel_exec, of_a_fork_child)
{
	new_image_is_left_alone("fork");
}

Test(kernel_exec, of_a_vfork_child)
{
	new_image_is_left_alone("vfork");
}

Test(kernel_exec, of_what_is_spawned)
{
	new_image_is_left_alone("spawn");
}

/* Beside it: what libc's own profil() does to the new image. */
Test(kernel_exec, libcs_own_profil_kills_the_new_image)
{
	struct image im;
	int status;

	image_run(&im, "image", "exec");
	cr_expect_neq(fscanf(im.says, " after: buffer %lx loop %lx ticks %u", &im.buffer[1],
			     &im.loop[1], &im.ticks),
		      3, "the new image lived on");
	status = image_end(&im);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF,
		  "it ended with wait status 0x%x, not by SIGPROF", status);
}
