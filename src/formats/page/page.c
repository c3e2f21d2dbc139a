/* page.c - the frame of the page, and text in it */
#include <string.h>

#include "page.h"
#include "symbols/short_name.h"
#include "base/utf8.h"

/* Writes the character at @s, or U+FFFD for invalid UTF-8. Returns its length. */
static size_t character(FILE *out, const char *s)
{
	size_t n = utf8_bytes(s);

	if (!n)
		fputs("&#xfffd;", out);
	else if (strchr("<>&\"", *s))
		fprintf(out, "&#%d;", *s);
	else if (utf8_is_control(s, n) && *s != '\t')
		fputc(' ', out);
	else
		fwrite(s, 1, n, out);
	return n ? n : 1;
}

void page_text(FILE *out, const char *s)
{
	while (*s) {
		/* Names and paths have no blanks, so these characters allow line breaks. */
		bool seam = *s == '/' || *s == '<' || (*s == ':' && s[1] != ':');

		s += character(out, s);
		if (seam)
			fputs("<wbr>", out);
	}
}

void page_attribute(FILE *out, const char *s, size_t columns)
{
	char text[4096];

	snprintf(text, sizeof(text), "%s", s);
	for (const char *c = fit_text(text, sizeof(text), columns); *c;)
		c += character(out, c);
}

bool page_has_section(const struct profile *p, size_t i)
{
	return i < PAGE_SOURCE_FUNCTIONS &&
	       profile_percent(p, p->functions[i].samples) >= PAGE_SOURCE_PERCENT;
}

void page_fact(FILE *out, const char *what, const char *value, const char *class)
{
	fprintf(out, "<div%s><dt>%s</dt><dd>", class, what);
	page_text(out, value);
	fputs("</dd></div>\n", out);
}

/* A policy that allows no style attributes leaves classes for lengths and shades: .s1 to .s100. */
void page_styles(FILE *out)
{
	fputs(page_css, out);
	fputs(flame_css, out);
	fputs(strip_css, out);
	for (int i = 1; i <= 100; i++)
		fprintf(out, ".s%d{--share:%d%%;--heat:%d%%}\n", i, i, i);
}

void page_begin(FILE *out, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<link rel=\"icon\" href=\"data:,\">\n<title>",
	      out);
	page_text(out, title);
	fputs("</title>\n<style>\n", out);
	page_styles(out);
	fputs("</style></head><body>\n", out);
}

void page_end(FILE *out)
{
	fputs("<script>\n", out);
	fputs(page_js, out);
	fputs("</script><script>\n", out);
	fputs(strip_js, out);
	fputs("</script><script>\n", out);
	fputs(flame_js, out);
	fputs("</script></body></html>\n", out);
}
