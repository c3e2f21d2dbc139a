/* kr.h - macros that accept K&R-style calls and declarations, with arguments of any type */
#ifndef PROFIL_KR_H
#define PROFIL_KR_H

/*
 * Programs that use these headers pass a char * as the buffer and a function as the offset, like
 * the examples in their manuals. They also declare profil() themselves: as «int profil();», or with
 * a prototype that is not the dialect's. A function declared here would reject the former in C++
 * and conflict with the latter. Without a prototype, the upper half of an offset that is passed as
 * an int would be lost. So the names are macros. They cast the arguments of a call, and they rename
 * what a program declares to a name that nothing uses (six arguments are OpenBSD's):
 *
 *	#define f(...) PROFIL_KR_PICK_(__VA_ARGS__, F6, F5, F4, F3, F2, F1_OR_NONE, ~)(__VA_ARGS__)
 *	#define F4(a, b, c, d) PROFIL_KR_FOUR_(DECLARE, CALL, a, b, c, d)
 *
 * A call and a declaration look alike to the preprocessor. It is taken for a declaration if it has
 * no arguments, or four arguments of which none begins with a parenthesis and the last begins with
 * the name of a type. The test pastes the first token of the last argument, so that argument must
 * not begin with an operator, as in «profil(buf, n, pc, -1)», unless an argument before it begins
 * with a parenthesis; «(-1)» is fine.
 *
 * These headers are system headers because they use variadic macros in C89 and C++98.
 */
#pragma GCC system_header

#define PROFIL_KR_PICK_(a, b, c, d, e, f, pick, ...) pick

#define PROFIL_KR_PASTE_(a, b) a##b
#define PROFIL_KR_CAT_(a, b) PROFIL_KR_PASTE_(a, b)
#define PROFIL_KR_SECOND_(a, b, ...) b
#define PROFIL_KR_IS_PROBE_(...) PROFIL_KR_SECOND_(__VA_ARGS__, 0, ~)

/* PROFIL_KR_IF_(c)(yes, no), where c is 1 or 0: yes and no may be names of macros to be called. */
#define PROFIL_KR_IF_(c) PROFIL_KR_CAT_(PROFIL_KR_IF_, c)
#define PROFIL_KR_IF_1(yes, no) yes
#define PROFIL_KR_IF_0(yes, no) no

/* 1 where @x begins with a parenthesis, else 0. */
#define PROFIL_KR_IS_PAREN_(x) PROFIL_KR_IS_PROBE_(PROFIL_KR_PAREN_ x)
#define PROFIL_KR_PAREN_(...) ~, 1,

/* 1 where @x is nothing, else 0: nothing and () begin with a parenthesis. */
#define PROFIL_KR_IS_NONE_(x) \
	PROFIL_KR_IF_(PROFIL_KR_IS_PAREN_(x))(PROFIL_KR_NO_, PROFIL_KR_IS_PAREN_BEHIND_)(x)
#define PROFIL_KR_IS_PAREN_BEHIND_(x) PROFIL_KR_IS_PAREN_(x())
#define PROFIL_KR_NO_(...) 0

/* 1 where four arguments are those of a declaration, else 0. */
#define PROFIL_KR_DECLARES_(a, b, c, d) \
	PROFIL_KR_IF_(PROFIL_KR_IS_PAREN_(a))(PROFIL_KR_NO_, PROFIL_KR_DECLARES_3_)(b, c, d)
#define PROFIL_KR_DECLARES_3_(b, c, d) \
	PROFIL_KR_IF_(PROFIL_KR_IS_PAREN_(b))(PROFIL_KR_NO_, PROFIL_KR_DECLARES_2_)(c, d)
#define PROFIL_KR_DECLARES_2_(c, d) \
	PROFIL_KR_IF_(PROFIL_KR_IS_PAREN_(c))(PROFIL_KR_NO_, PROFIL_KR_DECLARES_1_)(d)
#define PROFIL_KR_DECLARES_1_(d) \
	PROFIL_KR_IF_(PROFIL_KR_IS_PAREN_(d))(PROFIL_KR_NO_, PROFIL_KR_IS_TYPE_)(d)
#define PROFIL_KR_IS_TYPE_(x) PROFIL_KR_IS_PROBE_(PROFIL_KR_CAT_(PROFIL_KR_TYPE_, x))

#define PROFIL_KR_FOUR_(declare, call, a, b, c, d) \
	PROFIL_KR_IF_(PROFIL_KR_DECLARES_(a, b, c, d))(declare, call)(a, b, c, d)

/* The first tokens of the last parameter's type. */
#define PROFIL_KR_TYPE_unsigned ~, 1,
#define PROFIL_KR_TYPE_signed ~, 1,
#define PROFIL_KR_TYPE_int ~, 1,
#define PROFIL_KR_TYPE_long ~, 1,
#define PROFIL_KR_TYPE_short ~, 1,
#define PROFIL_KR_TYPE_const ~, 1,
#define PROFIL_KR_TYPE_register ~, 1,
#define PROFIL_KR_TYPE_uint ~, 1,
#define PROFIL_KR_TYPE_u_int ~, 1,
#define PROFIL_KR_TYPE_uint_t ~, 1,
#define PROFIL_KR_TYPE_ulong ~, 1,
#define PROFIL_KR_TYPE_u_long ~, 1,
#define PROFIL_KR_TYPE_ulong_t ~, 1,
#define PROFIL_KR_TYPE_ushort ~, 1,
#define PROFIL_KR_TYPE_u_short ~, 1,
#define PROFIL_KR_TYPE_size_t ~, 1,
#define PROFIL_KR_TYPE_int32_t ~, 1,
#define PROFIL_KR_TYPE_uint32_t ~, 1,
#define PROFIL_KR_TYPE_u_int32_t ~, 1,
#define PROFIL_KR_TYPE_uint64_t ~, 1,
#define PROFIL_KR_TYPE___uint32_t ~, 1,
#define PROFIL_KR_TYPE___psunsigned_t ~, 1,

#endif
