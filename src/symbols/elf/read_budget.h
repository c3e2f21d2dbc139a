/* read_budget.h - limits the memory and time that reading a file of another user takes */
#ifndef PROFIL_SYMBOLS_ELF_READ_BUDGET_H
#define PROFIL_SYMBOLS_ELF_READ_BUDGET_H

#include <stdbool.h>
#include <linux/types.h>

#include "symbols/proc/file_account.h"

/*
 * What libdw makes of a section can be a hundred times as large as the section: a unit of 12 bytes
 * becomes a kilobyte. So the growth of this process is measured while it reads such a file, and is
 * charged to the file's account.
 */
#define READ_FILE_BYTES (64ull << 20)
#define READ_FILE_CPU_NS 500000000ull

/* All zero: without limits. */
struct read_budget {
	struct file_account *account; /* NULL: no limits */
	enum file_time kind;
	__u64 credit_ns; /* of CPU time beyond those limits */
	bool reading;
	bool spent;
	__u64 bytes; /* what the file took before it was last resumed, */
	__u64 cpu_ns;
	__u64 before_bytes; /* and what this process and this thread had used then */
	__u64 before_ns;
	__u64 charged;
};

/* Begins to read a file of @account. */
void read_budget_begin(struct read_budget *b, struct file_account *account, enum file_time kind);

/* What is done meanwhile is of other files. */
void read_budget_pause(struct read_budget *b);
void read_budget_resume(struct read_budget *b);

/*
 * Call it in each loop over what the file has. Once it has returned false, which it does from then
 * on, the file must be given up.
 */
bool read_budget_left(struct read_budget *b);

/* The memory has been freed. */
void read_budget_end(struct read_budget *b);

#endif
