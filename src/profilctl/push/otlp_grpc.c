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
static size_t decode_base64(char *out, size_t room, const char *text)
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
			out[n++] = (char)(bits >> nbits);
		}
	}
	return n;
}

void grpc_read_header(struct grpc_status *s, const char *line, size_t n)
{
	char copy[8192], details[sizeof(copy) / 4 * 3], *value, *end;

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
		n = decode_base64(details, sizeof(details), value);
		s->retry = otlp_read_retry(&s->wait_s, details, n);
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
