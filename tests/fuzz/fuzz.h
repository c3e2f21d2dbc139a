/* fuzz.h - what the fuzzers share: a stream of input, checks, and a log that is kept to itself */
#ifndef PROFIL_FUZZ_H
#define PROFIL_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/*
 * libFuzzer calls it, or the main() in seeds.c, which only runs the seeds. An input is good when
 * this returns: it dies of what is not.
 */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What is left of the input. */
struct input {
	const uint8_t *at;
	size_t left;
};

/* Moves @bytes of it to @out; zeros where it has no more. */
void input_take(struct input *in, void *out, size_t bytes);
uint8_t input_byte(struct input *in);

/* Dies where @good is not so. */
#define must(good) must_be((good), #good, __FILE__, __LINE__)
void must_be(int good, const char *what, const char *file, int line);

/* How many descriptors this process has open. */
unsigned int descriptors(void);

/* A file of no name that holds these bytes, at its beginning. */
int file_of(const void *bytes, size_t n);

#endif
