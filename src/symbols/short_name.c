/* short_name.c - shortens function names to a number of columns */
/*
 * C++:  void std::sort<int*, std::less<int> >(int*, int*, std::less<int>) [clone .cold]
 *       return type   template arguments   parameters                      clone
 * Rust: <alloc::vec::Vec<T> as core::fmt::Debug>::fmt       a name may begin with an angle bracket
 * Go:   encoding/json.(*decodeState).object                 parentheses may stand for a receiver
 *
 * The language of a name is unknown, so each rule tests for syntax that only its language has. A
 * name that cannot be parsed, as from a JIT compiler, stays as it is.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "short_name.h"

#define ELLIPSIS "..."

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The length of an operator name that contains brackets, as "operator<<"; 0: none. */
static size_t operator_of(const char *s)
{
	static const char *const symbols[] = { "()", "[]", "<=>", "<<=", ">>=", "<<", ">>",
					       "<=", ">=", "->*", "->",	 "<",	">" };
	const size_t n = strlen("operator");

	if (strncmp(s, "operator", n) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		if (!strncmp(s + n, symbols[i], strlen(symbols[i])))
			return n + strlen(symbols[i]);
	}
	return 0;
}

/*
 * The bracket that closes the one at @open; NULL: none. Angle brackets inside of other brackets
 * need not match.
 */
static const char *closing(const char *open)
{
	char stack[256] = { *open };
	size_t depth = 1; /* number of open brackets, at least one */

	for (const char *c = open + 1; *c; c++) {
		const char *closes;

		if (operator_of(c)) { /* its characters are not brackets */
			c += operator_of(c) - 1;
			continue;
		}
		if (strchr("<([{", *c)) {
			if (depth == sizeof(stack))
				return NULL;
			stack[depth++] = *c;
			continue;
		}
		closes = strchr(">)]}", *c);
		if (!closes || (*c == '>' && (c[-1] == '-' || stack[depth - 1] != '<')))
			continue;
		/* An unmatched "<" inside of parentheses can be an operator. */
		while (depth > 1 && *c != '>' && stack[depth - 1] == '<')
			depth--;
		if (stack[depth - 1] != "<([{"[closes - ">)]}"])
			return NULL;
		if (!--depth)
			return c;
	}
	return NULL;
}

/* Spellings of compilers and their usual forms: @from is replaced by @to. */
static const struct {
	const char *from;
	const char *to;
} spellings[] = {
	{ "std::__cxx11::", "std::" },
	{ "std::__1::", "std::" },
	{ "std::__Cr::", "std::" },
	{ "std::__debug::", "std::" },
	{ "[abi:cxx11]", "" },
	{ "> >", ">>" },
	{ "> >", ">>" }, /* twice: of three brackets the middle one is in two pairs */
	{ "std::basic_string<char>", "std::string" },
	{ "std::basic_string_view<char>", "std::string_view" },
	{ "std::basic_ostream<char>", "std::ostream" },
	{ "std::basic_istream<char>", "std::istream" },
	{ "std::basic_ostringstream<char>", "std::ostringstream" },
	{ "std::basic_istringstream<char>", "std::istringstream" },
	{ "std::basic_stringstream<char>", "std::stringstream" },
};

/* Default template arguments. */
static const char *const defaults[] = {
	", std::allocator<", ", std::char_traits<", ", std::less<",	      ", std::hash<",
	", std::equal_to<",  ", std::greater<",	    ", std::default_delete<",
};

/* Replaces all occurrences of @from by @to, which is not longer. */
static void respell(char *s, const char *from, const char *to)
{
	size_t was = strlen(from);

	while ((s = strstr(s, from))) {
		char *end = stpncpy(s, to, was);

		memmove(end, s + was, strlen(s + was) + 1);
		s = end;
	}
}

/* Removes all arguments that begin with @argument and are the last of a list. */
static void drop_default(char *s, const char *argument)
{
	while ((s = strstr(s, argument))) {
		const char *end = closing(s + strlen(argument) - 1);

		if (!end) {
			s++;
			continue;
		}
		for (end++; *end == ' ';)
			end++;
		if (*end == '>' || *end == ',')
			memmove(s, end, strlen(end) + 1);
		else
			s++;
	}
}

