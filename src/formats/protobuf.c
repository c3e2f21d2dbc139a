/* protobuf.c - protobuf messages and the kinds of fields that profiles use */
#include <errno.h>
#include <stdlib.h>

#include "protobuf.h"

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_FIXED64 = 1,
	WIRE_BYTES = 2,
};

/* A varint has at most ten bytes. */
static size_t varint(unsigned char *out, __u64 value)
{
	size_t n = 0;

	while (value >= 0x80) {
		out[n++] = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	out[n++] = (unsigned char)value;
	return n;
}

static void put(FILE *out, __u64 value)
{
	unsigned char bytes[10] = { 0 };
	size_t n = varint(bytes, value);

	fwrite(bytes, 1, n, out);
}

void protobuf_number(FILE *out, unsigned int number, __u64 value)
{
	put(out, number << 3 | WIRE_VARINT);
	put(out, value);
}

void protobuf_optional(FILE *out, unsigned int number, __u64 value)
{
	if (value)
		protobuf_number(out, number, value);
}

void protobuf_fixed64(FILE *out, unsigned int number, __u64 value)
{
	put(out, number << 3 | WIRE_FIXED64);
	for (int i = 0; i < 8; i++)
		fputc((int)(value >> 8 * i & 0xff), out);
}

void protobuf_bytes(FILE *out, unsigned int number, const void *bytes, size_t n)
{
	put(out, number << 3 | WIRE_BYTES);
	put(out, n);
	fwrite(bytes, 1, n, out);
}

void protobuf_numbers(FILE *out, unsigned int number, const __u64 *value, size_t n)
{
	unsigned char bytes[10];
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += varint(bytes, value[i]);
	put(out, number << 3 | WIRE_BYTES);
	put(out, sum);
	for (size_t i = 0; i < n; i++)
		put(out, value[i]);
}

void protobuf_indices(FILE *out, unsigned int number, const __u32 *value, size_t n)
{
	unsigned char bytes[10];
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += varint(bytes, value[i]);
	put(out, number << 3 | WIRE_BYTES);
	put(out, sum);
	for (size_t i = 0; i < n; i++)
		put(out, value[i]);
}

int message_init(struct message *m)
{
	m->f = open_memstream(&m->bytes, &m->n);
	return m->f ? 0 : -ENOMEM;
}

void message_fini(struct message *m)
{
	if (m->f)
		fclose(m->f);
	free(m->bytes);
}

void message_into(struct message *m, struct message *into, unsigned int number)
{
	fflush(m->f);
	protobuf_bytes(into->f, number, m->bytes, m->n);
	rewind(m->f);
}
