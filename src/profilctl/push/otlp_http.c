/* otlp_http.c - sends requests of OTLP over HTTP or gRPC, and reads the answers */
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/log.h"
#include "otlp_grpc.h"
#include "otlp_http.h"
#include "profilctl/util/exit_status.h"

/*
 * Only "machine push" needs the library and what that needs, so profilctl does not link it. These
 * are functions of libcurl.so.4.
 */
struct curl_functions {
	__typeof__(&curl_global_init) global_init;
	__typeof__(&curl_easy_init) easy_init;
	CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
	__typeof__(&curl_easy_perform) easy_perform;
	__typeof__(&curl_easy_cleanup) easy_cleanup;
	__typeof__(&curl_easy_strerror) easy_strerror;
	__typeof__(&curl_slist_append) slist_append;
	__typeof__(&curl_slist_free_all) slist_free_all;
};

/* Debian has the library with OpenSSL and with GnuTLS. */
static void *open_library(void)
{
	void *so = dlopen("libcurl.so.4", RTLD_NOW);

	return so ? so : dlopen("libcurl-gnutls.so.4", RTLD_NOW);
}

/* NULL: the library is not installed. */
static const struct curl_functions *curl_load(void)
{
	static struct curl_functions f;
	void *so = open_library();
	const struct {
		void *where;
		const char *name;
	} all[] = { { &f.global_init, "curl_global_init" },
		    { &f.easy_init, "curl_easy_init" },
		    { &f.easy_setopt, "curl_easy_setopt" },
		    { &f.easy_getinfo, "curl_easy_getinfo" },
		    { &f.easy_perform, "curl_easy_perform" },
		    { &f.easy_cleanup, "curl_easy_cleanup" },
		    { &f.easy_strerror, "curl_easy_strerror" },
		    { &f.slist_append, "curl_slist_append" },
		    { &f.slist_free_all, "curl_slist_free_all" } };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		void *function = so ? dlsym(so, all[i].name) : NULL;

		if (!function)
			return NULL;
		*(void **)all[i].where = function;
	}
	return f.global_init(CURL_GLOBAL_DEFAULT) ? NULL : &f;
}

#define TIMEOUT_MS 10000
#define ANSWER_MAX (4ul << 20)
#define WHY_MAX 200 /* bytes of the text with which a receiver refuses */

struct otlp_http {
	const struct curl_functions *curl;
	CURL *easy;
	struct curl_slist *headers;
	char *url;
	char *shown; /* without a password */
	bool gzip;
	bool grpc;
	struct grpc_status status;
	int stop;
	char *answer; /* received so far */
	size_t answer_n;
	bool too_long;
	char error[CURL_ERROR_SIZE]; /* of the last request; "": none */
};

/* The value of OTEL_EXPORTER_OTLP_PROFILES_@name or OTEL_EXPORTER_OTLP_@name; NULL: not set. */
static const char *setting(const char *name, bool *of_profiles)
{
	char key[64];
	const char *value;

	snprintf(key, sizeof(key), "OTEL_EXPORTER_OTLP_PROFILES_%s", name);
	value = getenv(key);
	if (of_profiles)
		*of_profiles = value && *value;
	if (value && *value)
		return value;
	snprintf(key, sizeof(key), "OTEL_EXPORTER_OTLP_%s", name);
	value = getenv(key);
	return value && *value ? value : NULL;
}

static const char *host_of(const char *url)
{
	const char *scheme = strstr(url, "://");

	return scheme ? scheme + 3 : url;
}

static bool has_path(const char *url)
{
	const char *path = strchr(host_of(url), '/');

	return path && path[1];
}

/* For OpenTelemetry gRPC is a setting; these schemes are our own. */
static bool has_grpc_scheme(const char *url)
{
	return !strncmp(url, "grpc://", 7) || !strncmp(url, "grpcs://", 8);
}

