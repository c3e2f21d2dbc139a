/* variables.c - names the variables of objects: those that threads wait at, locks */
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "demangle.h"
#include "elf/debug_file.h"
#include "elf/elf_file.h"
#include "variables.h"

/* A variable that is no larger than a lock of libc is named as a whole. */
#define LOCK_BYTES 56

/* The symbol that is the closest one below a variable so far. */
struct found {
	__u64 address; /* of the variable; 0: it is in no segment */
	__u64 start;
	__u64 bytes;
	char *symbol;
};

static int offer(struct found *f, __u64 start, __u64 bytes, const char *name, size_t len)
{
	if (!f->address || start < f->start || f->address < start || f->address - start >= bytes)
		return 0;
	free(f->symbol);
	f->symbol = strndup(name, len);
	f->start = start;
	f->bytes = bytes;
	return f->symbol ? 0 : -ENOMEM;
}

/* The address of @offset of the file, in a segment that can be written to; 0: in none. */
static __u64 address_of(Elf *elf, __u64 offset)
{
	size_t n = 0;
	GElf_Phdr p;

	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n; i++) {
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_flags & PF_W &&
		    offset - p.p_offset < p.p_memsz)
			return offset - p.p_offset + p.p_vaddr;
	}
	return 0;
}

static int search_file(struct found *f, const struct variable *v, size_t n, int fd,
		       const char *path)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL), *of;
	struct debug_file *debug = NULL;
	int err = debug_file_open(&debug, fd, path);

	for (size_t i = 0; elf && i < n; i++)
		f[i].address = address_of(elf, v[i].offset);
	elf_end(elf);
	for (int i = 0, all = err ? 0 : debug_file_nsymbols(debug); i < all && !err; i++) {
		GElf_Addr start;
		GElf_Sym sym;
		const char *name = debug_file_symbol(debug, i, &sym, &start, &of);

		if (!name || !*name || GELF_ST_TYPE(sym.st_info) != STT_OBJECT ||
		    sym.st_shndx == SHN_UNDEF)
			continue;
		for (size_t j = 0; j < n && !err; j++)
			err = offer(&f[j], start, sym.st_size, name, strcspn(name, "@"));
	}
	debug_file_close(debug);
	return err == -ENOEXEC ? 0 : err;
}

/* Kernels without their variables in kallsyms leave them unnamed. */
static int search_kernel(struct found *f, const struct variable *v, size_t n, __u64 text)
{
	__cleanup(fclosep) FILE *in = fopen("/proc/kallsyms", "re");
	__cleanup(freep) char *line = NULL;
	size_t room = 0;
	int err = 0;

	for (size_t i = 0; i < n; i++)
		f[i].address = text ? v[i].offset + text : 0;
	while (in && !err && getline(&line, &room, in) > 0) {
		__u64 start;
		char type, name[256];

		if (sscanf(line, "%llx %c %255s", &start, &type, name) != 3 ||
		    !strchr("bBdDrR", type))
			continue;
		for (size_t i = 0; i < n && !err; i++)
			err = offer(&f[i], start, ~0ull - start, name, strlen(name));
	}
	return err;
}

static int set_name(struct variable *v, const struct found *f)
{
	__cleanup(freep) char *name = NULL;

	if (!f->symbol)
		return 0;
	name = demangle(f->symbol, strlen(f->symbol));
	if (!name)
		return -ENOMEM;
	if (f->address == f->start || f->bytes <= LOCK_BYTES)
		v->name = steal(name);
	else if (asprintf(&v->name, "%s+0x%llx", name, f->address - f->start) < 0)
		v->name = NULL;
	return v->name ? 0 : -ENOMEM;
}

int variables_name(struct variable *v, size_t n, const struct object *o)
{
	__cleanup(closep) int fd = o->kind == OBJECT_FILE ? elf_file_open(o) : -1;
	struct found *f = calloc(n + 1, sizeof(*f));
	int err = f ? 0 : -ENOMEM;

	elf_version(EV_CURRENT);
	if (!err && o->kind == OBJECT_KERNEL)
		err = search_kernel(f, v, n, o->kernel_text);
	else if (!err && fd >= 0)
		err = search_file(f, v, n, fd, o->path);
	for (size_t i = 0; f && i < n; i++) {
		err = err ?: set_name(&v[i], &f[i]);
		free(f[i].symbol);
	}
	free(f);
	return err;
}
