/* demangle.c - demangling of C++ and Rust names, and names that only look mangled */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"

static void reads(const char *mangled, const char *plain)
{
	char *got = demangle(mangled, strlen(mangled));

	cr_expect_str_eq(got, plain);
	free(got);
}

Test(ctl_demangle, demangles_cxx)
{
	reads("_ZN3foo3barEi", "foo::bar(int)");
	reads("_ZNSt6vectorIiSaIiEE9push_backERKi",
	      "std::vector<int, std::allocator<int> >::push_back(int const&)");
}

Test(ctl_demangle, demangles_both_rust_schemes_without_the_hash)
{
	reads("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt");
	reads("_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example");
}

Test(ctl_demangle, keeps_the_suffix_of_a_stub)
{
	reads("_ZN3foo3barEi@plt", "foo::bar(int)@plt");
	reads("_Zebra@plt", "_Zebra@plt");
}

Test(ctl_demangle, leaves_other_names_unchanged)
{
	reads("main", "main");
	reads("_Zebra", "_Zebra");
	reads("_Rhino", "_Rhino");
	reads("hash_first__Fv", "hash_first__Fv");
	reads("", "");
}

Test(ctl_demangle, reads_no_byte_beyond_the_length)
{
	char *got = demangle("_ZN3foo3barEvjunk", 13);

	cr_expect_str_eq(got, "foo::bar()");
	free(got);
}

/* Each parameter after the first has the type of the one before it twice. */
Test(ctl_demangle, leaves_a_short_name_of_a_plain_form_of_megabytes)
{
	static const char digits[] = "0123456789ABCDEFGHIJ";
	char name[512] = "_Z1f1AIiiE";

	for (const char *c = digits; *c; c++)
		sprintf(name + strlen(name), "S_IS%c_S%c_E", *c, *c);
	reads(name, name);
}