/* With @is_base, adds the path of the signal; gRPC always has its own. */
static char *complete_url(const char *endpoint, bool is_base, bool grpc)
{
	const char *host = host_of(endpoint), *end = host + strcspn(host, grpc ? "/" : "");
	const char *path = grpc ? GRPC_PATH : is_base ? OTLP_PATH : "", *scheme = "http://";
	char *url;

	while (*path && end > host && end[-1] == '/')
		end--;
	if (!strncmp(endpoint, "https://", 8) || !strncmp(endpoint, "grpcs://", 8))
		scheme = "https://";
	else if (host != endpoint && strncmp(endpoint, "grpc://", 7) != 0)
		scheme = NULL; /* libcurl refuses it, or it is http */
	return asprintf(&url, "%.*s%.*s%s", scheme ? 8 : (int)(host - endpoint),
			scheme ? scheme : endpoint, (int)(end - host), host, path) < 0
		       ? NULL
		       : url;
}

/* @url without what precedes '@' in it. */
static char *without_password(const char *url)
{
	const char *host = host_of(url), *at;
	char *shown;

	at = memchr(host, '@', strcspn(host, "/"));
	return asprintf(&shown, "%.*s%s", (int)(host - url), url, at ? at + 1 : host) < 0 ? NULL
											  : shown;
}

static int add_header(struct otlp_http *h, const char *line)
{
	struct curl_slist *more = h->curl->slist_append(h->headers, line);

	if (!more)
		return -ENOMEM;
	h->headers = more;
	return 0;
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c | 0x20) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes %XX in place, as in W3C's baggage. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		int high = *s == '%' ? digit(s[1]) : -1;
		int low = high < 0 ? -1 : digit(s[2]);

		if (low >= 0) {
			*to++ = (char)(16 * high + low);
			s += 2;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Adds the headers of "KEY=VALUE,KEY=VALUE". */
static int add_headers(struct otlp_http *h, const char *list)
{
	__cleanup(freep) char *copy = strdup(list ? list : "");
	char *rest = copy, *pair;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (pair = strsep(&rest, ","))) {
		char *value = strchr(pair, '='), line[4096];

		if (!value)
			continue;
		*value++ = '\0';
		unescape(value);
		if (strpbrk(value, "\r\n"))
			continue;
		snprintf(line, sizeof(line), "%s: %s", pair + strspn(pair, " "), value);
		err = add_header(h, line);
	}
	return err;
}

static size_t on_answer(char *bytes, size_t one, size_t n, void *http)
{
	struct otlp_http *h = http;
	char *more;

	h->too_long = h->answer_n + n > ANSWER_MAX;
	more = h->too_long ? NULL : realloc(h->answer, h->answer_n + n + 1);
	if (!more)
		return 0;
	h->answer = more;
	memcpy(more + h->answer_n, bytes, n);
	h->answer_n += n;
	more[h->answer_n] = '\0';
	return n;
}

static size_t on_header(char *line, size_t one, size_t n, void *http)
{
	struct otlp_http *h = http;

	grpc_read_header(&h->status, line, n);
	return n;
}

