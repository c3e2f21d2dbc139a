/* paired.c - whether a program has become faster: times that were taken in turns */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "paired.h"

#define ERROR 0.01

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The median of @n sorted numbers. */
static double median(const double *x, size_t n)
{
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/*
 * How many of @n sorted numbers lie below the interval of their median, and as many above: the most
 * for which fewer heads of @n throws of a coin are as rare as half of the error.
 */
static size_t outside(size_t n)
{
	double probability = pow(0.5, (double)n), sum = probability;
	size_t k = 0;

	while (sum + probability * (double)(n - k) / (double)(k + 1) <= ERROR / 2) {
		probability *= (double)(n - k) / (double)(k + 1);
		sum += probability;
		k++;
	}
	return k;
}

int paired_compare(struct paired *out, const struct round *round, size_t n)
{
	__cleanup(freep) double *x = calloc(n, sizeof(*x));
	size_t k = outside(n);

	if (!x)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		x[i] = round[i].before_s;
	qsort(x, n, sizeof(*x), by_size);
	out->before_s = median(x, n);
	for (size_t i = 0; i < n; i++)
		x[i] = round[i].after_s;
	qsort(x, n, sizeof(*x), by_size);
	out->after_s = median(x, n);
	for (size_t i = 0; i < n; i++)
		x[i] = round[i].before_s > 0 ? round[i].after_s / round[i].before_s : 1;
	qsort(x, n, sizeof(*x), by_size);
	out->ratio = median(x, n);
	out->low = x[k];
	out->high = x[n - 1 - k];
	return 0;
}
