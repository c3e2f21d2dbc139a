/* short_name.c - shortening of long names */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/short_name.h"

static void is(const char *name, enum name_form form, const char *expected)
{
	char *got = short_name(name, form);

	cr_expect_str_eq(got, expected, "%s is %s, not %s", name, got, expected);
	free(got);
}

static void is_plain(const char *name, const char *expected)
{
	is(name, NAME_PLAIN, expected);
}

static void is_bare(const char *name, const char *expected)
{
	is(name, NAME_BARE, expected);
}

Test(ctl_short_name, drops_parameters)
{
	is_plain("foo::bar(int, char const*)", "foo::bar");
	is_plain("Foo::get() const", "Foo::get");
	is_plain("Foo::get() const &", "Foo::get");
	is_plain("(anonymous namespace)::run(int)", "(anonymous namespace)::run");
	is_plain("f(int)::g(char)::h(long) const", "f::g::h");
	is_plain("g(void (*)(int), int (*) [3])", "g");
}

Test(ctl_short_name, drops_return_types_of_templates)
{
	is_plain("void swap<int>(int&, int&)", "swap<int>");
	is_plain("unsigned long count<char*>(char*)", "count<char*>");
	is_plain("std::enable_if<true, void>::type go<int>(int)", "go<int>");
	is_plain("decltype(auto) apply<int>(int)", "apply<int>");
}

Test(ctl_short_name, drops_default_arguments)
{
	is_plain("std::vector<int, std::allocator<int> >::push_back(int const&)",
		 "std::vector<int>::push_back");
	is_plain("std::map<std::__cxx11::basic_string<char, std::char_traits<char>, "
		 "std::allocator<char> >, int, std::less<std::__cxx11::basic_string<char, "
		 "std::char_traits<char>, std::allocator<char> > >, std::allocator<std::pair<"
		 "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > "
		 "const, int> > >::operator[](int)",
		 "std::map<std::string, int>::operator[]");
	is_plain("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> "
		 ">::_M_append(char const*, unsigned long)",
		 "std::string::_M_append");
}

Test(ctl_short_name, drops_template_arguments)
{
	is_bare("std::vector<int, std::allocator<int> >::push_back(int const&)",
		"std::vector<int>::push_back");
	is_bare("std::vector<std::pair<long, char>, A>::push_back(int)",
		"std::vector<...>::push_back");
	is_bare("void f<(1 > 2) && (3 < 4), &Foo::operator>> >(int)", "f<...>");
	is_bare("a::b<x(y)->z, long long>::c()", "a::b<...>::c");
}

Test(ctl_short_name, keeps_operators)
{
	is_plain("operator new(unsigned long)", "operator new");
	is_plain("operator delete[](void*)", "operator delete[]");
	is_plain("Foo::operator()(int) const", "Foo::operator()");
	is_plain("Foo::operator[](int)", "Foo::operator[]");
	is_plain("A::operator,(int) const", "A::operator,");
	is_plain("A::operator->*(int A::*) const", "A::operator->*");
	is_plain("operator\"\" _km(unsigned long long)", "operator\"\" _km");
	is_plain("A::operator<=>(A const&) const", "A::operator<=>");
	is_plain("A::operator!() const", "A::operator!");
	is_plain("A::operator~() const &", "A::operator~");
	is_plain("A::operator|=(int)", "A::operator|=");
	is_plain("A::operator char const*() const", "A::operator char const*");
	is_plain("bool operator< <int>(A<int> const&, A<int> const&)", "operator< <int>");
	is_bare("std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char "
		"const*)",
		"std::operator<< <...>");
	is_plain("Foo::operator->() const", "Foo::operator->");
	is_plain("Foo::operator bool() const", "Foo::operator bool");
	is_plain("my_operator(int)", "my_operator");
}

Test(ctl_short_name, keeps_suffixes_of_lambdas_and_clones)
{
	is_plain("count(std::vector<int> const&)::{lambda(auto:1 const&)#1}::operator()(int) const",
		 "count::{lambda#1}::operator()");
	is_plain("foo(int) [clone .cold]", "foo [clone .cold]");
	is_plain("foo(int)@plt", "foo@plt");
	is_plain("Foo::get() const [clone .isra.0]", "Foo::get [clone .isra.0]");
	is_plain("non-virtual thunk to Foo::bar(int)", "non-virtual thunk to Foo::bar");
}

Test(ctl_short_name, leaves_rust_names_unchanged)
{
	is_plain("core::fmt::Write::write_fmt", "core::fmt::Write::write_fmt");
	is_bare("<alloc::vec::Vec<T> as core::fmt::Debug>::fmt",
		"<alloc::vec::Vec<T> as core::fmt::Debug>::fmt");
	is_bare("core::ptr::drop_in_place<alloc::string::String>", "core::ptr::drop_in_place<...>");
	is_plain("my::f::{{closure}}", "my::f::{{closure}}");
}

Test(ctl_short_name, keeps_receivers_of_go)
{
	is_plain("main.(*T).method", "main.(*T).method");
	is_plain("encoding/json.(*decodeState).object", "json.(*decodeState).object");
	is_plain("github.com/a/b-c.Run.func1", "b-c.Run.func1");
	is_bare("main.Map[go.shape.int_0,go.shape.string_1]", "main.Map[...]");
}

Test(ctl_short_name, leaves_other_names_unchanged)
{
	is_plain("main", "main");
	is_plain("_dl_relocate_object", "_dl_relocate_object");
	is_plain("py::run:/home/me/my dir/x.py", "py::run:/home/me/my dir/x.py");
	is_plain("JS:*sort /srv/app.js:12:3", "JS:*sort /srv/app.js:12:3");
	is_plain("chromium+0x5e0cc40", "chromium+0x5e0cc40");
	is_plain("two words", "two words");
	is_plain("(", "(");
	is_plain("", "");
	is_plain("a<b", "a<b");
	is_plain("f)(", "f)(");
}

static void fits(const char *name, size_t columns, const char *expected)
{
	char out[256];

	fit_name(out, sizeof(out), name, columns);
	cr_expect_str_eq(out, expected, "%s in %zu columns is %s", name, columns, out);
	cr_expect_leq(columns_of(out), columns);
}

Test(ctl_short_name, uses_the_available_width)
{
	const char *name = "void a::b::List<long long, short>::insert_sorted(int)";

	fits(name, 100, "a::b::List<long long, short>::insert_sorted");
	fits(name, 40, "a::b::List<...>::insert_sorted");
	fits(name, 29, "b::List<...>::insert_sorted");
	fits(name, 24, "List<...>::insert_sorted");
	fits(name, 12, "List<...>...");
	fits("gr\303\274n_und_blau", 13, "gr\303\274n_und_blau");
	fits("gr\303\274n_und_blau", 6, "gr\303\274...");
}

/* The short form of any bytes is terminated and not longer than the name. */
Test(ctl_short_name, survives_any_name)
{
	static const char alphabet[] = "<>()[]{}:: ,.-&*/abcoperator";

	srand(1);
	for (int i = 0; i < 50000; i++) {
		char name[48], out[16];
		size_t n = (size_t)rand() % (sizeof(name) - 1);
		char *got;

		for (size_t k = 0; k < n; k++)
			name[k] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		name[n] = '\0';
		got = short_name(name, i % 2 ? NAME_BARE : NAME_PLAIN);
		cr_assert_leq(strlen(got), n + 1);
		free(got);
		fit_name(out, sizeof(out), name, 12);
		cr_assert_leq(columns_of(out), 12u);
	}
}
