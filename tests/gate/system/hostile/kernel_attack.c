/* kernel_attack.c - attacks on other processes through the protocol fail and harm no other client
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/neighbour.h"
#include "tests/lib/users.h"

#define ATTACKER 60001

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&d, NULL, args);
	neighbour_start(&d);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_attack, .init = start, .fini = stop);

/* --- the bare protocol ------------------------------------------------------------------------ */

/* The page of all cookies and buffers of the test, at the same address in every process. */
#define PAGE 4096
#define PAGE_AT 0x200000000000ul

static unsigned char *map_page(int flags)
{
	void *at = mmap((void *)PAGE_AT, PAGE, PROT_READ | PROT_WRITE,
			flags | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	cr_assert_eq(at, (void *)PAGE_AT, "mmap: %s", strerror(errno));
	return at;
}

struct start_one {
	struct profil_msg_start m;
	struct profil_msg_region region;
};

/* A START of one buffer at @addr, whose first counter counts every pc. */
static void start_one(struct start_one *s, unsigned long cookie_addr, unsigned long addr)
{
	*s = (struct start_one){
		.m = { .cookie_addr = cookie_addr, .width = 2, .cap = 65535, .nregions = 1 },
		.region = { .x = { .span = ~0ull, .nbins = 1 }, .addr = addr }
	};
	wire_header(&s->m.h, PROFIL_MSG_START, sizeof(s->m), sizeof(s->region), 1);
}

static int ask_start(int sock, unsigned long cookie_addr, unsigned long addr)
{
	struct start_one s;

	start_one(&s, cookie_addr, addr);
	return client_ask(sock, &s.m.h, NULL);
}

static int ask_self(int sock, unsigned int type, unsigned long cookie_addr)
{
	struct profil_msg_self m = { .cookie_addr = cookie_addr };

	wire_header(&m.h, type, sizeof(m), 0, 0);
	return client_ask(sock, &m.h, NULL);
}

/* Says whether the daemon closes the connection instead of answering. */
static int is_cut_off(int sock, const struct profil_header *h)
{
	struct profil_msg_reply reply;

	return !client_send(sock, h, h->bytes) || client_recv(sock, &reply, sizeof(reply)) == 0;
}

/* --- exec while registering ------------------------------------------------------------------- */

/* The process that starts a profile, one that shares its memory, and the program that it execs. */
static struct exec_attack {
	int sock;
	bool replaces;	   /* a profile that the attacker has from the beginning */
	int in[2], out[2]; /* of the program */
	int hold[2];	   /* the other process lives until this ends */
	int told[2];	   /* it writes the daemon's answer, then its buffer's sum */
	unsigned char stack[16384];
} * exec_attack;

static int exec_keeper(void *arg)
{
	struct exec_attack *a = arg;
	struct profil_msg_reply reply = { .error = ~0u };
	unsigned int ticks = 0;
	char end;

	close(a->hold[1]);
	if (wire_recv(a->sock, &reply, sizeof(reply), NULL, NULL))
		reply.error = ECONNRESET;
	if (write(a->told[1], &reply.error, sizeof(reply.error)) < 0 ||
	    read(a->hold[0], &end, 1) != 0)
		return 1;
	for (unsigned int i = 16; i < PAGE; i++)
		ticks += ((volatile unsigned char *)PAGE_AT)[i];
	return write(a->told[1], &ticks, sizeof(ticks)) < 0;
}

static void cookie_text(char text[33], const struct profil_msg_hello *hello)
{
	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", hello->cookie[i]);
}

/* The attacker's first profile, so that the daemon has its memory open. Writes no buffer. */
static bool profile_first(void)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_dial(&d, &hello);
	struct start_one s;

	memcpy((void *)(PAGE_AT + PAGE / 2), hello.cookie, sizeof(hello.cookie));
	start_one(&s, PAGE_AT + PAGE / 2, PAGE_AT);
	s.region.x = (struct profil_xform){ 0 };
	s.m.nregions = s.m.h.count = 0;
	s.m.h.bytes = sizeof(s.m);
	return sock >= 0 && client_try(sock, &s.m.h, NULL, 0) == 0;
}

