/* interpreter.c - the descriptor of an interpreter's binary, for the kernel's walk of its functions
 */
#include <errno.h>
#include <stddef.h>

#include "interpreter.h"
#include "symbols/elf/read_budget.h"

int interpreter_read(struct profil_interpreter *d, Elf *elf, const char *path)
{
	int err;

	*d = (struct profil_interpreter){ 0 };
	err = cpython_read(d, elf, path);
	if (err == -ENOENT)
		err = v8_read(d, elf);
	if (err == -ENOENT)
		err = php_read(d, elf);
	if (err == -ENOENT)
		err = ruby_read(d, elf);
	if (err == -ENOENT)
		err = perl_read(d, elf);
	return err == -ENOENT ? hotspot_read(d, elf) : err;
}

int interpreter_open(struct profil_interpreter *d, int fd, const char *path)
{
	struct read_budget budget;
	Elf *elf;
	int err;

	read_budget_begin(&budget, file_account_of(fd), FILE_TIME_SYMBOLS);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	err = read_budget_left(&budget) && elf && elf_kind(elf) == ELF_K_ELF
		      ? interpreter_read(d, elf, path)
		      : -ENOENT;
	elf_end(elf);
	read_budget_end(&budget);
	return err;
}
