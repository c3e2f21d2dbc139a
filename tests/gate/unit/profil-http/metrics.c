/* metrics.c - labels are escaped as OpenMetrics has it */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "profil-http/answers/metrics.h"

/* systemd's own unit names have backslashes: dev-disk-by\x2duuid.device. */
Test(http_metrics, escapes_backslashes_quotation_marks_and_line_breaks)
{
	static const struct host_identity host = { .name = "a\\x2d\"b\"\n<&'\xff" };
	static struct snapshot to;
	struct difference d = { .to = &to };
	struct metrics m = { 0 };
	struct profile p = { 0 };
	struct cost cost = { 0 };
	struct answer *a = NULL;

	cr_assert_eq(metrics_answer(&a, &m, &p, &d, &host, &cost, true), 0);
	cr_assert_not_null(strstr(a->bytes, "=\"a\\\\x2d\\\"b\\\"\\n<&'\xef\xbf\xbd\""), "%.2000s",
			   a->bytes);
	answer_unref(a);
	metrics_fini(&m);
}