/* Runs in the attacker: sends a START, then execs before the daemon reads it. */
static void exec_attacker(struct exec_attack *a, const char *program)
{
	struct profil_msg_hello hello;
	char address[32], cookie[33], go;
	struct start_one s;

	if (users_become(ATTACKER) < 0)
		_exit(1);
	map_page(MAP_PRIVATE);
	if (a->replaces && !profile_first())
		_exit(6);
	a->sock = client_dial(&d, &hello);
	fcntl(a->sock, F_SETFD, 0); /* survives the exec */
	memset((void *)PAGE_AT, 0, PAGE);
	memcpy((void *)PAGE_AT, hello.cookie, sizeof(hello.cookie));
	if (a->sock < 0 ||
	    clone(exec_keeper, a->stack + sizeof(a->stack), CLONE_VM | SIGCHLD, a) < 0)
		_exit(2);
	close(a->hold[1]);
	if (write(a->told[1], "", 1) != 1 || read(a->in[0], &go, 1) != 1)
		_exit(3);
	start_one(&s, PAGE_AT, PAGE_AT + 64);
	if (wire_send(a->sock, &s.m.h, NULL, 0))
		_exit(4);
	snprintf(address, sizeof(address), "%lx", PAGE_AT);
	cookie_text(cookie, &hello);
	dup2(a->in[0], STDIN_FILENO);
	dup2(a->out[1], STDOUT_FILENO);
	execl(program, program, "forge", address, cookie, "300", (char *)NULL);
	_exit(5);
}

static void read_all(int fd, void *buf, size_t bytes, const char *what)
{
	cr_assert_eq(read(fd, buf, bytes), (ssize_t)bytes, "%s: nothing came", what);
}

/* Copies tests/programs/image, owned by root, with @mode. */
static void make_program(char path[128], mode_t mode)
{
	const char *build = getenv("BUILD");
	char command[512];

	snprintf(path, 128, "%s/program", d.dir);
	snprintf(command, sizeof(command), "cp %s/tests/programs/image %s", build ? build : "build",
		 path);
	cr_assert(system(command) == 0 && chmod(path, mode) == 0, "%s failed", command);
}

/*
 * The attacker knows the cookie, so the program that it execs can have it at the right address. A
 * process that shares the attacker's memory keeps that memory, with the buffer, alive. The daemon
 * is stopped from before the START until the attacker has exec'd.
 */
static void exec_while_registering(mode_t mode, bool replaces)
{
	struct exec_attack *a =
		mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct profil_msg_profile p;
	unsigned int error, euid, ticks;
	char program[128], byte;
	FILE *says;
	pid_t pid;

	exec_attack = a;
	a->replaces = replaces;
	make_program(program, mode);
	cr_assert(a != MAP_FAILED && pipe(a->in) == 0 && pipe(a->out) == 0 && pipe(a->hold) == 0 &&
		  pipe(a->told) == 0);
	pid = fork();
	if (pid == 0)
		exec_attacker(a, program);
	says = fdopen(a->out[0], "r");
	close(a->out[1]);
	read_all(a->told[0], &byte, 1, "the attacker");
	kill(d.pid, SIGSTOP);
	cr_assert_eq(waitpid(d.pid, NULL, WUNTRACED), d.pid);
	cr_assert_eq(write(a->in[1], "", 1), 1);
	cr_assert_eq(fscanf(says, "forged%c", &byte), 1, "the program did not begin");
	kill(d.pid, SIGCONT);
	read_all(a->told[0], &error, sizeof(error), "the daemon's answer");

	/* The other process keeps the profile before, which has no region. */
	cr_expect(!ticks_list(&d, pid, &p) || (replaces && !p.nregions),
		  "the new image is profiled");
	cr_assert_eq(write(a->in[1], "", 1), 1);
	cr_assert_eq(fscanf(says, "worked as %u: ticks %u", &euid, &ticks), 2);
	ticks_await_mirror();
	close(a->hold[1]);
	cr_expect_neq(error, 0, "the daemon granted it");
	cr_expect_eq(euid, mode & 04000 ? 0 : ATTACKER);
	cr_expect_eq(ticks, 0, "%u ticks were added to the new image's memory", ticks);
	read_all(a->told[0], &ticks, sizeof(ticks), "the other process");
	cr_expect_eq(ticks, 0, "%u ticks of the new image were added to the old image's memory",
		     ticks);
	if (replaces && ticks_list(&d, pid, &p))
		cr_expect_lt(p.total, 100, "the profile before has %llu samples",
			     (unsigned long long)p.total);
	waitpid(pid, NULL, 0);
}

Test(kernel_attack, a_set_uid_program_that_is_execd_while_registering_is_not_profiled)
{
	exec_while_registering(04755, false);
	neighbour_stop(&d);
}

/* The START is to take over the memory of the profile before, which is that of the old image. */
Test(kernel_attack, a_set_uid_program_that_is_execd_while_replacing_is_not_profiled)
{
	exec_while_registering(04755, true);
	neighbour_stop(&d);
}

