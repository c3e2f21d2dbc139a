/* otlp_response.h - what became of a request of OTLP */
#ifndef PROFIL_PROFILCTL_PUSH_OTLP_RESPONSE_H
#define PROFIL_PROFILCTL_PUSH_OTLP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

enum otlp_outcome {
	OTLP_TAKEN,
	OTLP_LATER,	  /* the same request can succeed later */
	OTLP_REFUSED,	  /* it never will */
	OTLP_INTERRUPTED, /* by @stop */
};

struct otlp_answer {
	__u64 wait_s;	/* LATER: as long as the receiver asks for, 0: it does not say */
	__u64 rejected; /* TAKEN: profiles that it did not take */
	char why[512];	/* not sanitized */
};

/*
 * Reads an ExportProfilesServiceResponse: the number of rejected profiles, and why. One that cannot
 * be read rejects none.
 */
void otlp_read_response(struct otlp_answer *a, const char *bytes, size_t n);

/*
 * Reads a google.rpc.Status: true if it has a RetryInfo, with which a receiver of gRPC says that the
 * same request can succeed after *@wait_s.
 */
bool otlp_read_retry(__u64 *wait_s, const char *bytes, size_t n);

#endif
