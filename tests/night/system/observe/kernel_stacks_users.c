/* kernel_stacks_users.c - the time that stack walks take is each user's own */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/stack_programs.h"
#include "tests/lib/users.h"

#define ALICE 61001
#define BOB 61002
#define SLEEPERS 32
#define OBSERVERS \
	2 /* as many of off-CPU time as a user may have: each walks the stack of each sleep */
#define DEEP 300 /* calls: more than a walk follows */
#define PERIOD_NS 10000000
#define SPIN_NS (100ull * PERIOD_NS)

DAEMON_SUITE(kernel_stacks_users, "--rate", TICKS_RATE);

static void run_on_cpu_0(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Whether the path of @node has as many frames as a walk follows. */
static bool is_deep(const struct observer *o, uint32_t number)
{
	const struct profil_node *node = observer_node(o, number);
	unsigned int depth = 1;

	for (; node->parent >= PROFIL_STACK_ROOTS; depth++)
		node = observer_node(o, node->parent);
	return depth >= PROFIL_FRAMES_MAX && node->parent == PROFIL_STACK_DEEP;
}

static uint64_t deep_walks(const struct observer *o)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < o->table->nodes; i++) {
		uint32_t count = observer_node(o, PROFIL_STACK_ROOTS + i)->count;

		n += count && is_deep(o, PROFIL_STACK_ROOTS + i) ? count : 0;
	}
	return n;
}

/* --- alice: sleeps so often that there is no time for all of her walks --- */

static void sleep_for_ever(uint64_t unused)
{
	const struct timespec ts = { 0, 100000 };

	for (;;)
		syscall(SYS_nanosleep, &ts, NULL);
}

static void *sleeper(void *arg)
{
	prctl(PR_SET_TIMERSLACK, 1);
	run_on_cpu_0();
	stack_recur(DEEP, sleep_for_ever, 0);
	return arg;
}

/* Alice's process. It writes to @ready when 1000 sleeps had no walk, and sleeps on until SIGKILL.
 */
static int sleep_often(unsigned int ready)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, 100000);
	pthread_t thread[SLEEPERS];
	struct observer o[OBSERVERS];

	ask.flags |= PROFIL_OBSERVE_EVENT;
	ask.event_type = PROFIL_EVENT_OFF_CPU;
	ask.stack_mode = PROFIL_STACK_FP;
	for (int i = 0; i < OBSERVERS; i++) {
		if (observer_open(&o[i], &d, &ask) || observer_add(&o[i], getpid()))
			return 1;
	}
	for (int i = 0; i < SLEEPERS; i++) {
		if (pthread_create(&thread[i], NULL, sleeper, NULL))
			return 2;
	}
	while (__atomic_load_n(&o[0].table->stack_lost, __ATOMIC_RELAXED) < 1000)
		sched_yield();
	if (write((int)ready, "", 1) != 1)
		return 3;
	for (;;)
		pause();
}

/* --- bob: computes on the same CPU; his few walks have time even on an emulated one --- */

static struct {
	uint64_t deep;
	uint64_t all;
} * walks; /* shared with bob */

static int walk_deep(unsigned int unused)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, PERIOD_NS);
	struct observer o;
	int go[2];
	pid_t pid;
	char byte;

	ask.stack_mode = PROFIL_STACK_FP;
	if (pipe(go))
		return 1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_on_cpu_0();
		if (read(go[0], &byte, 1) == 1)
			stack_recur(DEEP, stack_spin, SPIN_NS);
		_exit(0);
	}
	if (pid < 0 || observer_open(&o, &d, &ask) || observer_add(&o, pid))
		return 2;
	if (write(go[1], "", 1) != 1 || users_wait(pid))
		return 3;
	walks->deep = deep_walks(&o);
	walks->all = observer_total(&o);
	return 0;
}

/* The few samples that are not deep are those of the child's start and end. */
Test(kernel_stacks_users, a_user_does_not_use_up_the_time_for_another_users_walks)
{
	int ready[2];
	char byte;
	pid_t alice;

	walks = mmap(NULL, sizeof(*walks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	cr_assert(walks != MAP_FAILED && !pipe(ready));
	alice = users_run(ALICE, sleep_often, (unsigned int)ready[1]);
	close(ready[1]);
	cr_assert_eq(read(ready[0], &byte, 1), 1, "alice has ended");
	users_expect_end(users_run(BOB, walk_deep, 0), 0, "bob");
	cr_expect_gt(walks->all, 20);
	cr_expect_geq(walks->deep * 10, walks->all * 9, "%lu of %lu walks are deep",
		      (unsigned long)walks->deep, (unsigned long)walks->all);
	kill(alice, SIGKILL);
	waitpid(alice, NULL, 0);
	close(ready[0]);
}
