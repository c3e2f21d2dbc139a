/* pages.h - static pages */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_PAGES_H
#define PROFIL_PROFIL_HTTP_ANSWERS_PAGES_H

#include "answer.h"

/* The page at @url, or 404. NULL: out of memory. */
struct answer *pages_answer(const char *url);

#endif
