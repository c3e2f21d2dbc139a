/* accept.h - content negotiation by Accept and Accept-Encoding (RFC 9110, 12.5) */
#ifndef PROFIL_PROFIL_HTTP_ACCEPT_H
#define PROFIL_PROFIL_HTTP_ACCEPT_H

/*
 * How well @accept, an Accept header or NULL, takes the media type @type/@subtype, in thousandths;
 * 0: not at all. The most specific range that matches determines it. Parameters other than q are
 * ignored. *@named: the header has this very type, and not only a wildcard.
 */
unsigned int accept_quality(const char *accept, const char *type, const char *subtype, int *named);

enum metrics_format {
	METRICS_NONE,	     /* no format that there is */
	METRICS_PROMETHEUS,  /* text/plain; version=0.0.4 */
	METRICS_OPENMETRICS, /* for readers that name it and do not prefer the other */
};

enum metrics_format accept_metrics(const char *accept);

enum encoding {
	ENCODING_NONE, /* neither is taken */
	ENCODING_IDENTITY,
	ENCODING_GZIP, /* for readers that do not prefer the other */
};

/* What @accept, an Accept-Encoding header or NULL, takes. */
enum encoding accept_encoding(const char *accept);

#endif
