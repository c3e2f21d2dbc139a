/* symbol_names.c - the functions in the symbol table of an ELF file, as BOLT names them */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_while.h"
#include "base/grow.h"

#include "elf_image.h"
#include "symbol_names.h"

/* A function of the table. */
struct entry {
	__u64 address;
	__u64 bytes;
	const char *name;
	const char *file; /* NULL: it is global, or that is unknown */
	bool global;
};

struct entries {
	struct entry *entry;
	size_t n;
};

static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->global != y->global)
		return x->global ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* A symbol of a file precedes the local symbols of that file. */
static int read_entries(struct entries *e, Elf *elf, Elf_Data *data, const GElf_Shdr *sh)
{
	const char *file = NULL;
	GElf_Sym sym;

	for (int i = 0; gelf_getsym(data, i, &sym); i++) {
		const char *name = elf_strptr(elf, sh->sh_link, sym.st_name);
		bool global = GELF_ST_BIND(sym.st_info) != STB_LOCAL;
		struct entry *grown;

		if (name && GELF_ST_TYPE(sym.st_info) == STT_FILE)
			file = *name ? name : NULL;
		if (!name || !*name || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
		    sym.st_shndx == SHN_UNDEF)
			continue;
		grown = grow(e->entry, e->n, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		e->entry = grown;
		grown[e->n++] = (struct entry){ sym.st_value, sym.st_size, name,
						global ? NULL : file, global };
	}
	if (e->n)
		qsort(e->entry, e->n, sizeof(*e->entry), by_address);
	return 0;
}

static bool is_same_name(const struct entry *x, const struct entry *y)
{
	return !x->global && !y->global && !strcmp(x->name, y->name) &&
	       !strcmp(x->file ?: "", y->file ?: "");
}

static int by_name(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a;
	const struct entry *y = *(const struct entry *const *)b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->file ?: "", y->file ?: "");
	return order ? order : x < y ? -1 : x > y; /* by address */
}

/* Names local functions: names->symbol[i] is e->entry[i]. */
static int name_locals(struct symbol_names *names, const struct entries *e)
{
	const struct entry **sorted = calloc(e->n + 1, sizeof(struct entry *));
	unsigned int nth = 0;
	int err = sorted ? 0 : -ENOMEM;
	size_t n = 0;

	for (size_t i = 0; !err && i < e->n; i++) {
		if (!e->entry[i].global)
			sorted[n++] = &e->entry[i];
	}
	if (n)
		qsort(sorted, n, sizeof(struct entry *), by_name);
	for (size_t i = 0; !err && i < n; i++) {
		const struct entry *one = sorted[i];
		char **name = &names->symbol[one - e->entry].name;

		nth = i && is_same_name(sorted[i - 1], one) ? nth + 1 : 1;
		if (asprintf(name, "%s%s%s/%u", one->name, one->file ? "/" : "", one->file ?: "",
			     nth) < 0) {
			*name = NULL;
			err = -ENOMEM;
		}
	}
	free(sorted);
	return err;
}

/* Keeps the first name of each address. */
static void merge_aliases(struct symbol_names *names)
{
	size_t n = 0;

	for (size_t i = 0; i < names->n; i++) {
		struct symbol_name *s = &names->symbol[i];

		if (n && names->symbol[n - 1].address == s->address) {
			if (names->symbol[n - 1].bytes < s->bytes)
				names->symbol[n - 1].bytes = s->bytes;
			free(s->name);
		} else {
			names->symbol[n++] = *s;
		}
	}
	names->n = n;
}

static int fill(struct symbol_names *names, const struct entries *e)
{
	int err;

	names->symbol = calloc(e->n + 1, sizeof(*names->symbol));
	if (!names->symbol)
		return -ENOMEM;
	names->n = e->n;
	for (size_t i = 0; i < e->n; i++) {
		struct symbol_name *s = &names->symbol[i];

		s->address = e->entry[i].address;
		s->bytes = e->entry[i].bytes;
		s->name = e->entry[i].global ? strdup(e->entry[i].name) : NULL;
		if (e->entry[i].global && !s->name)
			return -ENOMEM;
	}
	err = name_locals(names, e);
	if (!err)
		merge_aliases(names);
	return err;
}

int symbol_names_read(struct symbol_names *names, int fd)
{
	struct entries e = { 0 };
	Elf_Data *data = NULL;
	GElf_Shdr sh;
	Elf_Scn *scn;
	Elf *elf;
	int err;

	*names = (struct symbol_names){ 0 };
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	scn = elf_image_section_of_type(elf, SHT_SYMTAB, &sh);
	if (scn)
		data = elf_getdata(scn, NULL);
	err = (data ? read_entries(&e, elf, data, &sh) : -ENODATA) ?: fill(names, &e);
	free(e.entry);
	elf_end(elf);
	return err;
}

const struct symbol_name *symbol_names_find(const struct symbol_names *names, __u64 address)
{
	size_t lo = COUNT_WHILE(names->n, i, names->symbol[i].address <= address);

	if (!lo || address - names->symbol[lo - 1].address >= names->symbol[lo - 1].bytes)
		return NULL;
	return &names->symbol[lo - 1];
}

void symbol_names_fini(struct symbol_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->symbol[i].name);
	free(names->symbol);
	*names = (struct symbol_names){ 0 };
}
