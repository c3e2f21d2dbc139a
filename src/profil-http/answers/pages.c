/* pages.c - static pages */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/page/spool_page.h"
#include "pages.h"

extern const char page_js[], flame_js[], strip_js[];

static const char index_html[] =
	"<!DOCTYPE html>\n"
	"<html lang=\"en\"><meta charset=\"utf-8\"><title>/debug/pprof/</title>\n"
	"<h1>/debug/pprof/</h1>\n"
	"<p>The profile of the whole machine, as <a href=\"https://github.com/google/pprof\">pprof"
	"</a> and the collectors of continuous profiles read it.</p>\n"
	"<dl>\n"
	"<dt><a href=\"profile?seconds=10\">profile?seconds=N</a></dt>\n"
	"<dd>CPU time of the next N seconds, by call stack if the machine's profile has them "
	"(<code>profilctl machine on -g</code>), else by place; with "
	"<code>&amp;by=stack</code>, <code>&amp;by=place</code> or <code>&amp;by=unit</code> by "
	"one of these, or by command, unit and file.</dd>\n"
	"<dt><a href=\"folded?seconds=10\">folded?seconds=N</a></dt>\n"
	"<dd>The same as text: a line for each stack, for flame graph tools.</dd>\n"
	"<dt><a href=\"total\">total</a></dt>\n"
	"<dd>CPU time since the machine's profile was turned on; <code>?by=</code> "
	"likewise.</dd>\n"
	"</dl>\n";

static const struct page {
	const char *url;
	const char *type;
	const char *text;
} pages[] = {
	{ "/debug/pprof/", "text/html; charset=utf-8", index_html },
	/* go tool pprof requests symbols that a profile lacks: none are available. */
	{ "/debug/pprof/symbol", "text/plain; charset=utf-8", "num_symbols: 0\n" },
	{ "/debug/pprof", "text/html; charset=utf-8", index_html },
	{ "/page.css", "text/css; charset=utf-8", NULL }, /* spool_page_styles() */
	{ "/page.js", "text/javascript; charset=utf-8", page_js },
	{ "/flame.js", "text/javascript; charset=utf-8", flame_js },
	{ "/strip.js", "text/javascript; charset=utf-8", strip_js },
	{ "/spool.js", "text/javascript; charset=utf-8", spool_js },
};

static struct answer *make(const struct page *p)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	struct answer *a;

	if (!out)
		return NULL;
	if (p->text)
		fputs(p->text, out);
	else
		spool_page_styles(out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	a = answer_new(200, p->type, text, n);
	if (a)
		answer_is_constant(a);
	return a;
}

struct answer *pages_answer(const char *url)
{
	static struct answer *made[sizeof(pages) / sizeof(*pages)];

	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++) {
		if (strcmp(url, pages[i].url) != 0)
			continue;
		if (!made[i])
			made[i] = make(&pages[i]);
		return made[i] ? answer_ref(made[i]) : NULL;
	}
	return answer_text(404, "not found (see / and /debug/pprof/)");
}
