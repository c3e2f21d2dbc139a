/* otlp_response.c - reads what receivers of OTLP answer */
#include <stdio.h>
#include <string.h>

#include "otlp_response.h"

/* partial_success = 1, with rejected_profiles = 1 and error_message = 2 */
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct reader {
	const char *at;
	const char *end;
	bool wrong;
};

struct field {
	__u64 number;
	__u64 value; /* of a varint */
	struct reader bytes;
};

static __u64 varint(struct reader *r)
{
	__u64 value = 0;

	for (unsigned int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		unsigned char byte = (unsigned char)*r->at++;

		value |= (__u64)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	r->wrong = true;
	return 0;
}

/* Reads the next field. Returns false at the end of the message or of what can be read. */
static bool next(struct reader *r, struct field *f)
{
	__u64 key, n = 0;

	if (r->at == r->end)
		return false;
	key = varint(r);
	*f = (struct field){ .number = key >> 3 };
	switch ((enum wire_type)(key & 7)) {
	case WIRE_VARINT:
		f->value = varint(r);
		break;
	case WIRE_BYTES:
		n = varint(r);
		break;
	case WIRE_FIXED64:
		n = 8;
		break;
	case WIRE_FIXED32:
		n = 4;
		break;
	default:
		r->wrong = true;
	}
	if (r->wrong || n > (__u64)(r->end - r->at))
		return false;
	f->bytes = (struct reader){ r->at, r->at + n, false };
	r->at += n;
	return true;
}

static void partial_success(struct otlp_answer *a, struct reader *r)
{
	struct field f;

	while (next(r, &f)) {
		if (f.number == 1)
			a->rejected = f.value;
		else if (f.number == 2)
			snprintf(a->why, sizeof(a->why), "%.*s", (int)(f.bytes.end - f.bytes.at),
				 f.bytes.at);
	}
}

void otlp_read_response(struct otlp_answer *a, const char *bytes, size_t n)
{
	struct reader whole = { bytes, bytes + n, false };
	struct field f;

	a->rejected = 0;
	*a->why = '\0';
	while (next(&whole, &f)) {
		if (f.number == 1)
			partial_success(a, &f.bytes);
	}
}

/* Sets *@to to field @number of @m, a message or text. */
static bool find(struct reader *to, struct reader m, __u64 number)
{
	struct field f;

	while (next(&m, &f)) {
		if (f.number == number) {
			*to = f.bytes;
			return true;
		}
	}
	return false;
}

#define RETRY_INFO "type.googleapis.com/google.rpc.RetryInfo"

/* details = 3 of any types: type_url = 1, value = 2; of RetryInfo: retry_delay = 1; seconds = 1. */
bool otlp_read_retry(__u64 *wait_s, const char *bytes, size_t n)
{
	struct reader status = { bytes, bytes + n, false }, type, retry, delay;
	struct field f;

	*wait_s = 0;
	while (next(&status, &f)) {
		if (f.number != 3 || !find(&type, f.bytes, 1) ||
		    type.end - type.at != sizeof(RETRY_INFO) - 1 ||
		    memcmp(type.at, RETRY_INFO, sizeof(RETRY_INFO) - 1) != 0)
			continue;
		if (find(&retry, f.bytes, 2) && find(&delay, retry, 1) && next(&delay, &f) &&
		    f.number == 1)
			*wait_s = f.value;
		return true;
	}
	return false;
}
