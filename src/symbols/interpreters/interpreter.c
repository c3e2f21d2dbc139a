/* interpreter.c - the descriptor of an interpreter's binary, for the kernel's walk of its functions
 */
#include <errno.h>
#include <stddef.h>

#include "interpreter.h"

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
	Elf *elf;
	int err;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	err = elf && elf_kind(elf) == ELF_K_ELF ? interpreter_read(d, elf, path) : -ENOENT;
	elf_end(elf);
	return err;
}
