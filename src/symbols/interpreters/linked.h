/* linked.h - the descriptors of PHP and Ruby, whose frames are in a list of the thread */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_LINKED_H
#define PROFIL_SYMBOLS_INTERPRETERS_LINKED_H

#include <libelf.h>

#include "core/interpreter_maps.h"

/* As interpreter_read(). PHP 8.0 to 8.3 without thread safety, as Debian builds it. */
int php_read(struct profil_interpreter *d, Elf *elf);

/* Likewise. Ruby 3.1 as a library. */
int ruby_read(struct profil_interpreter *d, Elf *elf);

#endif
