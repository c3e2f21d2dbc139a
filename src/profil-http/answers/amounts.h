/* amounts.h - the samples of a difference, by unit, container and file */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_AMOUNTS_H
#define PROFIL_PROFIL_HTTP_ANSWERS_AMOUNTS_H

#include "profil-http/machine/difference.h"
#include "series.h"

/* For samples in no systemd unit: mostly kernel threads. */
#define NO_UNIT "(none)"

const char *unit_name(const struct group *g);

/* Between the id of a container and the uid of its pod in the name of an amount. */
#define CONTAINER_POD '\t'

/*
 * An amount for each group, named by unit or container, or for each object, named by path; the
 * caller frees the array. @p owns the names, but those of containers are in the array. NULL: out of
 * memory.
 */
struct amount *amounts_by_unit(const struct profile *p, const struct difference *d, size_t *n);
struct amount *amounts_by_container(const struct profile *p, const struct difference *d, size_t *n);
struct amount *amounts_by_image(const struct profile *p, const struct difference *d, size_t *n);

#endif
