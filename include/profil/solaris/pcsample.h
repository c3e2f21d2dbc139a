/* pcsample.h - where Solaris declares pcsample */
#ifndef PROFIL_SOLARIS_PCSAMPLE_H
#define PROFIL_SOLARIS_PCSAMPLE_H

#include "unistd.h"

#endif
