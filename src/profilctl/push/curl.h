/* curl.h - libcurl, loaded where it is installed */
#ifndef PROFIL_PROFILCTL_PUSH_CURL_H
#define PROFIL_PROFILCTL_PUSH_CURL_H

#include <curl/curl.h>

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

/* NULL: the library is not installed. */
const struct curl_functions *curl_load(void);

#endif
