/* kernel_exec.c - exec ends a profile: the new image gets no count, no signal and no write */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/layout.h"
#include "core/scope.h"
#include "core/wire.h"
#include "kernel_ticks.h"
#include "users.h"

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

/* --- what is told of the new image ------------------------------------------------------- */

#define USER 60001
#define ENOUGH_NOWHERE 50
#define MOST_EXECS 20000

struct told {
	unsigned int ticks, nowhere, elsewhere;
};

static struct told *told; /* shared with the child that counts */

/* Says whether code of this process's, and so of its children's before an exec, is at @pc. */
static int is_ours(__u64 pc)
{
	__cleanup(fclosep) FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[4096], x;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*c%*c%c", &start, &end, &x) == 3 && x == 'x' &&
		    pc >= start && pc < end)
			return 1;
	return 0;
}

static void take_event(const struct profil_msg_event *event)
{
	if (event->kind != PROFIL_EVENT_RAW)
		return;
	told->ticks++;
	if (event->pc == PROFIL_PC_NOWHERE)
		told->nowhere++;
	else if (!is_ours(event->pc))
		told->elsewhere++;
}

static void take_events(int sock)
{
	static union {
		struct profil_msg_events m;
		char bytes[sizeof(struct profil_msg_events) +
			   PROFIL_MSG_EVENT_MAX * sizeof(struct profil_msg_event)];
	} in;
	struct pollfd ready = { .fd = sock, .events = POLLIN };

	while (poll(&ready, 1, 0) == 1 && wire_recv(sock, &in, sizeof(in), NULL, NULL) == 0)
		for (unsigned int i = 0; i < in.m.h.count; i++)
			take_event(&in.m.event[i]);
}

/* Has itself and its children watched, up to their execs, until ticks have met enough of those. */
static int exec_and_watch(unsigned int unused)
{
	int fds[] = { pidfd_open(getpid(), 0), open("/proc/self/maps", O_RDONLY | O_CLOEXEC) };
	struct profil_msg_attach m = { .flags = PROFIL_ATTACH_INHERIT };
	struct profil_msg_hello hello;
	int sock = client_dial(&d, &hello);

	(void)unused;
	wire_header(&m.h, PROFIL_MSG_ATTACH, sizeof(m), 0, 0);
	if (client_try(sock, &m.h, fds, 2) != 0)
		return 1;
	for (int i = 0; i < MOST_EXECS && told->nowhere < ENOUGH_NOWHERE; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(1);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
		take_events(sock);
	}
	return 0;
}

/*
 * At the end of execve() the thread has the new image's first pc already. Of a secret image that
 * would tell where it lies.
 */
Test(kernel_exec, who_is_not_root_is_not_told_where_the_new_image_lies, .timeout = 300)
{
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(told, MAP_FAILED);
	users_expect_end(users_run(USER, exec_and_watch, 0), 0, "who execs");
	cr_expect_geq(told->nowhere, ENOUGH_NOWHERE, "%u of %u ticks came between two images",
		      told->nowhere, told->ticks);
	cr_expect_eq(told->elsewhere, 0, "%u of %u ticks are of the next image", told->elsewhere,
		     told->ticks);
}