static void drop_defaults(char *s)
{
	for (size_t i = 0; i < 4; i++)
		respell(s, spellings[i].from, spellings[i].to);
	for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
		drop_default(s, defaults[i]);
	for (size_t i = 4; i < sizeof(spellings) / sizeof(*spellings); i++)
		respell(s, spellings[i].from, spellings[i].to);
}

struct shortening {
	enum name_form form;
	const char *name; /* whole name */
	const char *at;	  /* read position */
	char *out;
	size_t n;
	size_t begins;	 /* in @out, after the return type */
	bool has_params; /* a list of parameters was left out */
};

static void put(struct shortening *s, const char *from, const char *upto)
{
	memcpy(s->out + s->n, from, (size_t)(upto - from));
	s->n += (size_t)(upto - from);
	s->at = upto;
}

/* Copies an operator name, whose characters are not brackets. Returns false if there is none. */
static bool put_operator(struct shortening *s)
{
	const char *at = s->at, *end = at + strlen("operator");

	if (strncmp(at, "operator", strlen("operator")) != 0 || is_word(*end) ||
	    (at > s->name && is_word(at[-1])))
		return false;
	if (operator_of(at)) {
		end = at + operator_of(at);
		put(s, at, end + (end[0] == ' ' && end[1] == '<'));
		return true;
	}
	/* "operator new", "operator bool": up to the parameters. */
	put(s, at, end + strcspn(end, "(<"));
	return true;
}

/* A list of parameters, not the receiver of a Go method nor "(anonymous namespace)". */
static bool are_params(const struct shortening *s, const char *end)
{
	static const char anonymous[] = "(anonymous namespace)", type[] = "decltype";

	if (!strncmp(s->at, anonymous, strlen(anonymous)) || end[1] == '.')
		return false;
	if (s->n >= strlen(type) && !memcmp(s->at - strlen(type), type, strlen(type)))
		return false;
	return s->n > s->begins && (is_word(s->at[-1]) || strchr(">)]}=+-*/%^&|~!,", s->at[-1]));
}

/* "{lambda(int)#1}" is left as "{lambda#1}". */
static void put_braces(struct shortening *s, const char *end)
{
	const char *open = memchr(s->at, '(', (size_t)(end - s->at));
	const char *close = open ? closing(open) : NULL;

	if (close && close < end) {
		put(s, s->at, open);
		s->at = close + 1;
	}
	put(s, s->at, end + 1);
}

/* Template arguments; those not longer than "<...>" are not abbreviated. */
static void put_template(struct shortening *s, const char *end)
{
	bool after_name = s->at > s->name && (is_word(s->at[-1]) || s->at[-1] == ':' ||
					      s->at[-1] == ']' || s->at[-1] == ' ');

	if (s->form == NAME_PLAIN || !after_name || end - s->at < 6) {
		put(s, s->at, end + 1);
		return;
	}
	memcpy(s->out + s->n, "<" ELLIPSIS ">", 5);
	s->n += 5;
	s->at = end + 1;
}

/* Handles a group in brackets. */
static void put_group(struct shortening *s)
{
	const char *end = closing(s->at);

	if (!end) {
		put(s, s->at, s->at + strlen(s->at));
	} else if (*s->at == '(' && are_params(s, end)) {
		s->has_params = true;
		s->at = end + 1;
		/* Qualifiers of the method. */
		while (!strncmp(s->at, " const", 6) || !strncmp(s->at, " &", 2) ||
		       !strncmp(s->at, " volatile", 9))
			s->at += 1 + strcspn(s->at + 1, " :[");
	} else if (*s->at == '{') {
		put_braces(s, end);
	} else if (*s->at == '<') {
		put_template(s, end);
	} else if (*s->at == '[' && s->form == NAME_BARE && s->at > s->name && is_word(s->at[-1]) &&
		   end - s->at > 5) { /* Go's type arguments */
		memcpy(s->out + s->n, "[" ELLIPSIS "]", 5);
		s->n += 5;
		s->at = end + 1;
	} else {
		put(s, s->at, end + 1);
	}
}

