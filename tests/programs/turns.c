/* turns.c - two threads that wake each other up N times, by a pipe or a futex: turns KIND N */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int there[2], back[2], turns, is_futex;
static _Atomic int turn; /* 0: the first thread's */

static void await_turn(int mine)
{
	while (turn != mine)
		syscall(SYS_futex, &turn, FUTEX_WAIT, !mine, NULL, NULL, 0);
}

static void give_turn(int next)
{
	turn = next;
	syscall(SYS_futex, &turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *other(void *arg)
{
	char byte;

	for (int i = 0; i < turns; i++) {
		if (is_futex) {
			await_turn(1);
			give_turn(0);
		} else if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) {
			exit(1);
		}
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char byte = 0;

	if (argc != 3 || pipe(there) || pipe(back))
		return 1;
	is_futex = argv[1][0] == 'f';
	turns = atoi(argv[2]);
	pthread_create(&thread, NULL, other, NULL);
	for (int i = 0; i < turns; i++) {
		if (is_futex) {
			await_turn(0);
			give_turn(1);
		} else if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) {
			return 1;
		}
	}
	pthread_join(thread, NULL);
	return 0;
}
