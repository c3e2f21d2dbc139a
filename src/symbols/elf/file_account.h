/* file_account.h - what the files of each user may take while they are read */
#ifndef PROFIL_SYMBOLS_ELF_FILE_ACCOUNT_H
#define PROFIL_SYMBOLS_ELF_FILE_ACCOUNT_H

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

/*
 * All files that other users can have made share FILE_ACCOUNTS_BYTES while they are open, and
 * FILE_ACCOUNTS_CPU_NS a minute. An account may take half of what the other accounts leave, so that
 * one user's files cannot use up what another's get: the first account has at most a half, the
 * second a quarter, and so on.
 *
 * The account of a file is its owner's. Owners of one subordinate range (subuid(5)) are one. A
 * single account is for all files that users other than the owner can have made: what is on a file
 * system that another user may serve, and what others may write.
 */
#define FILE_ACCOUNTS_BYTES (128ull << 20)
#define FILE_ACCOUNTS_CPU_NS 1600000000ull

struct file_account;

/*
 * The account of file @fd, which is valid for ever. NULL: no other user can have made the file, and
 * it has no limits: one of root or of this user, that is found at its path in this mount namespace,
 * and not on a file system whose server says to whom files belong.
 */
struct file_account *file_account_of(int fd);

/* The account of files of @owner. */
struct file_account *file_account_for(uid_t owner);

/* Takes @bytes. Returns false if that is more than the account may have. */
bool file_account_take(struct file_account *a, __u64 bytes);
void file_account_give(struct file_account *a, __u64 bytes);

/* Says whether the account may use another @ns of CPU time in this minute. */
bool file_account_has_time(struct file_account *a, __u64 ns);
void file_account_use_time(struct file_account *a, __u64 ns);

#endif