static int on_progress(void *http, curl_off_t all, curl_off_t now, curl_off_t all_up,
		       curl_off_t now_up)
{
	const struct otlp_http *h = http;
	struct pollfd p = { .fd = h->stop, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static long timeout_ms(void)
{
	const char *text = setting("TIMEOUT", NULL);
	long ms = text ? strtol(text, NULL, 10) : 0;

	return ms > 0 ? ms : TIMEOUT_MS;
}

static void set_options(struct otlp_http *h)
{
	const struct curl_functions *c = h->curl;
	const char *ca = setting("CERTIFICATE", NULL), *key = setting("CLIENT_KEY", NULL),
		   *certificate = setting("CLIENT_CERTIFICATE", NULL);

	c->easy_setopt(h->easy, CURLOPT_URL, h->url);
	c->easy_setopt(h->easy, CURLOPT_HTTPHEADER, h->headers);
	c->easy_setopt(h->easy, CURLOPT_USERAGENT, "profil/" PROFIL_VERSION);
	c->easy_setopt(h->easy, CURLOPT_TIMEOUT_MS, timeout_ms());
	c->easy_setopt(h->easy, CURLOPT_NOSIGNAL, 1L);
	c->easy_setopt(h->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	c->easy_setopt(h->easy, CURLOPT_ERRORBUFFER, h->error);
	c->easy_setopt(h->easy, CURLOPT_WRITEFUNCTION, on_answer);
	c->easy_setopt(h->easy, CURLOPT_WRITEDATA, h);
	c->easy_setopt(h->easy, CURLOPT_HEADERFUNCTION, on_header);
	c->easy_setopt(h->easy, CURLOPT_HEADERDATA, h);
	c->easy_setopt(h->easy, CURLOPT_NOPROGRESS, 0L);
	c->easy_setopt(h->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
	c->easy_setopt(h->easy, CURLOPT_XFERINFODATA, h);
	if (ca)
		c->easy_setopt(h->easy, CURLOPT_CAINFO, ca);
	if (key)
		c->easy_setopt(h->easy, CURLOPT_SSLKEY, key);
	if (certificate)
		c->easy_setopt(h->easy, CURLOPT_SSLCERT, certificate);
}

static int set_http_version(const struct otlp_http *h)
{
	long version = strncmp(h->url, "https:", 6) ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
						    : CURL_HTTP_VERSION_2TLS;

	if (!h->grpc)
		return 0;
	/* libcurl 7.88 sends nothing over a connection of HTTP/2 that it has from a request before. */
	h->curl->easy_setopt(h->easy, CURLOPT_FORBID_REUSE, 1L);
	return h->curl->easy_setopt(h->easy, CURLOPT_HTTP_VERSION, version) ? -EPROTONOSUPPORT : 0;
}

static int prepare(struct otlp_http *h, const char *const *header, size_t nheaders)
{
	const char *compression = setting("COMPRESSION", NULL);

	h->gzip = !compression || strcmp(compression, "none") != 0;
	/* Without "Expect:", libcurl would wait a second for "100 Continue". */
	if (add_header(h, h->grpc ? "Content-Type: application/grpc"
				  : "Content-Type: application/x-protobuf") ||
	    add_header(h, h->grpc ? "TE: trailers" : "Expect:") ||
	    (h->gzip &&
	     add_header(h, h->grpc ? "grpc-encoding: gzip" : "Content-Encoding: gzip")) ||
	    add_headers(h, setting("HEADERS", NULL)))
		return -ENOMEM;
	for (size_t i = 0; i < nheaders; i++) {
		if (add_header(h, header[i]))
			return -ENOMEM;
	}
	h->easy = h->curl->easy_init();
	if (!h->easy)
		return -ENOMEM;
	set_options(h);
	return set_http_version(h);
}

static int choose_protocol(struct otlp_http *h, const char *endpoint)
{
	const char *protocol = setting("PROTOCOL", NULL);

	h->grpc = has_grpc_scheme(endpoint) || (protocol && !strcmp(protocol, "grpc"));
	if (h->grpc || !protocol || !strcmp(protocol, "http/protobuf"))
		return CTL_OK;
	log_err("machine push: OTEL_EXPORTER_OTLP_PROTOCOL=%s: only http/protobuf and grpc are "
		"supported",
		protocol);
	return CTL_USAGE;
}

int otlp_http_open(struct otlp_http **out, const char *endpoint, const char *const *header,
		   size_t nheaders, int stop)
{
	bool complete = endpoint && has_path(endpoint);
	struct otlp_http *h;
	int err;

	if (!endpoint)
		endpoint = setting("ENDPOINT", &complete);
	if (!endpoint) {
		log_err("machine push: needs a URL: 'profilctl machine push http://HOST:4318', or "
			"OTEL_EXPORTER_OTLP_ENDPOINT");
		return CTL_USAGE;
	}
	h = calloc(1, sizeof(*h));
	if (!h) {
		log_err("machine push: %s", strerror(ENOMEM));
		return CTL_ERROR;
	}
	err = choose_protocol(h, endpoint);
	if (err) {
		free(h);
		return err;
	}
	h->stop = stop;
	h->url = complete_url(endpoint, !complete, h->grpc);
	h->shown = h->url ? without_password(h->url) : NULL;
	h->curl = curl_load();
	err = h->shown && h->curl ? prepare(h, header, nheaders) : -ENOMEM;
	if (!err) {
		*out = h;
		return CTL_OK;
	}
	log_err("machine push: %s", !h->curl ? "libcurl is not installed (apt install libcurl4)"
				    : err == -EPROTONOSUPPORT
					    ? "this libcurl has no HTTP/2, which gRPC needs"
					    : strerror(-err));
	otlp_http_close(h);
	return CTL_ERROR;
}

void otlp_http_close(struct otlp_http *h)
{
	if (!h)
		return;
	if (h->easy)
		h->curl->easy_cleanup(h->easy);
	if (h->curl)
		h->curl->slist_free_all(h->headers);
	free(h->url);
	free(h->shown);
	free(h->answer);
	free(h);
}

const char *otlp_http_url(const struct otlp_http *h)
{
	return h->shown;
}

/* Puts the request into *@own as it is sent: compressed, and for gRPC behind a frame. */
static int pack_request(const struct otlp_http *h, char **own, const char **bytes, size_t *n)
{
	static const char frame[GRPC_FRAME_BYTES];
	size_t packed, begin = h->grpc ? sizeof(frame) : 0;
	FILE *f;
	int err = 0;

	if (!h->gzip && !h->grpc)
		return 0;
	f = open_memstream(own, &packed);
	if (!f)
		return -ENOMEM;
	fwrite(frame, 1, begin, f);
	if (h->gzip)
		err = gzip_write(f, *bytes, *n);
	else
		fwrite(*bytes, 1, *n, f);
	if ((ferror(f) | fclose(f)) && !err)
		err = -ENOMEM;
	if (err)
		return err;
	if (h->grpc)
		grpc_put_frame(*own, h->gzip, packed - begin);
	*bytes = *own;
	*n = packed;
	return 0;
}

/* OTLP: only these are worth another try. */
static bool is_temporary(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static enum otlp_outcome read_answer(const struct otlp_http *h, struct otlp_answer *a)
{
	const struct curl_functions *c = h->curl;
	curl_off_t wait_s = 0;
	long status = 0;

	c->easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	c->easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &wait_s);
	if (h->grpc && status == 200)
		return grpc_read_answer(&h->status, h->answer, h->answer_n, a);
	if (status / 100 == 2) {
		otlp_read_response(a, h->answer ? h->answer : "", h->answer_n);
		return OTLP_TAKEN;
	}
	a->wait_s = wait_s > 0 ? (__u64)wait_s : 0;
	snprintf(a->why, sizeof(a->why), "status %ld%s%.*s", status, h->answer_n ? ": " : "",
		 WHY_MAX, h->answer_n ? h->answer : "");
	return is_temporary(status) ? OTLP_LATER : OTLP_REFUSED;
}

/* A connection that ends before the answer leaves open whether the request was taken. */
static enum otlp_outcome read_failure(const struct otlp_http *h, struct otlp_answer *a,
				      CURLcode code)
{
	const char *what = *h->error ? h->error : h->curl->easy_strerror(code);
	bool untrusted = code == CURLE_PEER_FAILED_VERIFICATION;

	snprintf(a->why, sizeof(a->why), "%s%s",
		 h->too_long ? "its answer has more than 4 MiB" : what,
		 untrusted ? " (OTEL_EXPORTER_OTLP_CERTIFICATE names the file of a private "
			     "authority)"
			   : "");
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return OTLP_INTERRUPTED;
	if (h->too_long || code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT)
		return OTLP_REFUSED;
	return OTLP_LATER;
}

enum otlp_outcome otlp_http_send(struct otlp_http *h, const char *bytes, size_t n,
				 struct otlp_answer *a)
{
	const struct curl_functions *c = h->curl;
	__cleanup(freep) char *packed = NULL;
	CURLcode code;

	*a = (struct otlp_answer){ .why = "" };
	if (n > OTLP_REQUEST_MAX) {
		snprintf(a->why, sizeof(a->why), "the request has %zu MiB, more than %lu", n >> 20,
			 OTLP_REQUEST_MAX >> 20);
		return OTLP_REFUSED;
	}
	if (pack_request(h, &packed, &bytes, &n) < 0) {
		snprintf(a->why, sizeof(a->why), "%s", strerror(ENOMEM));
		return OTLP_LATER;
	}
	h->answer_n = 0;
	h->status = (struct grpc_status){ .code = -1 };
	h->too_long = false;
	*h->error = '\0';
	c->easy_setopt(h->easy, CURLOPT_POSTFIELDS, bytes);
	c->easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	code = c->easy_perform(h->easy);
	return code == CURLE_OK ? read_answer(h, a) : read_failure(h, a, code);
}
