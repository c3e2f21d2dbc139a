/* otlp_http.c - sends requests of OTLP over HTTP, and reads the answers */
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

/* With @is_base, adds the path of the signal. */
static char *complete_url(const char *endpoint, bool is_base)
{
	size_t n = strlen(endpoint);
	char *url;

	while (is_base && n && endpoint[n - 1] == '/')
		n--;
	return asprintf(&url, "%s%.*s%s", host_of(endpoint) == endpoint ? "http://" : "", (int)n,
			endpoint, is_base ? OTLP_PATH : "") < 0
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
		if (*s == '%' && digit(s[1]) >= 0 && digit(s[2]) >= 0) {
			*to++ = (char)(digit(s[1]) << 4 | digit(s[2]));
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

static int prepare(struct otlp_http *h, const char *const *header, size_t nheaders)
{
	const char *compression = setting("COMPRESSION", NULL);

	h->gzip = !compression || strcmp(compression, "none") != 0;
	/* Without "Expect:", libcurl would wait a second for "100 Continue". */
	if (add_header(h, "Content-Type: application/x-protobuf") || add_header(h, "Expect:") ||
	    (h->gzip && add_header(h, "Content-Encoding: gzip")) ||
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
	return 0;
}

static int check_protocol(void)
{
	const char *protocol = setting("PROTOCOL", NULL);

	if (!protocol || !strcmp(protocol, "http/protobuf"))
		return CTL_OK;
	log_err("machine push: OTEL_EXPORTER_OTLP_PROTOCOL=%s: only http/protobuf is supported; a "
		"collector forwards to receivers of grpc",
		protocol);
	return CTL_USAGE;
}

int otlp_http_open(struct otlp_http **out, const char *endpoint, const char *const *header,
		   size_t nheaders, int stop)
{
	bool complete = endpoint && has_path(endpoint);
	struct otlp_http *h;

	if (!endpoint)
		endpoint = setting("ENDPOINT", &complete);
	if (!endpoint) {
		log_err("machine push: needs a URL: 'profilctl machine push http://HOST:4318', or "
			"OTEL_EXPORTER_OTLP_ENDPOINT");
		return CTL_USAGE;
	}
	if (check_protocol())
		return CTL_USAGE;
	h = calloc(1, sizeof(*h));
	if (h) {
		h->stop = stop;
		h->url = complete_url(endpoint, !complete);
		h->shown = h->url ? without_password(h->url) : NULL;
		h->curl = curl_load();
	}
	if (h && !h->curl)
		log_err("machine push: libcurl is not installed (apt install libcurl4)");
	else if (!h || !h->shown || prepare(h, header, nheaders) < 0)
		log_err("machine push: %s", strerror(ENOMEM));
	else {
		*out = h;
		return CTL_OK;
	}
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

/* Compresses *@bytes into *@own, if that is wanted. */
static int compress_request(const struct otlp_http *h, char **own, const char **bytes, size_t *n)
{
	size_t packed;
	FILE *f;
	int err;

	if (!h->gzip)
		return 0;
	f = open_memstream(own, &packed);
	err = f ? gzip_write(f, *bytes, *n) : -ENOMEM;
	if (f && fclose(f) && !err)
		err = -ENOMEM;
	if (!err) {
		*bytes = *own;
		*n = packed;
	}
	return err;
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
	if (compress_request(h, &packed, &bytes, &n) < 0) {
		snprintf(a->why, sizeof(a->why), "%s", strerror(ENOMEM));
		return OTLP_LATER;
	}
	h->answer_n = 0;
	h->too_long = false;
	*h->error = '\0';
	c->easy_setopt(h->easy, CURLOPT_POSTFIELDS, bytes);
	c->easy_setopt(h->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	code = c->easy_perform(h->easy);
	return code == CURLE_OK ? read_answer(h, a) : read_failure(h, a, code);
}
