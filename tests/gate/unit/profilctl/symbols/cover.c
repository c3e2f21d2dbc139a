/* cover.c - each address belongs to the claim of the highest rank that covers it */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/cover.h"

#define SPAN 64
#define CLAIMS 24u

/* The owner of @address by the definition; CLAIMS: none. */
static size_t owner_of(const struct claim *claim, size_t n, __u64 address)
{
	const struct claim *best = NULL;

	for (size_t i = 0; i < n; i++) {
		if (claim[i].start <= address && address < claim[i].end &&
		    (!best || claim[i].rank > best->rank))
			best = &claim[i];
	}
	return best ? best->owner : CLAIMS;
}

static size_t found(const struct claim *claim, size_t n, __u64 address)
{
	size_t upto = cover_upto(claim, n, address);

	return upto && address < claim[upto - 1].end ? claim[upto - 1].owner : CLAIMS;
}

Test(cover, gives_each_address_to_the_highest_rank)
{
	struct claim claim[2 * CLAIMS], given[CLAIMS];
	unsigned int seed = 1;

	for (int round = 0; round < 2000; round++) {
		size_t n = (size_t)(round % (CLAIMS + 1)), pieces = n;

		for (size_t i = 0; i < n; i++) {
			__u64 start = (seed = seed * 1103515245 + 12345) >> 16 & (SPAN - 1);
			__u64 bytes = (seed = seed * 1103515245 + 12345) >> 16 & 15;

			given[i] = (struct claim){ start, start + bytes, i, i };
		}
		memcpy(claim, given, n * sizeof(*claim));
		cr_assert_eq(cover(claim, &pieces), 0);
		cr_assert(pieces <= 2 * n);
		for (size_t i = 1; i < pieces; i++)
			cr_assert_leq(claim[i - 1].end, claim[i].start);
		for (__u64 at = 0; at < SPAN + 16; at++)
			cr_assert_eq(found(claim, pieces, at), owner_of(given, n, at),
				     "round %d, address %llu", round, at);
	}
}

/* No search may take a number of steps that grows with the depth: files are crafted, too. */
Test(cover, resolves_deep_nesting)
{
	const size_t depth = 100000;
	struct claim *claim = calloc(2 * depth, sizeof(*claim));
	size_t n = depth;

	cr_assert_not_null(claim);
	for (size_t i = 0; i < depth; i++)
		claim[i] = (struct claim){ i, 4 * depth - i, i, i };
	cr_assert_eq(cover(claim, &n), 0);
	cr_expect_eq(n, 2 * depth - 1);
	cr_expect_eq(found(claim, n, 4 * depth - 1), 0);
	cr_expect_eq(found(claim, n, depth), depth - 1);
	free(claim);
}
