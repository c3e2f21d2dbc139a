/* file_account.h - what the files of each user may take while they are read */
#ifndef PROFIL_SYMBOLS_PROC_FILE_ACCOUNT_H
#define PROFIL_SYMBOLS_PROC_FILE_ACCOUNT_H

#include <stdbool.h>
#include <linux/types.h>
#include <sys/types.h>

/*
 * All files that other users can have made share FILE_ACCOUNTS_BYTES while they are open: for what
 * they unpack to, for copies of them and for the names of perf maps. They share FILE_ACCOUNTS_NS a
 * minute: the CPU time of reading them, and the time for which their file systems are waited for.
 * Symbols have as much for themselves: a file whose unwinding rows or lines take long keeps its names.
 * An account may take half of what the other accounts leave, so that one user's files cannot use up
 * what another's get: the first account has at most a half, the second a quarter, and so on. The
 * unwind rules of a file are read to the end once there is any time for it: what that takes beyond
 * the account's time is taken from its next minutes, so that a large file is not read in part.
 *
 * The account of a file is its owner's. Owners of one subordinate range (subuid(5)) are one. A file
 * system that a server provides can give its files any owner, so the account of such a file, or of
 * its copy, is that of the user whose process led to it. A single account is for all other files
 * that users other than the owner can have made.
 */
#define FILE_ACCOUNTS_BYTES (128ull << 20)
#define FILE_ACCOUNTS_NS 1600000000ull

struct file_account;

enum file_time { FILE_TIME, FILE_TIME_SYMBOLS, FILE_TIMES };

/*
 * The account of file @fd, which is valid for ever. NULL: no other user can have made the file, and
 * it has no limits: one of root or of this user, that is found at its path in this mount namespace,
 * or in that of mounts_trusted(), and not on a file system that a server provides.
 */
struct file_account *file_account_of(int fd);

/* The account of files of @owner. */
struct file_account *file_account_for(uid_t owner);

/*
 * The account of the real user of process @pid, also while the process has the rights of another
 * user or is not dumpable. That of any maker, if it has ended.
 */
struct file_account *file_account_of_process(pid_t pid);

/* Says whether the account is that of root, or of the user of this process. */
bool file_account_is_own(const struct file_account *a);

/* The account of files of any maker. */
struct file_account *file_account_of_any(void);

/* What the account may still take. */
__u64 file_account_bytes_left(struct file_account *a);

/* Takes @bytes. Returns false if that is more than the account may have. */
bool file_account_take(struct file_account *a, __u64 bytes);
void file_account_give(struct file_account *a, __u64 bytes);

/* The time that the account may still use in this minute. More can be used: then it is owed. */
__u64 file_account_time_left(struct file_account *a, enum file_time kind);
void file_account_use_time(struct file_account *a, enum file_time kind, __u64 ns);

/* The name of the memfd(2) that holds a copy of a file. */
#define FILE_COPY_NAME "profil-copy"

/*
 * Charges the copy @fd, of which @bytes are no hole, while this process has it open or mapped. From
 * then on it is a file of account @a. Returns 0, -EFBIG or -ENOMEM.
 */
int file_account_keep_copy(struct file_account *a, int fd, __u64 bytes);

/*
 * Gives back the room of the copies that are closed. This looks at all open files and mappings, so
 * call it only where an account has no room. Returns true if there were any.
 */
bool file_account_collect_copies(void);

#endif
