/* fuzz.h - shared by the fuzzers: a stream of input, checks, and a silent log */
#ifndef PROFIL_FUZZ_H
#define PROFIL_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/*
 * Called by libFuzzer, or by the main() in seeds.c, which only runs the seeds. It returns if the
 * input caused no defect, and aborts otherwise.
 */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* The rest of the input. */
struct input {
	const uint8_t *at;
	size_t left;
};

/* Moves @bytes of the input to @out; zeros after its end. */
void input_take(struct input *in, void *out, size_t bytes);
uint8_t input_byte(struct input *in);

/* Aborts if @good is false. */
#define must(good) must_be((good), #good, __FILE__, __LINE__)
void must_be(int good, const char *what, const char *file, int line);

/* The number of open descriptors of this process. */
unsigned int descriptors(void);

/* An anonymous file with these bytes; its position is at the beginning. */
int file_of(const void *bytes, size_t n);

/* The same as a file with a path, which no account of a user limits. There is one at a time. */
int unlimited_file_of(const void *bytes, size_t n);

#endif
