/* kernel_text.h - where the running kernel is loaded */
#ifndef PROFIL_SYMBOLS_PROC_KERNEL_TEXT_H
#define PROFIL_SYMBOLS_PROC_KERNEL_TEXT_H

#include <linux/types.h>

/*
 * The address of its symbol _text, which changes with each boot (KASLR); 0: hidden from this
 * process.
 */
__u64 kernel_text(void);

/* Why the address is hidden, as kept in a profile. */
#define KERNEL_HIDDEN_KPTR "kptr_restrict"  /* from processes with CAP_SYSLOG, too */
#define KERNEL_HIDDEN_PRIVILEGE "privilege" /* from this process, which has no CAP_SYSLOG */
#define KERNEL_HIDDEN_FILE "kallsyms"	    /* /proc/kallsyms is missing or not readable */

/* One of these, if kernel_text() returns 0. */
const char *kernel_text_hidden(void);

#endif
