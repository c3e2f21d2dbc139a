/* kr.h - calls as K&R wrote them: arguments of any kind, and a declaration without any */
#ifndef PROFIL_KR_H
#define PROFIL_KR_H

/*
 * The programs that these headers are for pass a char * as the buffer and a function as the offset,
 * as their manuals' examples do, and say «int profil();» besides. A prototype refuses the first in
 * C++ and warns of it in C; none at all would lose the upper half of an offset given as an int. So
 * the names are macros that put casts around the arguments of a call, and leave alone what has
 * another number of them.
 *
 *	#define f(...) PROFIL_KR_PICK_(__VA_ARGS__, F5, F4, F3, F2, F1_OR_NONE, ~)(__VA_ARGS__)
 *
 * Variadic macros in C89 and C++98 are why these headers call themselves system headers.
 */
#pragma GCC system_header

#define PROFIL_KR_PICK_(a, b, c, d, e, pick, ...) pick

#endif