/* A blank outside of all brackets ends a return type; after the parameters it precedes "[clone". */
static void put_blank(struct shortening *s)
{
	put(s, s->at, s->at + 1);
	if (!s->has_params)
		s->begins = s->n;
}

/* The length of a compiler's prefix before the function's name, as "virtual thunk to ". */
static size_t about(const char *name)
{
	static const char *const what[] = { "non-virtual thunk to ", "virtual thunk to ",
					    "TLS init function for ", "TLS wrapper function for " };

	for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++) {
		if (!strncmp(name, what[i], strlen(what[i])))
			return strlen(what[i]);
	}
	return 0;
}

/*
 * The length of a Go package path: "encoding/json.Unmarshal" is usually written "json.Unmarshal".
 */
static size_t packages(const char *name)
{
	const char *slash = NULL;

	for (const char *c = name; is_word(*c) || strchr("/-.~", *c); c++) {
		if (!*c)
			break;
		if (*c == '/')
			slash = c;
	}
	if (!slash || *name == '/' || slash == name || !strchr(slash, '.'))
		return 0;
	return (size_t)(slash + 1 - name);
}

/* Only Go's package paths and C++'s operators have a slash in names. */
static bool is_path(const char *name)
{
	return !packages(name) && *name != '/' && strchr(name, '/') && !strstr(name, "operator");
}

char *short_name(const char *name, enum name_form form)
{
	__cleanup(freep) char *own = NULL;
	struct shortening s = { .form = form };
	size_t prefix, begins;

	if (is_path(name))
		return strdup(name);
	own = strdup(name + packages(name));
	if (!own)
		return NULL;
	drop_defaults(own);
	s.name = s.at = own;
	s.out = malloc(strlen(own) + 1);
	if (!s.out)
		return NULL;
	prefix = about(own);
	put(&s, own, own + prefix);
	s.begins = prefix;
	while (*s.at) {
		if (put_operator(&s))
			continue;
		if (strchr("<([{", *s.at))
			put_group(&s);
		else if (*s.at == ' ')
			put_blank(&s);
		else
			put(&s, s.at, s.at + 1);
	}
	s.out[s.n] = '\0';
	/* Only templates have a return type, and these always have parameters. */
	begins = s.has_params ? s.begins : prefix;
	memmove(s.out + prefix, s.out + begins, s.n - begins + 1);
	if (!*s.out) {
		free(s.out);
		return steal(own);
	}
	return s.out;
}

size_t columns_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80; /* the first byte of a character */
	return n;
}

char *fit_text(char *s, size_t bytes, size_t columns)
{
	size_t keep = columns > 3 ? columns - 3 : 0, n = 0, at = 0;

	if (columns_of(s) <= columns)
		return s;
	for (; s[at] && (((unsigned char)s[at] & 0xc0) == 0x80 || n < keep); at++)
		n += ((unsigned char)s[at] & 0xc0) != 0x80;
	snprintf(s + at, bytes - at, "%.*s", (int)columns, ELLIPSIS);
	return s;
}

/* The name without its outermost namespace; NULL: none. */
static const char *inner_name(const char *s)
{
	for (const char *c = s; *c; c++) {
		if (strchr("<([{", *c)) {
			c = closing(c);
			if (!c)
				return NULL;
		} else if (c[0] == ':' && c[1] == ':') {
			return c + 2;
		}
	}
	return NULL;
}

const char *fit_name(char *out, size_t bytes, const char *name, size_t columns)
{
	__cleanup(freep) char *plain = short_name(name, NAME_PLAIN);
	__cleanup(freep) char *bare = short_name(name, NAME_BARE);
	const char *fits = plain && columns_of(plain) <= columns ? plain : bare ? bare : name;
	const char *inner;

	/* Keep the last qualifier, the class of a method. */
	while (columns_of(fits) > columns && (inner = inner_name(fits)) && inner_name(inner))
		fits = inner;
	snprintf(out, bytes, "%s", fits);
	return fit_text(out, bytes, columns);
}
