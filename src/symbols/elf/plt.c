/* plt.c - names for PLT stubs, through which a file calls functions of others */
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arch.h"
#include "plt.h"

/* Real files have some thousand; a sparse file can have any number. */
#define STUBS_MAX (1u << 18)

static Elf_Scn *section(Elf *elf, const char *name, GElf_Shdr *sh)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *is;

		if (!gelf_getshdr(scn, sh))
			continue;
		is = elf_strptr(elf, names, sh->sh_name);
		if (is && !strcmp(is, name))
			return scn;
	}
	return NULL;
}

/* Stubs are in the order of the relocations of their jump slots. */
static int read_names(struct plt *plt, Elf *elf, Elf_Data *relocations, const GElf_Shdr *rela,
		      size_t n)
{
	GElf_Shdr symbols_sh;
	Elf_Scn *scn = elf_getscn(elf, rela->sh_link);
	Elf_Data *symbols = scn ? elf_getdata(scn, NULL) : NULL;

	if (!symbols || !gelf_getshdr(scn, &symbols_sh))
		return 0;
	plt->names = calloc(n, sizeof(*plt->names));
	if (!plt->names)
		return -ENOMEM;
	for (; plt->n < n; plt->n++) {
		const char *name = NULL;
		GElf_Rela r;
		GElf_Sym sym;

		if (gelf_getrela(relocations, (int)plt->n, &r) &&
		    gelf_getsym(symbols, (int)GELF_R_SYM(r.r_info), &sym))
			name = elf_strptr(elf, symbols_sh.sh_link, sym.st_name);
		/* The relocation of an indirect function (IRELATIVE) has no symbol. */
		if (asprintf(&plt->names[plt->n], "%s@plt", name && *name ? name : "*") < 0) {
			plt->names[plt->n] = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

int plt_read(struct plt *out, Elf *elf)
{
	GElf_Shdr rela, stubs;
	Elf_Scn *scn = section(elf, ".rela.plt", &rela);
	Elf_Data *relocations = scn ? elf_getdata(scn, NULL) : NULL;
	__u64 header = 0;
	size_t n;
	int err;

	*out = (struct plt){ 0 };
	if (!relocations || rela.sh_type != SHT_RELA ||
	    rela.sh_entsize != gelf_fsize(elf, ELF_T_RELA, 1, EV_CURRENT))
		return 0;
	n = relocations->d_size / rela.sh_entsize;
	if (!section(elf, ".plt.sec", &stubs)) {
		if (!section(elf, ".plt", &stubs))
			return 0;
		header = ARCH_PLT_HEADER;
	}
	/* Stubs have 16 bytes, or 24 with arm's BTI; other layouts are not supported. */
	if (!n || n > STUBS_MAX || stubs.sh_size < header || (stubs.sh_size - header) % n != 0)
		return 0;
	out->start = stubs.sh_addr + header;
	out->stub_bytes = (stubs.sh_size - header) / n;
	if (out->stub_bytes != 16 && out->stub_bytes != 24)
		return 0;
	err = read_names(out, elf, relocations, &rela, n);
	if (err < 0)
		plt_fini(out);
	return err;
}

void plt_fini(struct plt *plt)
{
	for (size_t i = 0; i < plt->n; i++)
		free(plt->names[i]);
	free(plt->names);
	*plt = (struct plt){ 0 };
}
