/* lines.c - which line of source stands at an offset of an ELF file */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"

#include "debugfile.h"
#include "demangle.h"
#include "grow.h"
#include "lines.h"
#include "objectfile.h"

struct lines {
	int fd;
	int debug_fd;
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_Die unit; /* the last one that was found: most offsets are near each other */
	bool has_unit;
	__u64 vaddr;
	struct full_path *paths; /* of the files with relative ones */
	size_t npaths;
	struct inlined *inlined;
	size_t ninlined;
};

struct full_path {
	const char *relative; /* as libdw has it */
	char *full;
};

struct inlined {
	const void *function;
	char *name;
};

static bool has_lines(Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh))
			continue;
		name = elf_strptr(elf, names, sh.sh_name);
		if (name && (!strcmp(name, ".debug_line") || !strcmp(name, ".zdebug_line")))
			return true;
	}
	return false;
}

void lines_close(struct lines *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->npaths; i++)
		free(l->paths[i].full);
	free(l->paths);
	for (size_t i = 0; i < l->ninlined; i++)
		free(l->inlined[i].name);
	free(l->inlined);
	dwarf_end(l->dwarf);
	elf_end(l->elf);
	closep(&l->debug_fd);
	closep(&l->fd);
	free(l);
}

static void lines_closep(struct lines **l)
{
	lines_close(*l);
}

int lines_open(struct lines **out, const struct object *o)
{
	__cleanup(lines_closep) struct lines *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->debug_fd = -1;
	l->vaddr = o->vaddr;
	l->fd = objectfile_open(o);
	if (l->fd < 0)
		return -ENOENT;
	elf_version(EV_CURRENT);
	l->elf = elf_begin(l->fd, ELF_C_READ_MMAP, NULL);
	if (!l->elf)
		return -ENOENT;
	if (!has_lines(l->elf))
		l->debug_fd = debugfile_open(l->elf, o->path);
	l->dwarf = dwarf_begin(l->debug_fd >= 0 ? l->debug_fd : l->fd, DWARF_C_READ);
	if (!l->dwarf)
		return -ENOENT;
	*out = steal(l);
	return 0;
}

/* By the table of addresses; not every compiler writes one. */
static bool find_unit(struct lines *l, Dwarf_Addr addr)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;

	if (l->has_unit && dwarf_haspc(&l->unit, addr) > 0)
		return true;
	l->has_unit = dwarf_addrdie(l->dwarf, addr, &l->unit) != NULL;
	while (!l->has_unit && dwarf_get_units(l->dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {
		l->unit = unit;
		l->has_unit = dwarf_haspc(&unit, addr) > 0;
	}
	return l->has_unit;
}

/* A path is relative to where the compiler ran. Where that is not known, it stays so. */
static const char *full_path(struct lines *l, const char *relative)
{
	Dwarf_Attribute attr;
	const char *dir;
	void *more;

	for (size_t i = l->npaths; i-- > 0;) {
		if (l->paths[i].relative == relative)
			return l->paths[i].full;
	}
	dir = dwarf_formstring(dwarf_attr(&l->unit, DW_AT_comp_dir, &attr));
	more = dir ? grow(l->paths, l->npaths, sizeof(*l->paths)) : NULL;
	if (!more)
		return relative;
	l->paths = more;
	if (asprintf(&l->paths[l->npaths].full, "%s/%s", dir, relative) < 0)
		return relative;
	l->paths[l->npaths].relative = relative;
	return l->paths[l->npaths++].full;
}

bool lines_find(struct lines *l, __u64 offset, const char **file, int *line)
{
	Dwarf_Line *row;

	if (!l || !find_unit(l, offset + l->vaddr))
		return false;
	row = dwarf_getsrc_die(&l->unit, offset + l->vaddr);
	*file = row ? dwarf_linesrc(row, NULL, NULL) : NULL;
	if (!*file || dwarf_lineno(row, line) != 0 || *line <= 0)
		return false;
	if (**file != '/')
		*file = full_path(l, *file);
	return true;
}

/* The name that a function has for its users. */
static char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name;

	name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));
	if (!name)
		name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));
	return name ? demangle(name, strlen(name)) : NULL;
}

/* What all the copies of an inlined function have in common. */
static const void *origin_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;

	if (dwarf_formref_die(dwarf_attr(die, DW_AT_abstract_origin, &attr), &origin))
		return origin.addr;
	return die->addr;
}

static const char *remembered(struct lines *l, Dwarf_Die *die)
{
	const void *function = origin_of(die);
	struct inlined *more;

	for (size_t i = l->ninlined; i-- > 0;) {
		if (l->inlined[i].function == function)
			return l->inlined[i].name;
	}
	more = grow(l->inlined, l->ninlined, sizeof(*more));
	if (!more)
		return NULL;
	l->inlined = more;
	more[l->ninlined] = (struct inlined){ function, name_of(die) };
	return more[l->ninlined++].name;
}

const char *lines_inlined(struct lines *l, __u64 offset)
{
	__cleanup(freep) Dwarf_Die *scopes = NULL;
	int n;

	if (!l || !find_unit(l, offset + l->vaddr))
		return NULL;
	n = dwarf_getscopes(&l->unit, offset + l->vaddr, &scopes);
	/* The innermost comes first; beyond the function itself is nothing of interest. */
	for (int i = 0; i < n && dwarf_tag(&scopes[i]) != DW_TAG_subprogram; i++) {
		if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine)
			return remembered(l, &scopes[i]);
	}
	return NULL;
}
