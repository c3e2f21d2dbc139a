/* curl.c - libcurl, loaded where it is installed */
#include <dlfcn.h>

#include "curl.h"

/* Debian has the library with OpenSSL and with GnuTLS. */
static void *open_library(void)
{
	void *so = dlopen("libcurl.so.4", RTLD_NOW);

	return so ? so : dlopen("libcurl-gnutls.so.4", RTLD_NOW);
}

const struct curl_functions *curl_load(void)
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
