/* stack_attachment.h - an attachment of the whole machine with call stacks */
#ifndef PROFIL_PROFIL_HTTP_MACHINE_STACK_ATTACHMENT_H
#define PROFIL_PROFIL_HTTP_MACHINE_STACK_ATTACHMENT_H

#include "source.h"

/*
 * The machine profile has no stacks, because it needs no client, and the kernel unwinds most
 * programs by tables that a client has to make from their files. So profil-http is an observer
 * itself: profild charges the table to its user, and ends it with the connection.
 */
struct stack_attachment;

/* @socket is the daemon's; NULL: the default. Returns 0 or -ENOMEM. */
int stack_attachment_new(struct stack_attachment **out, const char *socket, unsigned int hz);

/*
 * Attaches, or if attached makes the unwind tables of new files. If the daemon has ended or the
 * table is full, attaches again. Sets *@s as source_query() does. Waits for the daemon and for
 * files. Returns 0 or a negative errno.
 */
int stack_attachment_query(struct stack_attachment *a, struct source **s, const char **why);

#endif
