/* subids.h - which user owns a subordinate user id: /etc/subuid */
#ifndef PROFIL_BASE_SUBIDS_H
#define PROFIL_BASE_SUBIDS_H

#include <sys/types.h>

/*
 * The ranges of subuid(5). The owner of a range can have processes with each of its 65536 ids, by
 * newuidmap(1), so that all of them are one account.
 */
struct subids;

/* @subuid and @passwd: /etc/subuid and /etc/passwd. The caller keeps both texts. */
int subids_open(struct subids **out, const char *subuid, const char *passwd);
struct subids *subids_close(struct subids *s);

/*
 * The user that @uid belongs to: the owner of its range, or @uid itself. An owner that is not in
 * passwd (LDAP) is known by the first id of its first range: the name service is not asked, because
 * it may block. Reads the file again if it has changed. Takes a stat() and a binary search.
 */
uid_t subids_account(struct subids *s, uid_t uid);

#endif