Test(kernel_attack, an_unreadable_program_that_is_execd_while_registering_is_not_profiled)
{
	exec_while_registering(0711, false);
	neighbour_stop(&d);
}

/* --- exec of a fork child --------------------------------------------------------------------- */

#define CHILDREN 100

/* Runs in the child of a profiled process: works for up to 3 ms, then execs. */
static void fork_and_exec(const char *program, const char *cookie, unsigned int i, int in, int out)
{
	char address[32];

	snprintf(address, sizeof(address), "%lx", PAGE_AT);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	loop_for(1, i * 3000000ul / CHILDREN);
	execl(program, program, "forge", address, cookie, "10", (char *)NULL);
	_exit(5);
}

/* On a new connection: the daemon may have closed the first one, which was silent. */
static void stop_anew(void)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);

	memcpy((void *)(PAGE_AT + 32), hello.cookie, sizeof(hello.cookie));
	cr_assert_eq(ask_self(sock, PROFIL_MSG_STOP, PAGE_AT + 32), 0);
}

/*
 * The child execs while the event of its first tick is on its way to the daemon, or just after. The
 * new program has the cookie at its address and sees anything that the daemon writes beside it.
 */
Test(kernel_attack, a_program_that_a_fork_child_execs_is_never_written)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	unsigned int euid, ticks, n = 0;
	char program[128], cookie[33];
	int in[2], out[2];
	FILE *says;

	make_program(program, 04755);
	memcpy(map_page(MAP_PRIVATE), hello.cookie, sizeof(hello.cookie));
	cr_assert_eq(ask_start(sock, PAGE_AT, PAGE_AT + 64), 0);
	cookie_text(cookie, &hello);
	cr_assert(pipe(in) == 0 && pipe(out) == 0);
	says = fdopen(out[0], "r");
	for (unsigned int i = 0; i < CHILDREN; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			fork_and_exec(program, cookie, i, in[0], out[1]);
		cr_assert_eq(write(in[1], "", 1), 1);
		cr_assert_eq(fscanf(says, " forged worked as %u: ticks %u", &euid, &ticks), 2);
		n += ticks != 0;
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_expect_eq(status, 0, "child %u ended with wait status 0x%x", i, status);
	}
	cr_expect_eq(n, 0, "%u of %u programs had ticks added to their memory", n, CHILDREN);
	stop_anew();
	neighbour_stop(&d);
}

/* --- other processes -------------------------------------------------------------------------- */

/* The daemon's errno for a START with the cookie of @other, or with its own when that is NULL. */
static int start_with(const struct profil_msg_hello *other, unsigned long cookie_addr)
{
	struct profil_msg_hello own;
	__cleanup(closep) int sock = client_open(&d, &own);

	memcpy((void *)PAGE_AT, other ? other->cookie : own.cookie, sizeof(own.cookie));
	return ask_start(sock, cookie_addr, PAGE_AT + 64);
}

Test(kernel_attack, a_forged_cookie_is_refused)
{
	struct profil_msg_hello other = { .cookie = "" };

	map_page(MAP_PRIVATE);
	cr_expect_eq(start_with(&other, PAGE_AT), EPERM, "a cookie of zeros");
	__cleanup(closep) int sock = client_open(&d, &other);
	cr_expect_eq(start_with(&other, PAGE_AT), EPERM, "another connection's");
	cr_expect_eq(start_with(NULL, PAGE_AT + 1), EINVAL, "beside the address");
	cr_expect_eq(start_with(NULL, PAGE_AT + PAGE - 8), EPERM, "at the end of a page");
	cr_expect_eq(start_with(NULL, PAGE_AT - 8), EPERM, "before a page");
	cr_expect_eq(start_with(NULL, 0), EPERM, "at address 0");
	cr_expect_eq(start_with(NULL, ~7ul), EPERM, "at the last address");
	cr_expect_eq(start_with(NULL, PAGE_AT), 0, "its own cookie at its address");
	stop_anew();
	neighbour_stop(&d);
}

static int stop_as_another_process(void)
{
	__cleanup(closep) int sock = client_open(&d, NULL);

	return ask_self(sock, PROFIL_MSG_STOP, PAGE_AT);
}

