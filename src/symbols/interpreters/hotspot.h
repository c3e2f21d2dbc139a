/* hotspot.h - the descriptor of HotSpot's library, libjvm.so */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_HOTSPOT_H
#define PROFIL_SYMBOLS_INTERPRETERS_HOTSPOT_H

#include <libelf.h>

#include "core/interpreter_maps.h"

/* As interpreter_read(). JDK 17, 21 and 25 on x86-64. */
int hotspot_read(struct profil_interpreter *d, Elf *elf);

#endif
