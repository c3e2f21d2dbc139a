/* wakers.c - threads that wake each other up: by a lock, a condition variable, a pipe and a timer
 *
 * Each of wait_on_lock(), wait_on_condition() and wait_on_pipe() sleeps until give_lock(),
 * give_condition() or give_pipe() of another thread wakes it up. That thread first waits until it
 * sleeps, by its state in /proc. wait_on_timer() sleeps on the CPU of read_zeros(), which is in a
 * system call nearly all the time: the timer's interrupt wakes it up, whatever that interrupts.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 5
#define TIMERS 50

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int ends[2];
static int given;
static _Atomic pid_t waiter;
static volatile unsigned long spun;

static int is_asleep(pid_t tid)
{
	char path[64], text[512];
	const char *end;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && end[2] == 'S';
}

/* Waits until the other thread sleeps, and then for as long as a sample stands for at least. */
static void await_sleep(void)
{
	while (!waiter || !is_asleep(waiter))
		spun++;
	usleep(5000);
}

__attribute__((noinline)) static void wait_on_lock(void)
{
	pthread_mutex_lock(&lock);
	spun++;
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void wait_on_condition(void)
{
	pthread_mutex_lock(&other);
	while (!given)
		pthread_cond_wait(&condition, &other);
	given = 0;
	pthread_mutex_unlock(&other);
	spun++;
}

__attribute__((noinline)) static void wait_on_pipe(void)
{
	char byte;

	if (read(ends[0], &byte, 1) == 1)
		spun++;
}

__attribute__((noinline)) static void give_lock(void)
{
	pthread_mutex_unlock(&lock);
	spun++;
}

__attribute__((noinline)) static void give_condition(void)
{
	pthread_mutex_lock(&other);
	given = 1;
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&other);
	spun++;
}

__attribute__((noinline)) static void give_pipe(void)
{
	if (write(ends[1], "", 1) != 1)
		perror("write");
	spun++;
}

static _Atomic int timers_end;

static void stay_on_this_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		perror("sched_setaffinity");
}

__attribute__((noinline)) static void wait_on_timer(void)
{
	for (int i = 0; i < TIMERS; i++)
		usleep(2000);
	timers_end = 1;
}

__attribute__((noinline)) static void read_zeros(void)
{
	static char zeros[1 << 20];
	int fd = open("/dev/zero", O_RDONLY);

	while (!timers_end && read(fd, zeros, sizeof(zeros)) > 0)
		spun++;
	close(fd);
}

static void (*volatile step)(void);

static void *waits(void *arg)
{
	(void)arg;
	waiter = (pid_t)syscall(SYS_gettid);
	step();
	return NULL;
}

static void turn(void (*wait)(void), void (*give)(void))
{
	pthread_t thread;

	waiter = 0;
	step = wait;
	if (pthread_create(&thread, NULL, waits, NULL))
		return;
	await_sleep();
	give();
	pthread_join(thread, NULL);
}

int main(void)
{
	pthread_t thread;

	if (pipe(ends))
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		turn(wait_on_lock, give_lock);
		turn(wait_on_condition, give_condition);
		turn(wait_on_pipe, give_pipe);
	}
	stay_on_this_cpu();
	step = wait_on_timer;
	if (pthread_create(&thread, NULL, waits, NULL))
		return 1;
	read_zeros();
	pthread_join(thread, NULL);
	return 0;
}
