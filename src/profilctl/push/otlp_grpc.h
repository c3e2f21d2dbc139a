/* otlp_grpc.h - OTLP over gRPC: the frame of a message, and the status that follows the answer */
#ifndef PROFIL_PROFILCTL_PUSH_OTLP_GRPC_H
#define PROFIL_PROFILCTL_PUSH_OTLP_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "otlp_response.h"

#define GRPC_PATH "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define GRPC_FRAME_BYTES 5

/* Writes the frame before a message of @n bytes. */
void grpc_put_frame(char frame[GRPC_FRAME_BYTES], bool compressed, size_t n);

/* Of a call, from the trailers, or the headers if there is nothing else. */
struct grpc_status {
	int code;	/* -1: none has come */
	bool retry;	/* the receiver says that the call can be repeated, ... */
	__u64 wait_s;	/* ... after this time */
	char text[200]; /* not sanitized */
};

/* Reads a header or trailer, "NAME: VALUE" and the end of the line. */
void grpc_read_header(struct grpc_status *s, const char *line, size_t n);

/* The outcome of a call whose answer has these @n bytes. */
enum otlp_outcome grpc_read_answer(const struct grpc_status *s, const char *bytes, size_t n,
				   struct otlp_answer *a);

#endif
