/* otlp_grpc.c - OTLP over gRPC: the frame of a message, and the status that follows the answer */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "otlp_grpc.h"

enum { GRPC_OK, GRPC_RESOURCE_EXHAUSTED = 8 };

/* What OTLP makes of each status; RESOURCE_EXHAUSTED can be repeated if the receiver says so. */
static const struct {
	const char *name;
	bool temporary;
} codes[] = {
	{ "OK", false },
	{ "CANCELLED", true },
	{ "UNKNOWN", false },
	{ "INVALID_ARGUMENT", false },
	{ "DEADLINE_EXCEEDED", true },
	{ "NOT_FOUND", false },
	{ "ALREADY_EXISTS", false },
	{ "PERMISSION_DENIED", false },
	{ "RESOURCE_EXHAUSTED", false },
	{ "FAILED_PRECONDITION", false },
	{ "ABORTED", true },
	{ "OUT_OF_RANGE", true },
	{ "UNIMPLEMENTED", false },
	{ "INTERNAL", false },
	{ "UNAVAILABLE", true },
	{ "DATA_LOSS", true },
	{ "UNAUTHENTICATED", false },
};

#define CODES ((int)(sizeof(codes) / sizeof(*codes)))

void grpc_put_frame(char frame[GRPC_FRAME_BYTES], bool compressed, size_t n)
{
	frame[0] = compressed;
	for (int i = 1; i < GRPC_FRAME_BYTES; i++)
		frame[i] = (char)(n >> 8 * (GRPC_FRAME_BYTES - 1 - i));
}

/* Decodes base64 until something else comes. Returns the number of bytes. */
static size_t decode_base64(unsigned char *out, size_t room, const char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned int bits = 0, nbits = 0;
	const char *at;
	size_t n = 0;

	for (; *text && n < room && (at = strchr(digits, *text)); text++) {
		bits = bits << 6 | (unsigned int)(at - digits);
		nbits += 6;
		if (nbits >= 8) {
			nbits -= 8;
			out[n++] = (unsigned char)(bits >> nbits);
		}
	}
	return n;
}

/*
 * grpc-status-details-bin is a google.rpc.Status, one of whose details can be a RetryInfo: the name
 * of its type, then value = 2 with retry_delay = 1, whose seconds = 1 are left out if they are 0.
 */
static void read_details(struct grpc_status *s, const char *text)
{
	static const char type[] = "google.rpc.RetryInfo";
	unsigned char details[4096];
	size_t n = decode_base64(details, sizeof(details), text);
	const unsigned char *at = memmem(details, n, type, sizeof(type) - 1), *end = details + n;

	if (!at)
		return;
	s->retry = true;
	at += sizeof(type) - 1;
	if (end - at < 6 || at[0] != 0x12 || at[2] != 0x0a || at[4] != 0x08)
		return;
	for (unsigned int shift = 0; (at += shift ? 1 : 5) < end && shift < 28; shift += 7) {
		s->wait_s |= (__u64)(*at & 0x7f) << shift;
		if (!(*at & 0x80))
			break;
	}
}

void grpc_read_header(struct grpc_status *s, const char *line, size_t n)
{
	char copy[8192], *value, *end;

	if (n >= sizeof(copy))
		return;
	memcpy(copy, line, n);
	copy[n] = '\0';
	copy[strcspn(copy, "\r\n")] = '\0';
	value = strchr(copy, ':');
	if (!value)
		return;
	*value++ = '\0';
	value += strspn(value, " ");
	if (!strcmp(copy, "grpc-status")) {
		s->code = (int)strtoul(value, &end, 10);
		if (*end || end == value || s->code < 0)
			s->code = -1;
	} else if (!strcmp(copy, "grpc-message")) {
		snprintf(s->text, sizeof(s->text), "%s", value);
	} else if (!strcmp(copy, "grpc-status-details-bin")) {
		read_details(s, value);
	}
}

enum otlp_outcome grpc_read_answer(const struct grpc_status *s, const char *bytes, size_t n,
				   struct otlp_answer *a)
{
	bool known = s->code >= 0 && s->code < CODES;

	if (s->code == GRPC_OK) {
		/* Nothing asks for a compressed answer. */
		if (n > GRPC_FRAME_BYTES && !*bytes)
			otlp_read_response(a, bytes + GRPC_FRAME_BYTES, n - GRPC_FRAME_BYTES);
		return OTLP_TAKEN;
	}
	if (s->code < 0) {
		snprintf(a->why, sizeof(a->why), "the answer ended without a gRPC status");
		return OTLP_LATER;
	}
	a->wait_s = s->wait_s;
	snprintf(a->why, sizeof(a->why), "gRPC status %d%s%s%s%s", s->code, known ? " " : "",
		 known ? codes[s->code].name : "", *s->text ? ": " : "", s->text);
	return (known && codes[s->code].temporary) ||
			       (s->code == GRPC_RESOURCE_EXHAUSTED && s->retry)
		       ? OTLP_LATER
		       : OTLP_REFUSED;
}
