/* ruby_sampler.c - counts the methods of a Ruby program by SIGPROF: samples, file, name
 *
 * An extension, which is started by being required and writes the file SAMPLES at the end. The innermost frame with
 * a line counts; frames of C functions have none.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define FUNCTIONS 8192
#define DEPTH 64

/* What is used of Ruby's headers and of its internal/thread.h. */
typedef unsigned long VALUE;
int rb_profile_frames(int start, int limit, VALUE *frames, int *lines);
VALUE rb_profile_frame_path(VALUE frame);
VALUE rb_profile_frame_label(VALUE frame);
void rb_gc_register_address(VALUE *value);
void rb_set_end_proc(void (*call)(VALUE), VALUE data);
char *rb_string_value_cstr(volatile VALUE *string);
int ruby_native_thread_p(void);
int ruby_thread_has_gvl_p(void);
void Init_sampler(void);

static struct {
	VALUE frame;
	long samples;
} functions[FUNCTIONS];

static void count(VALUE frame)
{
	size_t at = (frame >> 3) % FUNCTIONS;

	for (size_t i = 0; i < FUNCTIONS; i++, at = (at + 1) % FUNCTIONS) {
		if (functions[at].frame && functions[at].frame != frame)
			continue;
		functions[at].frame = frame;
		functions[at].samples++;
		return;
	}
}

static void on_signal(int number)
{
	VALUE frames[DEPTH];
	int lines[DEPTH], n;

	(void)number;
	if (!ruby_native_thread_p() || !ruby_thread_has_gvl_p())
		return;
	n = rb_profile_frames(0, DEPTH, frames, lines);
	for (int i = 0; i < n; i++) {
		if (lines[i] > 0) {
			count(frames[i]);
			return;
		}
	}
}

static void on_end(VALUE none)
{
	FILE *out = fopen(getenv("SAMPLES"), "w");

	(void)none;
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	if (!out) {
		perror("SAMPLES");
		return;
	}
	for (size_t i = 0; i < FUNCTIONS; i++) {
		VALUE path, label;

		if (!functions[i].frame)
			continue;
		path = rb_profile_frame_path(functions[i].frame);
		label = rb_profile_frame_label(functions[i].frame);
		fprintf(out, "%ld\t%s\t%s\n", functions[i].samples, rb_string_value_cstr(&path),
			rb_string_value_cstr(&label));
	}
	fclose(out);
}

void Init_sampler(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } };

	for (size_t i = 0; i < FUNCTIONS; i++)
		rb_gc_register_address(&functions[i].frame);
	rb_set_end_proc(on_end, 0);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
}
