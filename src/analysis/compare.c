/* compare.c - the significant changes between two profiles */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "group_by.h"

/* With fewer samples in both profiles together, no difference can be significant. */
#define LEAST_SAMPLES 10

static int add(struct changes *c, const struct profile *p, const struct row *row, int side)
{
	struct change *o = &c->change[c->n];

	*o = (struct change){ .p = 1 };
	o->samples[side] = row->samples;
	o->name = strdup(row->name);
	o->object = strdup(profile_base_name(p->objects[row->object].path));
	c->n++;
	return o->name && o->object ? 0 : -ENOMEM;
}

static int by_function(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	int order = strcmp(x->object, y->object);

	return order ? order : strcmp(x->name, y->name);
}

static void change_fini(struct change *o)
{
	free(o->name);
	free(o->object);
}

/* Merges functions with the same name and object. */
static void merge(struct changes *c)
{
	size_t n = 0;

	qsort(c->change, c->n, sizeof(*c->change), by_function);
	for (size_t i = 0; i < c->n; i++) {
		struct change *o = &c->change[i];

		if (n && !by_function(&c->change[n - 1], o)) {
			c->change[n - 1].samples[0] += o->samples[0];
			c->change[n - 1].samples[1] += o->samples[1];
			change_fini(o);
		} else {
			c->change[n++] = *o;
		}
	}
	c->n = n;
}

/*
 * The difference of two proportions of samples with a known function, and @z standard errors around
 * it. If few samples have one, the test lacks power and finds no change.
 */
static void test(struct change *o, __u64 binned_a, __u64 binned_b, double z)
{
	double na = (double)binned_a, nb = (double)binned_b;
	double pa = na > 0 ? (double)o->samples[0] / na : 0;
	double pb = nb > 0 ? (double)o->samples[1] / nb : 0;
	double error = sqrt(pa * (1 - pa) / na + pb * (1 - pb) / nb);
	bool few = o->samples[0] + o->samples[1] < LEAST_SAMPLES;

	o->percent[0] = 100 * pa;
	o->percent[1] = 100 * pb;
	o->low = 100 * (pb - pa - z * error);
	o->high = 100 * (pb - pa + z * error);
	o->p = few || pa == pb ? 1 : error > 0 ? erfc(fabs(pb - pa) / error / sqrt(2)) : 0;
	if (few) { /* the normal approximation does not hold: nothing excludes 0 */
		o->low = fmin(o->low, 0);
		o->high = fmax(o->high, 0);
	}
	o->significant = o->low > 0 || o->high < 0;
}

/* How many standard errors a normal deviate exceeds, on either side, with probability @p. */
static double deviation(double p)
{
	double low = 0, high = 40;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (erfc(middle / sqrt(2)) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/*
 * Bonferroni's method: among many functions some differ by chance; the intervals are so wide that
 * they all contain the true changes at once with probability 1 - COMPARE_ERROR. A change is
 * significant if its interval excludes 0, so that a table has one answer. Holm's method finds a few
 * changes more, but has no such intervals.
 */
static void judge(struct changes *c, __u64 binned_a, __u64 binned_b)
{
	double z;

	for (size_t i = 0; i < c->n; i++)
		c->tested += c->change[i].samples[0] + c->change[i].samples[1] >= LEAST_SAMPLES;
	z = deviation(COMPARE_ERROR / (double)(c->tested ? c->tested : 1));
	for (size_t i = 0; i < c->n; i++) {
		test(&c->change[i], binned_a, binned_b, z);
		c->change[i].significant &= c->sampled;
		c->significant += c->change[i].significant;
	}
	c->tested = c->sampled ? c->tested : 0;
}

static double size_of(const struct change *o)
{
	return fabs(o->percent[1] - o->percent[0]);
}

static int by_size(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->significant != y->significant)
		return x->significant ? -1 : 1;
	if (size_of(x) != size_of(y))
		return size_of(x) > size_of(y) ? -1 : 1;
	if (x->percent[0] != y->percent[0])
		return x->percent[0] > y->percent[0] ? -1 : 1;
	return by_function(x, y);
}

int compare_init(struct changes *c, const struct profile *a, const struct profile *b)
{
	const struct profile *side[] = { a, b };
	int err = 0;

	*c = (struct changes){ .change = calloc(a->nfunctions + b->nfunctions + 1,
						sizeof(*c->change)) };
	if (!c->change)
		return -ENOMEM;
	c->sampled = !profile_is_off_cpu(a) && !profile_is_off_cpu(b);
	for (int k = 0; k < 2 && !err; k++) {
		struct rows rows;

		err = rows_init(&rows, side[k], ROWS_FUNCTION);
		for (size_t i = 0; i < rows.n && !err; i++)
			err = add(c, side[k], &rows.row[i], k);
		rows_fini(&rows);
	}
	if (err < 0 || !a->binned || !b->binned)
		return err;
	merge(c);
	judge(c, a->binned, b->binned);
	qsort(c->change, c->n, sizeof(*c->change), by_size);
	return 0;
}

void compare_fini(struct changes *c)
{
	for (size_t i = 0; i < c->n; i++)
		change_fini(&c->change[i]);
	free(c->change);
}

const char *compare_unit(const struct profile *a, const struct profile *b)
{
	if (!a->tick_ns || !b->tick_ns || !a->duration_ns || !b->duration_ns)
		return NULL;
	return profile_is_wall(a)      ? "threads"
	       : profile_is_latency(a) ? "processes"
	       : profile_is_off_cpu(a) ? "asleep"
				       : "CPUs";
}

double compare_quantity(const struct profile *p, __u64 samples)
{
	return (double)samples * (double)p->tick_ns / (double)p->duration_ns;
}
