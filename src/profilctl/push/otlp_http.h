/* otlp_http.h - sends requests of OTLP over HTTP or gRPC, and reads the answers */
#ifndef PROFIL_PROFILCTL_PUSH_OTLP_HTTP_H
#define PROFIL_PROFILCTL_PUSH_OTLP_HTTP_H

#include <stddef.h>

#include "otlp_response.h"

#define OTLP_PATH "/v1development/profiles"
#define OTLP_REQUEST_MAX (64ul << 20) /* before compression; receivers refuse a larger one */

struct otlp_http;

/*
 * Prepares to send to @endpoint, a URL, or to what the environment names, as OpenTelemetry's
 * exporters do: OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT, _COMPRESSION, _PROTOCOL,
 * _CERTIFICATE, _CLIENT_KEY and _CLIENT_CERTIFICATE, each also with PROFILES_ before its last part.
 * With protocol "grpc", or a URL grpc://HOST:PORT (grpcs:// with TLS), it calls Export of gRPC.
 * @header has lines "NAME: VALUE" to send as well. @stop, a descriptor, interrupts a request when
 * it is readable. Prints a message on failure and returns an enum ctl_status.
 */
int otlp_http_open(struct otlp_http **out, const char *endpoint, const char *const *header,
		   size_t nheaders, int stop);
void otlp_http_close(struct otlp_http *h);

/* The URL, without a password. */
const char *otlp_http_url(const struct otlp_http *h);

enum otlp_outcome otlp_http_send(struct otlp_http *h, const char *bytes, size_t n,
				 struct otlp_answer *answer);

#endif
