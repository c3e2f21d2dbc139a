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

Test(ctl_demangle, decodes_the_characters_of_rust)
{
	reads("_ZN4test8h$uf6$he17h0123456789abcdefE", "test::h\xc3\xb6he");
	reads("_ZN4test7$u4e2d$17h0123456789abcdefE", "test::\xe4\xb8\xad");
	reads("_ZN4test8$u1f600$17h0123456789abcdefE", "test::\xf0\x9f\x98\x80");
	reads("_ZN4test7$ud800$17h0123456789abcdefE", "test::$ud800$");
	reads("_ZN4test6$u9b$x17h0123456789abcdefE", "test::$u9b$x"); /* a control character */
	reads("_ZN4test5$u7e$17h0123456789abcdefE", "test::~");
}

Test(ctl_demangle, demangles_d)
{
	reads("_D4main3fooFiZv", "main.foo(int)");
	reads("_D3std5range__T4iotaTiTiZ4iotaFiiZv", "std.range.iota!(int, int).iota(int, int)");
	reads("_Dmain", "_Dmain");
	reads("_D3foo", "_D3foo");
}

/* libiberty refuses names of more than 1024 bytes by itself. */
Test(ctl_demangle, demangles_names_of_kilobytes)
{
	char mangled[8192] = "_Z1f", plain[8192] = "f(";

	for (int i = 0; i < 400; i++) {
		strcat(mangled, "St6vectorI");
		strcat(plain, "std::vector<");
	}
	strcat(mangled, "i");
	strcat(plain, "int");
	for (int i = 0; i < 400; i++) {
		strcat(mangled, "E");
		strcat(plain, i ? " >" : ">");
	}
	strcat(plain, ")");
	reads(mangled, plain);
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
