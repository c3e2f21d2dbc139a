/* probe_point.c - where a file has a function or a static probe (USDT), for the kernel's uprobes */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "elf_image.h"
#include "probe_point.h"

/* The note of a static probe: three addresses, then provider, name and arguments as strings. */
#define STAPSDT "stapsdt"
#define STAPSDT_TYPE 3
#define STAPSDT_BASE ".stapsdt.base"

/* The offset in the file of @vaddr, in whatever segment; 0: none. */
static __u64 offset_of(Elf *elf, __u64 vaddr)
{
	GElf_Phdr ph;

	for (int i = 0; gelf_getphdr(elf, i, &ph); i++) {
		if (ph.p_type == PT_LOAD && vaddr - ph.p_vaddr < ph.p_filesz)
			return vaddr - ph.p_vaddr + ph.p_offset;
	}
	return 0;
}

static bool find_symbol(struct probe_point *out, Elf *elf, GElf_Word type, const char *name)
{
	GElf_Shdr sh;
	Elf_Scn *scn = elf_image_section_of_type(elf, type, &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *is = elf_strptr(elf, sh.sh_link, sym.st_name);

		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF || !is ||
		    strcmp(is, name))
			continue;
		out->offset = offset_of(elf, sym.st_value);
		return out->offset;
	}
	return false;
}

int probe_function(struct probe_point *out, int fd, const char *name)
{
	Elf *elf;
	int err;

	*out = (struct probe_point){ 0 };
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf_kind(elf) != ELF_K_ELF)
		err = -ENOEXEC;
	else if (find_symbol(out, elf, SHT_SYMTAB, name) || find_symbol(out, elf, SHT_DYNSYM, name))
		err = 0;
	else
		err = -ENOENT;
	elf_end(elf);
	return err;
}

/* Says whether the note's @desc, of @n bytes, is the probe's. A prelinked file has moved by @by. */
static bool read_note(struct probe_point *out, Elf *elf, const char *desc, size_t n, __u64 base,
		      const char *provider, const char *name)
{
	const char *strings = desc + 3 * sizeof(__u64);
	__u64 at[3];
	size_t left;

	if (n <= sizeof(at) || desc[n - 1])
		return false;
	left = n - sizeof(at);
	if (strcmp(strings, provider) || strlen(strings) + 1 >= left ||
	    strcmp(strings + strlen(strings) + 1, name))
		return false;
	memcpy(at, desc, sizeof(at));
	out->offset = offset_of(elf, at[0] + (base ? base - at[1] : 0));
	out->semaphore = at[2] ? offset_of(elf, at[2] + (base ? base - at[1] : 0)) : 0;
	return out->offset;
}

static bool find_note(struct probe_point *out, Elf *elf, const char *provider, const char *name)
{
	GElf_Shdr sh, base = { 0 };
	Elf_Scn *scn = elf_image_section(elf, ".note.stapsdt", &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t at = 0, title, desc;
	GElf_Nhdr note;

	if (!elf_image_section(elf, STAPSDT_BASE, &base))
		base.sh_addr = 0;
	while (data && (at = gelf_getnote(data, at, &note, &title, &desc)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type == STAPSDT_TYPE && note.n_namesz == sizeof(STAPSDT) &&
		    !memcmp(bytes + title, STAPSDT, sizeof(STAPSDT)) &&
		    read_note(out, elf, bytes + desc, note.n_descsz, base.sh_addr, provider, name))
			return true;
	}
	return false;
}

int probe_static(struct probe_point *out, int fd, const char *provider, const char *name)
{
	Elf *elf;
	int err = -ENOEXEC;

	*out = (struct probe_point){ 0 };
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf_kind(elf) == ELF_K_ELF)
		err = find_note(out, elf, provider, name) ? 0 : -ENOENT;
	elf_end(elf);
	return err;
}
