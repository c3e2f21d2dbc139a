/* confidence.c - the confidence interval of a sampled share */
#include <math.h>

#include "confidence.h"

#define Z95 1.959963985

struct interval confidence_interval(__u64 samples, __u64 total)
{
	double n = (double)total, p = n > 0 ? (double)samples / n : 0, z2 = Z95 * Z95;
	double middle, half;

	if (!total)
		return (struct interval){ 0, 100 };
	middle = (p + z2 / (2 * n)) / (1 + z2 / n);
	half = Z95 * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
	return (struct interval){ 100 * fmax(0, middle - half), 100 * fmin(1, middle + half) };
}