Test(kernel_attack, another_process_cannot_stop_a_profile)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	struct profil_msg_profile p;
	pid_t pid;

	pid = fork();
	cr_assert(pid >= 0);
	if (pid == 0) {
		raise(SIGSTOP);
		_exit(stop_as_another_process());
	}
	cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
	memcpy(map_page(MAP_SHARED), hello.cookie, sizeof(hello.cookie));
	cr_assert_eq(ask_start(sock, PAGE_AT, PAGE_AT + 64), 0);
	kill(pid, SIGCONT);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect(ticks_list(&d, getpid(), &p), "the profile has been stopped");
	stop_anew();
	cr_expect(!ticks_list(&d, getpid(), &p), "the profile has not been stopped");
	neighbour_stop(&d);
}

/* A fork child has the connection and the cookie, but is not the process that connected. */
Test(kernel_attack, a_connection_used_by_a_fork_child_is_closed)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	struct start_one s;
	int status;
	pid_t pid;

	memcpy(map_page(MAP_PRIVATE), hello.cookie, sizeof(hello.cookie));
	start_one(&s, PAGE_AT, PAGE_AT + 64);
	pid = fork();
	if (pid == 0)
		_exit(!is_cut_off(sock, &s.m.h));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the child was answered");
	cr_expect(is_cut_off(sock, &s.m.h), "its parent is still answered");
	neighbour_stop(&d);
}

/* --- a reused pid ----------------------------------------------------------------------------- */

/* Forks a child with the pid @pid. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (unsigned long)&pid,
				   .set_tid_size = 1 };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* A child connects, sends a START without having received the cookie, and exits. */
static pid_t ask_too_early(int *sock)
{
	struct sockaddr_un address;
	struct start_one s;
	pid_t pid;

	*sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cr_assert(*sock >= 0 && wire_address(&address, d.socket) == 0);
	start_one(&s, PAGE_AT, PAGE_AT + 64);
	pid = fork();
	if (pid == 0)
		_exit(connect(*sock, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		      wire_send(*sock, &s.m.h, NULL, 0));
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	return pid;
}

#define TRIES 50

/*
 * When the daemon accepts the connection, the process that connected has exited and a victim has
 * its pid. The START is already queued, and the cookie gets into the victim's memory right after
 * the HELLO. If the daemon took the victim for the client, one of two or three tries would win that
 * race.
 */
Test(kernel_attack, a_process_with_a_reused_pid_is_not_profiled)
{
	unsigned char *page = map_page(MAP_SHARED);
	struct profil_msg_hello hello;
	struct profil_msg_reply reply;
	unsigned int granted = 0;

	for (int i = 0; i < TRIES; i++) {
		int sock, status;
		pid_t pid, victim;

		kill(d.pid, SIGSTOP);
		cr_assert_eq(waitpid(d.pid, NULL, WUNTRACED), d.pid);
		pid = ask_too_early(&sock);
		victim = fork_as(pid);
		if (victim == 0) {
			pause();
			_exit(0);
		}
		cr_assert_eq(victim, pid, "clone3: %s", strerror(errno));
		kill(d.pid, SIGCONT);
		if (wire_recv(sock, &hello, sizeof(hello), NULL, NULL) == 0) {
			memcpy(page, hello.cookie, sizeof(hello.cookie));
			granted += wire_recv(sock, &reply, sizeof(reply), NULL, NULL) == 0 &&
				   reply.error == 0;
		}
		close(sock);
		kill(victim, SIGKILL);
		cr_assert_eq(waitpid(victim, &status, 0), victim);
	}
	cr_expect_eq(granted, 0, "%u of %u victims were profiled", granted, TRIES);
	neighbour_stop(&d);
}

/* A START's addresses are in the client: another process's page at that address is not written. */
Test(kernel_attack, another_process_is_never_written)
{
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	int gate[2], ready[2], status;
	char byte;
	pid_t pid;

	cr_assert(pipe(gate) == 0 && pipe(ready) == 0);
	pid = fork();
	if (pid == 0) {
		unsigned char *page = map_page(MAP_PRIVATE);
		unsigned int sum = 0;

		close(gate[1]);
		if (write(ready[1], "", 1) != 1 || read(gate[0], &byte, 1) != 0)
			_exit(1);
		for (unsigned int i = 0; i < PAGE; i++)
			sum += page[i];
		_exit(sum ? 2 : 0);
	}
	read_all(ready[0], &byte, 1, "the other process");
	cr_assert_eq(ask_start(sock, (unsigned long)hello.cookie, PAGE_AT + 64), 0);
	loop_for(0, 100000000);
	ask_self(sock, PROFIL_MSG_STOP, (unsigned long)hello.cookie);
	close(gate[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the other process ended with wait status 0x%x", status);
	neighbour_stop(&d);
}
