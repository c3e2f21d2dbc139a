/* profile_proto.h - writes the messages of pprof's profile.proto */
#ifndef PROFIL_FORMATS_PROFILE_PROTO_H
#define PROFIL_FORMATS_PROFILE_PROTO_H

#include <stdbool.h>

#include "base/host_identity.h"
#include "protobuf.h"
#include "string_table.h"

/* A profile that is being written. Ids of mappings, functions and locations begin with 1. */
struct profile_proto {
	struct message whole;
	struct message part; /* of @whole: a mapping, function, location, sample or type */
	struct message line; /* of @part: a line of a location, or a label of a sample */
	struct string_table strings;
};

struct proto_mapping {
	__u64 start;
	__u64 limit;
	__u64 offset;
	const char *file;
	const char *build_id;
	bool has_functions;
};

/* Returns 0 or -ENOMEM; proto_fini() in any case. */
int proto_init(struct profile_proto *w);

/* Writes what is pending: @w->whole.bytes is complete then. Returns 0 or -ENOMEM. */
int proto_complete(struct profile_proto *w);

void proto_fini(struct profile_proto *w);

/* Adds a value that each sample has. */
void proto_sample_type(struct profile_proto *w, const char *type, const char *unit);

/* Says what a sample stands for. */
void proto_period(struct profile_proto *w, const char *type, const char *unit, __u64 period);

/* Makes @type, one of the sample types, the one that pprof shows first. */
void proto_default_type(struct profile_proto *w, const char *type);

/* Says when the profile began, in nanoseconds since the epoch, and how long it took. */
void proto_time(struct profile_proto *w, __u64 began_ns, __u64 duration_ns);

void proto_comment(struct profile_proto *w, const char *text);

/* Adds the comments KEY=VALUE that identify the host. */
void proto_host(struct profile_proto *w, const struct host_identity *h);

void proto_mapping(struct profile_proto *w, __u64 id, const struct proto_mapping *m);
void proto_function(struct profile_proto *w, __u64 id, const char *name, const char *file);

/* Adds a line to the location that the next proto_location() completes; innermost function first.
 */
void proto_line(struct profile_proto *w, __u64 function_id, int line);
void proto_location(struct profile_proto *w, __u64 id, __u64 mapping, __u64 address);

/* Adds a label to the sample that the next proto_sample() completes, unless it is NULL, "" or 0. */
void proto_label(struct profile_proto *w, const char *key, const char *text);
void proto_number_label(struct profile_proto *w, const char *key, __u64 number);

/*
 * Writes @samples at @n locations, innermost first. Its values: @samples, and unless @period is 0,
 * @samples * @period.
 */
void proto_sample(struct profile_proto *w, const __u64 *location, size_t n, __u64 samples,
		  __u64 period);

#endif
