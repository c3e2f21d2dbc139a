/* perl.h - the descriptor of Perl's binaries: perl and libperl */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_PERL_H
#define PROFIL_SYMBOLS_INTERPRETERS_PERL_H

#include <libelf.h>

#include "core/interpreter_maps.h"

/* As interpreter_read(). Perl 5.36 to 5.42 with threads, as Debian builds them. */
int perl_read(struct profil_interpreter *d, Elf *elf);

#endif
