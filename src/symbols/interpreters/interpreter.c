/* interpreter.c - the descriptor of an interpreter's binary, for the kernel's walk of its functions
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "interpreter.h"
#include "symbols/elf/read_budget.h"

/* What a compiler leaves behind the member that it initializes is undefined. */
static void clear_rest(struct profil_interpreter *d)
{
	static const size_t used[PROFIL_INTERPRETER_KINDS] = {
		[PROFIL_INTERPRETER_CPYTHON_CALLS] = sizeof(d->cpython),
		[PROFIL_INTERPRETER_CPYTHON_CFRAME] = sizeof(d->cpython),
		[PROFIL_INTERPRETER_CPYTHON_ENTRY] = sizeof(d->cpython),
		[PROFIL_INTERPRETER_V8] = sizeof(d->v8),
		[PROFIL_INTERPRETER_LINKED] = sizeof(d->linked),
		[PROFIL_INTERPRETER_PERL] = sizeof(d->perl),
		[PROFIL_INTERPRETER_HOTSPOT] = sizeof(d->hotspot),
	};

	memset(d->bytes + used[d->kind], 0, sizeof(d->bytes) - used[d->kind]);
}

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
	if (err == -ENOENT)
		err = hotspot_read(d, elf);
	clear_rest(d);
	return err;
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

bool interpreter_is_same(const struct profil_interpreter *a, const struct profil_interpreter *b)
{
	return a->kind == b->kind && a->language == b->language && a->operations == b->operations &&
	       a->runtime == b->runtime && !memcmp(a->loop, b->loop, sizeof(a->loop)) &&
	       !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}
