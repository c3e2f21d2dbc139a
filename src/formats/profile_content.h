/* profile_content.h - what pprof's and OpenTelemetry's formats are written from */
#ifndef PROFIL_FORMATS_PROFILE_CONTENT_H
#define PROFIL_FORMATS_PROFILE_CONTENT_H

#include <stdbool.h>

#include "intern_table.h"
#include "profile/owners.h"
#include "profile/profile.h"
#include "protobuf.h"

/*
 * Both formats have samples at stacks of locations, locations in mappings, and lines of functions.
 * Ids of mappings, functions and locations begin with 1 and are given in the order in which these
 * are added; 0: none. Texts are numbers in @strings.
 */
struct content_type {
	__u32 type;
	__u32 unit;
};

struct content_mapping {
	__u64 start;
	__u64 limit;
	__u64 offset;
	__u32 file;
	__u32 build_id;
	__u32 frame_type;
	bool has_functions; /* all locations in it have lines */
};

struct content_function {
	__u32 name;
	__u32 file;
};

struct content_line {
	__u32 function;
	__u32 number;
};

struct content_location {
	__u64 address;
	__u32 mapping;
	__u32 end_line; /* its lines end before this one, and begin where the last one's end */
};

struct content_label {
	__u32 key;
	__u32 text; /* 0: it is a number */
	__u64 number;
};

struct content_sample {
	__u64 count;
	__u32 end_path; /* as end_line, of its locations, innermost first */
	__u32 end_label;
};

/* Zeroed, it is empty. */
struct profile_content {
	struct intern_table strings;
	struct content_type type[2]; /* of the values that each sample has */
	size_t ntypes;
	struct content_type period_type;
	__u64 period; /* the second value is the number of samples times this */
	__u32 default_type;
	__u64 began_ns; /* since the epoch */
	__u64 duration_ns;
	__u64 least; /* stacks with fewer samples are counted in their callers; 0: none are */
	struct host_identity host;
	__u32 service; /* the name of what was recorded, where samples have no unit */
	__u32 *comment;
	size_t ncomments;
	struct content_mapping *mapping;
	size_t nmappings;
	struct content_function *function;
	size_t nfunctions;
	struct content_line *line;
	size_t nlines;
	struct content_location *location;
	size_t nlocations;
	struct content_label *label;
	size_t nlabels;
	__u32 *path;
	size_t npath;
	struct content_sample *sample;
	size_t nsamples;
	bool failed; /* out of memory */
};

struct proto_mapping {
	__u64 start;
	__u64 limit;
	__u64 offset;
	const char *file;
	const char *build_id;
	const char *frame_type; /* of OpenTelemetry; NULL: unknown */
};

/* OpenTelemetry's name for what runs in @o; NULL: unknown. */
const char *content_frame_type(const struct object *o);

/* Adds a value that each sample has. */
void proto_sample_type(struct profile_content *c, const char *type, const char *unit);

/* Says what a sample stands for. */
void proto_period(struct profile_content *c, const char *type, const char *unit, __u64 period);

/* Makes @type, one of the sample types, the one that pprof shows first. */
void proto_default_type(struct profile_content *c, const char *type);

/* Says when the profile began, in nanoseconds since the epoch, and how long it took. */
void proto_time(struct profile_content *c, __u64 began_ns, __u64 duration_ns);

void proto_comment(struct profile_content *c, const char *text);

/* Says which host was recorded, and what on it. */
void proto_host(struct profile_content *c, const struct host_identity *h, const char *service);

/* These return the id. */
__u32 proto_mapping(struct profile_content *c, const struct proto_mapping *m);
__u32 proto_function(struct profile_content *c, const char *name, const char *file);
__u32 proto_location(struct profile_content *c, __u64 mapping, __u64 address);

/* Adds a line to the location that the next proto_location() completes; innermost function first.
 */
void proto_line(struct profile_content *c, __u64 function_id, int line);

/* Adds a label to the sample that the next proto_sample() completes, unless it is NULL, "" or 0. */
void proto_label(struct profile_content *c, const char *key, const char *text);
void proto_number_label(struct profile_content *c, const char *key, __u64 number);

/* Adds labels of the container and the pod of a cgroup, if that is in one; NULL: unknown. */
void content_container(struct profile_content *c, const char *cgroup);

/* Adds labels of what ran an object, the command with this key. */
void content_owner(struct profile_content *c, const char *command, const struct owner *o);

/* Adds @count samples at @n locations, innermost first. */
void proto_sample(struct profile_content *c, const __u64 *location, size_t n, __u64 count);

/* Makes all strings valid UTF-8. Call before writing. Returns 0 or -ENOMEM. */
int content_complete(struct profile_content *c);

void content_fini(struct profile_content *c);

/* Write the profile to @out in pprof's format, and as OpenTelemetry's ExportProfilesServiceRequest.
 * Return 0 or -ENOMEM. */
int content_write_pprof(struct profile_content *c, struct message *out);
int content_write_otlp(struct profile_content *c, struct message *out);

#endif
