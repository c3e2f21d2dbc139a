/* protobuf.h - the few kinds of protobuf fields that a profile is made of */
#ifndef PROFIL_PROTOBUF_H
#define PROFIL_PROTOBUF_H

#include <stdio.h>
#include <linux/types.h>

/* Each writes field @number of a message to @out. */
void protobuf_number(FILE *out, unsigned int number, __u64 value);
void protobuf_bytes(FILE *out, unsigned int number, const void *bytes, size_t n);

/* Numbers in one packed field. */
void protobuf_numbers(FILE *out, unsigned int number, const __u64 *value, size_t n);

#endif
