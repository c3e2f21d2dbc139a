/* accept.c - content negotiation, and conditional requests */
#include <criterion/criterion.h>

#include "profil-http/accept.h"
#include "profil-http/answers/answer.h"

#define OPEN "application/openmetrics-text"

Test(accept, chooses_the_format_of_metrics)
{
	static const struct {
		const char *accept;
		enum metrics_format format;
	} cases[] = {
		{ NULL, METRICS_PROMETHEUS },
		{ "", METRICS_PROMETHEUS },
		{ "*/*", METRICS_PROMETHEUS },
		{ "text/plain;version=0.0.4", METRICS_PROMETHEUS },
		{ "text/*", METRICS_PROMETHEUS },
		{ OPEN, METRICS_OPENMETRICS },
		{ "Application/OpenMetrics-Text", METRICS_OPENMETRICS },
		/* Prometheus 2.42 */
		{ OPEN ";version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
		       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  METRICS_OPENMETRICS },
		{ OPEN "; q=0.5, text/plain", METRICS_PROMETHEUS },
		{ OPEN ";q=0.5, text/plain;q=0.5", METRICS_OPENMETRICS },
		{ OPEN ";q=0, */*", METRICS_PROMETHEUS },
		{ "text/plain;q=0, */*;q=0.1", METRICS_OPENMETRICS },
		{ "text/plain;q=0.0", METRICS_NONE },
		{ "application/*", METRICS_OPENMETRICS },
		{ "application/json", METRICS_NONE },
		{ "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		  METRICS_PROMETHEUS },
		{ OPEN "x", METRICS_NONE },
		{ ",, ;q=1, text/plain", METRICS_PROMETHEUS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect_eq(accept_metrics(cases[i].accept), cases[i].format, "%s",
			     cases[i].accept);
}

Test(accept, takes_the_most_specific_range)
{
	int named;

	cr_expect_eq(accept_quality("*/*;q=0.1, text/*;q=0.25, text/plain;q=0.375", "text", "plain",
				    &named),
		     375);
	cr_expect(named);
	cr_expect_eq(accept_quality("*/*;q=0.1, text/*;q=0.25", "text", "plain", &named), 250);
	cr_expect_not(named);
	cr_expect_eq(accept_quality("text/plain;charset=utf-8;q=1.000", "text", "plain", &named),
		     1000);
}

Test(accept, chooses_a_content_coding)
{
	static const struct {
		const char *accept;
		enum encoding encoding;
	} cases[] = {
		{ NULL, ENCODING_IDENTITY },
		{ "", ENCODING_IDENTITY },
		{ "gzip", ENCODING_GZIP },
		{ "GZIP;q=0.1", ENCODING_GZIP },
		{ "x-gzip", ENCODING_GZIP },
		{ "br, deflate", ENCODING_IDENTITY },
		{ "gzip, deflate, br, zstd", ENCODING_GZIP }, /* browsers */
		{ "*", ENCODING_GZIP },
		{ "gzip;q=0, *", ENCODING_IDENTITY },
		{ "gzip;q=0", ENCODING_IDENTITY },
		{ "identity;q=1, gzip;q=0.5", ENCODING_IDENTITY },
		{ "identity;q=0.5, gzip;q=0.5", ENCODING_GZIP },
		{ "identity;q=0", ENCODING_NONE },
		{ "identity;q=0, gzip", ENCODING_GZIP },
		{ "*;q=0", ENCODING_NONE },
		{ "br, *;q=0", ENCODING_NONE },
		{ "identity, *;q=0", ENCODING_IDENTITY },
		{ "gzip;q=0, identity;q=0", ENCODING_NONE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect_eq(accept_encoding(cases[i].accept), cases[i].encoding, "%s",
			     cases[i].accept);
}

Test(conditional, compares_entity_tags)
{
	static const struct {
		const char *etag, *match, *none_match;
		unsigned int status;
	} cases[] = {
		{ "\"a\"", NULL, NULL, 200 },
		{ "\"a\"", NULL, "\"a\"", 304 },
		{ "\"a\"", NULL, "W/\"a\"", 304 },
		{ "\"a\"", NULL, "\"b\"", 200 },
		{ "\"a\"", NULL, "\"b\", \"a\"", 304 },
		{ "\"a\"", NULL, "\"b\",W/\"c,d\" , \"a\"", 304 },
		{ "\"a\"", NULL, "*", 304 },
		{ NULL, NULL, "\"a\"", 200 },
		{ "\"a\"", NULL, "a", 200 },
		{ "\"a\"", NULL, "\"a", 200 },
		{ "\"a\"", NULL, "\"a-gzip\"", 200 },
		{ "\"a\"", "\"a\"", NULL, 200 },
		{ "\"a\"", "W/\"a\"", NULL, 412 }, /* If-Match compares strongly */
		{ "\"a\"", "\"b\"", NULL, 412 },
		{ "\"a\"", "*", NULL, 200 },
		{ NULL, "\"b\"", NULL, 412 },
		{ "\"a\"", "\"a\"", "\"a\"", 304 },
		{ "\"a\"", "\"b\"", "\"a\"", 412 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect_eq(conditional_status(cases[i].etag, cases[i].match, cases[i].none_match),
			     cases[i].status, "case %zu", i);
}
