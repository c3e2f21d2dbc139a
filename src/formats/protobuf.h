/* protobuf.h - protobuf messages and the kinds of fields that profiles use */
#ifndef PROFIL_FORMATS_PROTOBUF_H
#define PROFIL_FORMATS_PROTOBUF_H

#include <stdio.h>
#include <linux/types.h>

/* A message in memory. All zero: it is not open. */
struct message {
	FILE *f;
	char *bytes;
	size_t n;
};

/* Returns 0 or -ENOMEM. */
int message_init(struct message *m);

void message_fini(struct message *m);

/* Writes @m as field @number of @into, and empties @m. */
void message_into(struct message *m, struct message *into, unsigned int number);

/* Writes field @number of a message to @out. */
void protobuf_number(FILE *out, unsigned int number, __u64 value);
void protobuf_fixed64(FILE *out, unsigned int number, __u64 value);
void protobuf_bytes(FILE *out, unsigned int number, const void *bytes, size_t n);

/* Omits 0, which is what a reader takes a missing number for. */
void protobuf_optional(FILE *out, unsigned int number, __u64 value);

/* Write @n numbers as one packed field. */
void protobuf_numbers(FILE *out, unsigned int number, const __u64 *value, size_t n);
void protobuf_indices(FILE *out, unsigned int number, const __u32 *value, size_t n);

#endif
