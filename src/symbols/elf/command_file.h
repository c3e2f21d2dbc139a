/* command_file.h - which file a command runs, and which program that runs in turn */
#ifndef PROFIL_SYMBOLS_ELF_COMMAND_FILE_H
#define PROFIL_SYMBOLS_ELF_COMMAND_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define SCRIPTS_MAX 4 /* a script's interpreter can be a script; as in the kernel */

/* The file that execvp() would run, symbolic links resolved; the caller frees it. NULL: none. */
char *command_find(const char *command);

/* Reads the interpreter of the script @fd; false: not a script. */
bool script_interpreter(int fd, char *out, size_t bytes);

/* Reads the dynamic linker of the program @fd, "" if it has none; false: no 64-bit ELF file. */
bool program_linker(int fd, char *out, size_t bytes);

#endif
