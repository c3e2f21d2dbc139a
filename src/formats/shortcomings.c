/* shortcomings.c - what a profile lacks, in words: lost samples, missing names, and the remedies */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "profile/jit_runtime.h"
#include "profile/outcomes.h"
#include "symbols/proc/kernel_text.h"
#include "shortcomings.h"

/* Code without names is worth a line from this share on. */
#define UNNAMED_PERCENT_MIN 1

struct listener {
	void (*say)(void *ctx, const char *sentence);
	void *ctx;
};

__attribute__((format(printf, 2, 3))) static void say(const struct listener *l, const char *format,
						      ...)
{
	char sentence[512];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	l->say(l->ctx, sentence);
}

static void counts(const struct listener *l, const struct profile *p)
{
	for (size_t i = 0; i < OUTCOMES; i++) {
		const struct outcome *o = &outcomes[i];
		__u64 n = *outcome_of(p, o);

		if (n && o->text && !o->many)
			say(l, "%.3f s of CPU time of %s", (double)n / 1e9, o->text);
		else if (n && o->text)
			say(l, "%llu %s %s", n, n == 1 ? o->one : o->many, o->text);
	}
}

/*
 * The kernel's object, if its code has no symbols: then it is one function, named like the object.
 * With symbols, single places can be outside of all functions. NULL: there are names, or no
 * samples.
 */
static const struct object *nameless_kernel(const struct profile *p)
{
	const struct object *nameless = NULL;

	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];
		const struct object *o = &p->objects[f->object];

		if (o->kind != OBJECT_KERNEL)
			continue;
		if (f->name && strcmp(f->name, o->path) != 0)
			return NULL;
		nameless = o;
	}
	return nameless;
}

static void kernel(const struct listener *l, const struct profile *p)
{
	const struct object *o = nameless_kernel(p);
	const char *why;

	if (!o)
		return;
	if (!strcmp(o->unnamed, KERNEL_HIDDEN_KPTR))
		why = "kernel.kptr_restrict hid their addresses, from root too (record it again "
		      "after 'sysctl kernel.kptr_restrict=1')";
	else if (!strcmp(o->unnamed, KERNEL_HIDDEN_PRIVILEGE))
		why = "only root, or a process with CAP_SYSLOG, may read them, when it records";
	else if (!strcmp(o->unnamed, KERNEL_HIDDEN_FILE))
		why = "/proc/kallsyms could not be read when it was recorded";
	else
		why = "their addresses were hidden when it was recorded (by a user without "
		      "CAP_SYSLOG, or by kernel.kptr_restrict=2)";
	say(l, "functions of the kernel have no names: %s", why);
}

/* @runtime NULL: of none that is known. */
static __u64 unnamed_samples(const struct profile *p, const struct jit_runtime *runtime)
{
	__u64 samples = 0;

	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];
		const struct object *o = &p->objects[f->object];

		if (o->kind == OBJECT_ANON && (!f->name || !strcmp(f->name, o->path)) &&
		    jit_runtime_find(o->unnamed) == runtime)
			samples += f->samples;
	}
	return samples;
}

static void jit(const struct listener *l, const struct profile *p)
{
	for (size_t i = 0; i <= jit_nruntimes; i++) {
		const struct jit_runtime *r = i < jit_nruntimes ? &jit_runtimes[i] : NULL;
		double percent = profile_percent(p, unnamed_samples(p, r));

		if (percent < UNNAMED_PERCENT_MIN)
			continue;
		if (r)
			say(l, "%.2f %% is code that %s compiled at run time, without names: %s",
			    percent, r->name, r->names_cure);
		else
			say(l,
			    "%.2f %% is code made at run time that no perf map "
			    "(/tmp/perf-PID.map) names",
			    percent);
	}
}

static void interpreters(const struct listener *l, const struct profile *p)
{
	for (size_t o = 0; o < p->nobjects; o++) {
		__u64 samples = 0;

		if (strcmp(p->objects[o].unnamed, PROFILE_UNNAMED_INTERPRETER) != 0)
			continue;
		for (size_t i = 0; i < p->nfunctions; i++)
			samples += p->functions[i].object == o ? p->functions[i].samples : 0;
		if (profile_percent(p, samples) >= UNNAMED_PERCENT_MIN)
			say(l,
			    "%.2f %% is in %s, an interpreter of a version whose functions are not "
			    "known: only its own code has names (profilctl(1), \"-g\", has the "
			    "versions)",
			    profile_percent(p, samples), p->objects[o].path);
	}
}

void shortcomings_each(const struct profile *p, void (*tell)(void *ctx, const char *sentence),
		       void *ctx)
{
	const struct listener l = { tell, ctx };

	counts(&l, p);
	kernel(&l, p);
	jit(&l, p);
	interpreters(&l, p);
}
