/* waits.c - threads that wait for known things, and one that computes
 *
 * Prints a line for each, FUNCTION LEAST MOST RAN WAITED: the limits of its off-CPU time in ms, its
 * CPU time, and how long it waited for a CPU. MOST is the time between two looks at the clock, LEAST
 * what is left of it without the other two, which is the time asleep. They are of the time in
 * measure() after begin(), in a thread whose name begins as the function's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, *own_lock;
static int input[2], polled[2], ends[2], event, semaphores, locked_file;
static const char *self;
static volatile unsigned long spun;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER, inverted = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_given;
static pthread_barrier_t is_held;
static pid_t process; /* sleeps for 0.3 s */
static ucontext_t outside, inside;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

__attribute__((noinline)) static void wait_for_lock(void)
{
	pthread_mutex_lock(&lock);
	spun++;
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void wait_for_time(void)
{
	const struct timespec ts = { 0, 10000000 };

	for (int i = 0; i < 20; i++)
		nanosleep(&ts, NULL);
	spun++;
}

__attribute__((noinline)) static void wait_for_input(void)
{
	char byte;

	if (read(input[0], &byte, 1) == 1)
		spun++;
	spun++;
}

__attribute__((noinline)) static void wait_for_own_lock(void)
{
	pthread_mutex_lock(own_lock);
	spun++;
	pthread_mutex_unlock(own_lock);
}

__attribute__((noinline)) static void wait_for_poll(void)
{
	struct pollfd fd = { .fd = polled[0], .events = POLLIN };

	if (poll(&fd, 1, -1) == 1)
		spun++;
	spun++;
}

__attribute__((noinline)) static void wait_for_epoll(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int epoll = epoll_create1(0);

	epoll_ctl(epoll, EPOLL_CTL_ADD, polled[0], &e);
	if (epoll_wait(epoll, &e, 1, -1) == 1)
		spun++;
	close(epoll);
}

__attribute__((noinline)) static void wait_for_socket(void)
{
	char byte;

	if (recv(ends[0], &byte, 1, 0) == 1)
		spun++;
	spun++;
}

__attribute__((noinline)) static void wait_for_event(void)
{
	eventfd_t value;

	if (!eventfd_read(event, &value))
		spun++;
	spun++;
}

__attribute__((noinline)) static void wait_for_process(void)
{
	waitpid(process, NULL, 0);
	spun++;
}

__attribute__((noinline)) static void wait_for_signal(void)
{
	const struct timespec ts = { 0, 100000000 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigtimedwait(&set, NULL, &ts);
	spun++;
}

__attribute__((noinline)) static void wait_for_file_lock(void)
{
	int file = open(self, O_RDONLY);

	flock(file, LOCK_EX);
	spun++;
	close(file);
}

__attribute__((noinline)) static void wait_for_semaphore(void)
{
	struct sembuf take = { 0, -1, 0 };

	semop(semaphores, &take, 1);
	spun++;
}

/* Reads this program's file, past the cache. */
__attribute__((noinline)) static void wait_for_disk(void)
{
	int file = open(self, O_RDONLY | O_DIRECT);
	void *page = aligned_alloc(4096, 4096);

	for (double end = now_ms() + 200; page && now_ms() < end;) {
		if (pread(file, page, 4096, 0) <= 0)
			break;
		spun++;
	}
	free(page);
	close(file);
}

__attribute__((noinline)) static void wait_for_condition(void)
{
	pthread_mutex_lock(&guard);
	while (!is_given)
		pthread_cond_wait(&condition, &guard);
	pthread_mutex_unlock(&guard);
	spun++;
}

/* On a stack of its own, which begins here. */
__attribute__((noinline)) static void wait_in_coroutine(void)
{
	const struct timespec ts = { 0, 10000000 };

	for (int i = 0; i < 20; i++)
		nanosleep(&ts, NULL);
	spun++;
}

static void run_coroutine(void)
{
	static char stack[65536];

	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = sizeof(stack);
	inside.uc_link = &outside;
	makecontext(&inside, wait_in_coroutine, 0);
	swapcontext(&outside, &inside);
}

/* The CPU time of this thread so far, and the time that it waited for a CPU, at a moment. */
struct scheduled {
	double at_ms, ran_ms, waited_ms;
};

static double waited_ms(void)
{
	unsigned long long ran, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%llu %llu", &ran, &waited) != 2)
		perror("schedstat");
	if (f)
		fclose(f);
	return (double)waited / 1e6;
}

/* Again until the thread has not lost its CPU meanwhile. */
static struct scheduled scheduled_now(void)
{
	struct scheduled s;
	struct timespec used;

	do {
		s.waited_ms = waited_ms();
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); /* the file has it by ticks */
		s.at_ms = now_ms();
		s.ran_ms = (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
	} while (waited_ms() > s.waited_ms);
	return s;
}

/* Of hold_inverted(), which gets no CPU while hog() runs. */
__attribute__((noinline)) static void wait_for_inversion(void)
{
	pthread_mutex_lock(&inverted);
	spun++;
	pthread_mutex_unlock(&inverted);
}

static void share_cpu(void)
{
	cpu_set_t one;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) { /* the first one that is allowed */
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (!sched_setaffinity(0, sizeof(one), &one))
			break;
	}
	pthread_barrier_wait(&is_held);
}

static bool is_asleep(void (*wait)(void));

/* Needs 5 ms of CPU time at the lowest priority, and a thread that waits for it. */
__attribute__((noinline)) static void hold_inverted(void)
{
	struct timespec used = { 0, 0 };

	setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
	while ((used.tv_nsec < 5000000 && !used.tv_sec) || !is_asleep(wait_for_inversion)) {
		spun++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	}
	setpriority(PRIO_PROCESS, (id_t)gettid(), 0);
	pthread_mutex_unlock(&inverted);
}

__attribute__((noinline)) static void *hog(void *arg)
{
	share_cpu();
	for (double end = now_ms() + 250; now_ms() < end;)
		spun++;
	return arg;
}

__attribute__((noinline)) static void compute(void)
{
	for (double end = now_ms() + 200; now_ms() < end;)
		spun++;
}

struct wait {
	const char *name;
	void (*wait)(void);
	pid_t tid; /* 0: it does not wait yet */
	struct scheduled took;
};

#define WAIT(function)                               \
	{                                            \
		.name = #function, .wait = function, \
	}
static struct wait waits[] = {
	WAIT(wait_for_lock),
	WAIT(wait_for_own_lock),
	WAIT(wait_for_time),
	WAIT(wait_for_input),
	WAIT(wait_for_poll),
	WAIT(wait_for_epoll),
	WAIT(wait_for_socket),
	WAIT(wait_for_event),
	WAIT(wait_for_process),
	WAIT(wait_for_signal),
	WAIT(wait_for_file_lock),
	WAIT(wait_for_semaphore),
	WAIT(wait_for_disk),
	WAIT(compute),
	WAIT(wait_for_condition),
	WAIT(wait_for_inversion),
	{ .name = "wait_in_coroutine", .wait = run_coroutine },
};
#define WAITS (sizeof(waits) / sizeof(*waits))
static struct wait holds = WAIT(hold_inverted);

__attribute__((noinline)) static struct scheduled begin(const struct wait *w)
{
	prctl(PR_SET_NAME, w->name);
	return scheduled_now();
}

__attribute__((noinline)) static void *measure(void *arg)
{
	struct wait *w = arg;
	struct scheduled before = begin(w), after;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->wait();
	after = scheduled_now();
	w->took = (struct scheduled){ after.at_ms - before.at_ms, after.ran_ms - before.ran_ms,
				      after.waited_ms - before.waited_ms };
	return NULL;
}

static void *hold(void *arg)
{
	pthread_mutex_lock(&inverted);
	share_cpu();
	return measure(arg);
}

/* Says whether the thread of @wait sleeps in it. */
static bool is_asleep(void (*wait)(void))
{
	char path[64], state = 0;
	pid_t tid = 0;
	FILE *f;

	for (size_t i = 0; i < WAITS; i++) {
		if (waits[i].wait == wait)
			tid = __atomic_load_n(&waits[i].tid, __ATOMIC_ACQUIRE);
	}
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = tid ? fopen(path, "r") : NULL;
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

static void tell(const struct wait *w)
{
	printf("%s %.3f %.3f %.3f %.3f\n", w->name,
	       w->took.at_ms - w->took.ran_ms - w->took.waited_ms, w->took.at_ms, w->took.ran_ms,
	       w->took.waited_ms);
}

static void sleep_ms(unsigned int ms)
{
	const struct timespec ts = { 0, ms * 1000000L };

	nanosleep(&ts, NULL);
}

static int prepare(void)
{
	char *argv[] = { "sleep", "100", NULL };

	own_lock = malloc(sizeof(*own_lock));
	event = eventfd(0, 0);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	locked_file = open(self, O_RDONLY);
	if (!own_lock || event < 0 || semaphores < 0 || flock(locked_file, LOCK_EX) ||
	    posix_spawnp(&process, *argv, NULL, NULL, argv, NULL) || pipe(input) || pipe(polled) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return -1;
	pthread_mutex_init(own_lock, NULL);
	pthread_mutex_lock(own_lock);
	pthread_mutex_lock(&lock);
	return 0;
}

/* To threads that all wait. */
static void give_all(void)
{
	static void (*const wait[])(void) = {
		wait_for_lock,	    wait_for_own_lock,	wait_for_input,	   wait_for_poll,
		wait_for_epoll,	    wait_for_socket,	wait_for_event,	   wait_for_process,
		wait_for_file_lock, wait_for_semaphore, wait_for_condition
	};
	struct sembuf give = { 0, 1, 0 };

	for (size_t i = 0; i < sizeof(wait) / sizeof(*wait); i++) {
		while (!is_asleep(wait[i]))
			sleep_ms(1);
	}
	kill(process, SIGTERM);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(own_lock);
	pthread_mutex_lock(&guard);
	is_given = 1;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&guard);
	sleep_ms(100);
	if (write(input[1], "", 1) != 1 || write(polled[1], "", 1) != 1 ||
	    send(ends[1], "", 1, 0) != 1 || eventfd_write(event, 1) ||
	    semop(semaphores, &give, 1) || flock(locked_file, LOCK_UN))
		perror("give");
}

int main(int argc, char **argv)
{
	pthread_t thread[WAITS], low, middle;

	(void)argc;
	self = argv[0];
	if (prepare())
		return 1;
	pthread_barrier_init(&is_held, NULL, 3);
	pthread_create(&low, NULL, hold, &holds);
	pthread_create(&middle, NULL, hog, NULL);
	pthread_barrier_wait(&is_held);
	for (size_t i = 0; i < WAITS; i++)
		pthread_create(&thread[i], NULL, measure, &waits[i]);
	sleep_ms(350);
	give_all();
	for (size_t i = 0; i < WAITS; i++) {
		pthread_join(thread[i], NULL);
		tell(&waits[i]);
	}
	pthread_join(low, NULL);
	tell(&holds);
	pthread_join(middle, NULL);
	semctl(semaphores, 0, IPC_RMID);
	return 0;
}
