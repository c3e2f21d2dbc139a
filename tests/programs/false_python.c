/* false_python.c - a program that looks like Python 3.12 to profilctl, with impossible structures
 */
/*
 * usage: FALSE_NAME=NAME false_python HOW [SECONDS]
 *
 * Its loop executes for half a second of CPU time, or SECONDS. NAME is a function that its frames
 * name; HOW is what else is in them: "true" nothing, "cycle" a frame that calls itself, "negative"
 * and "huge" lengths, "wild" pointers into nothing, "rewritten" a thread that changes all of it
 * meanwhile, and "exec" the program again, under way.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define AT(object, offset, type) (*(type *)((char *)(object) + (offset)))

/* What profilctl looks for among the dynamic symbols. */
__attribute__((visibility("default"))) const unsigned int Py_Version = 0x030c01f0;
__attribute__((visibility("default"))) char _PyRuntime[4096] = { 1 };
__attribute__((visibility("default"))) void _PyEval_EvalFrameDefault(double seconds);

static char state[4096] __attribute__((aligned(16)));
static char frame[3][256] __attribute__((aligned(16)));
static char code[512] __attribute__((aligned(16)));
static char name[512] __attribute__((aligned(16)));
static char file[512] __attribute__((aligned(16)));
static char lines[512] __attribute__((aligned(16)));
static const char *how;

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

__attribute__((noinline)) void _PyEval_EvalFrameDefault(double seconds)
{
	void *volatile cframe[4] = { frame[0], NULL };
	volatile unsigned long spin = 0;

	AT(state, 56, void *) = (void *)cframe;
	for (double end = cpu() + seconds; cpu() < end;) {
		for (unsigned int i = 0; i < 200000; i++)
			spin += i;
	}
	AT(state, 56, void *) = NULL;
}

static void text(char *at, const char *characters)
{
	AT(at, 16, size_t) = strlen(characters);
	AT(at, 32, uint32_t) = 1 << 2 | 1 << 5 | 1 << 6; /* a byte each, compact, ASCII */
	strncpy(at + 40, characters, 400);
}

static void frames(const char *function)
{
	text(name, function);
	text(file, "/false.py");
	AT(code, 16, size_t) = 8;
	AT(code, 68, int) = 1;
	AT(code, 112, void *) = file;
	AT(code, 128, void *) = name;
	AT(code, 136, void *) = lines;
	for (int i = 0; i < 3; i++) {
		AT(frame[i], 0, void *) = code;
		AT(frame[i], 8, void *) = i < 2 ? frame[i + 1] : NULL;
		AT(frame[i], 56, void *) = code + 192;
		frame[i][70] = i == 2 ? 3 : 0;
	}
	if (!strcmp(how, "cycle"))
		AT(frame[1], 8, void *) = frame[1];
	if (!strcmp(how, "negative"))
		AT(name, 16, size_t) = AT(lines, 16, size_t) = (size_t)-8;
	if (!strcmp(how, "huge"))
		AT(name, 16, size_t) = AT(file, 16, size_t) = AT(lines, 16, size_t) = 1u << 30;
	if (!strcmp(how, "wild")) {
		AT(code, 128, void *) = (void *)0xffff800000000000;
		AT(code, 136, void *) = (void *)0x10;
		AT(frame[0], 8, void *) = (void *)~7ul;
	}
}

/* Changes one word after the other to a pointer, a number or nothing, and back. */
static void *rewrite(void *unused)
{
	char *const objects[] = { frame[0], frame[1], code, name, file };
	unsigned long n = 1;

	for (;; n = n * 6364136223846793005ul + 1442695040888963407ul) {
		char *at = objects[(n >> 33) % 5] + (n >> 40) % 24 * 8;
		unsigned long before = AT(at, 0, unsigned long);

		AT(at, 0, volatile unsigned long) =
			n >> 60 & 1 ? n : (unsigned long)frame + (n >> 50);
		AT(at, 0, volatile unsigned long) = before;
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_key_t key;
	pthread_t thread;

	how = argc > 1 ? argv[1] : "true";
	if (pthread_key_create(&key, NULL) || pthread_setspecific(key, state))
		return 1;
	AT(_PyRuntime, 1544, int) = 1;
	AT(_PyRuntime, 1548, unsigned int) = key;
	frames(getenv("FALSE_NAME") ?: "function");
	if (!strcmp(how, "rewritten") && pthread_create(&thread, NULL, rewrite, NULL))
		return 1;
	_PyEval_EvalFrameDefault(argc > 2 ? atof(argv[2]) : 0.5);
	if (!strcmp(how, "exec"))
		execl("/proc/self/exe", "false_python", "true", (char *)NULL);
	return 0;
}
