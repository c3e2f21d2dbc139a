/* synthetic_addresses.c - every place and frame of a profile has an address within its mapping */
#include <criterion/criterion.h>

#include "core/arch.h"
#include "formats/synthetic_addresses.h"

static void expect_within(const struct extents *e, __u64 offset)
{
	const struct extent *x = extents_of(e, 0, offset);
	__u64 address = extents_address(e, 0, offset);

	cr_expect(x->start && address >= x->start && address < x->end,
		  "offset %#llx: %#llx is not within [%#llx, %#llx)", (unsigned long long)offset,
		  (unsigned long long)address, (unsigned long long)x->start,
		  (unsigned long long)x->end);
}

/* A stack of the machine can be one of an interval in which its leaf is no place. */
Test(synthetic_addresses, have_leaves_of_stacks_at_the_begin_of_a_segment)
{
	struct segment segment[] = { { .offset = 0x1000, .bytes = 0x3000, .vaddr = 0x1000 },
				     { .offset = 0x4000, .bytes = 0x3000, .vaddr = 0x5000 } };
	struct object object = { .segments = { segment, 2 } };
	struct profile p = { .objects = &object, .nobjects = 1 };
	const __u64 stack[] = { 0x6010, 0x4000 };
	struct extents e;
	__u32 at = CALL_WHOLE;

	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(call_tree_add(&p.calls, at, 0, stack[i], &at), 0);
	cr_assert_eq(extents_init(&e, &p), 0);
	for (size_t i = 0; i < 2; i++) {
		expect_within(&e, stack[i]);
		expect_within(&e, stack[i] - !i);
	}
	extents_fini(&e);
	call_tree_fini(&p.calls);
}

Test(synthetic_addresses, are_those_of_the_linker_for_collectors)
{
	struct segment segment[] = { { .offset = 0, .bytes = 0x3000, .vaddr = 0 },
				     { .offset = 0x4000, .bytes = 0x3000, .vaddr = 0x405000 } };
	struct object object[] = { { .segments = { segment, 2 } }, { .kind = OBJECT_KERNEL } };
	struct profile p = { .objects = object, .nobjects = 2 };
	struct extents e;

	cr_assert_eq(profile_add_place(&p, 0, 0x10, 1, 1), 0);
	cr_assert_eq(profile_add_place(&p, 0, 0x7010, 1, 1), 0);
	cr_assert_eq(profile_add_place(&p, 1, 0x1234, 1, 1), 0);
	cr_assert_eq(extents_init_linked(&e, &p), 0);
	cr_expect(extents_of(&e, 0, 0x10)->used, "it begins at address 0");
	cr_expect_eq(extents_address(&e, 0, 0x10), 0x10);
	cr_expect_not(extents_of(&e, 0, 0x4010)->used);
	cr_expect_eq(extents_of(&e, 0, 0x4010)->end, 0x408000);
	cr_expect_eq(extents_address(&e, 0, 0x4010), 0x405010);
	cr_expect_eq(extents_address(&e, 0, 0x7010), 0x7010, "in no segment");
	cr_expect_eq(extents_of(&e, 0, 0x7010)->end, 0x8000);
	cr_expect_eq(extents_address(&e, 1, 0x1234), ARCH_KERNEL_TEXT + 0x1234);
	cr_expect_eq(extents_of(&e, 1, 0x1234)->start, ARCH_KERNEL_TEXT + 0x1000);
	extents_fini(&e);
	places_fini(&p.places);
}
