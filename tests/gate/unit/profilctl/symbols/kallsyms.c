/* kallsyms.c - the kernel's functions, as /proc/kallsyms lists them */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbols/kallsyms.h"

static int read_text(struct kallsyms *k, const char *text)
{
	__cleanup(fclosep) FILE *in = fmemopen((char *)text, strlen(text), "r");

	cr_assert_not_null(in);
	return kallsyms_read(k, in);
}

Test(ctl_kallsyms, reads_functions_of_the_kernel_and_of_modules)
{
	struct kallsyms k;

	cr_assert_eq(read_text(&k, "ffffffff81000000 T _text\n"
				   "ffffffff81000010 t local_one\n"
				   "ffffffff81000020 W weak_one\n"
				   "ffffffff82000000 D data\n"
				   "ffffffffc0000000 t ext4_get\t[ext4]\n"
				   "ffffffffc0000010 t $x\n"
				   "junk\n"),
		     0);
	cr_assert_eq(k.n, 4u);
	cr_expect_str_eq(k.function[0].name, "_text");
	cr_expect_eq(k.function[0].address, 0xffffffff81000000);
	cr_expect(k.function[1].local && !k.function[1].weak);
	cr_expect(k.function[2].weak);
	cr_expect_str_eq(k.function[3].name, "ext4_get [ext4]");
	kallsyms_fini(&k);
}

Test(ctl_kallsyms, detects_hidden_addresses)
{
	struct kallsyms k;

	cr_expect_eq(read_text(&k, "0000000000000000 T _text\n0000000000000000 t f\n"), -EPERM);
	kallsyms_fini(&k);
}
