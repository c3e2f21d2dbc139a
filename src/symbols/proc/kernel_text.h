/* kernel_text.h - where the running kernel is loaded */
#ifndef PROFIL_SYMBOLS_PROC_KERNEL_TEXT_H
#define PROFIL_SYMBOLS_PROC_KERNEL_TEXT_H

#include <linux/types.h>

/*
 * The address of its symbol _text, which changes with each boot (KASLR); 0: hidden from this
 * process.
 */
__u64 kernel_text(void);

#endif
