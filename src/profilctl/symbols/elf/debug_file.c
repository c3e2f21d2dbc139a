/* debug_file.c - an ELF file's symbols and DWARF, or its separate debug file's, from libdwfl */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "profilctl/profile/profile.h"

#include "debug_file.h"
#include "debuginfod.h"
#include "elf_file.h"
#include "separate_debug.h"

struct debug_file {
	Dwfl *dwfl;
	Dwfl_Module *module;
	bool has_separate; /* or a server may have one */
};

struct debug_file *debug_file_close(struct debug_file *f)
{
	if (!f)
		return NULL;
	dwfl_end(f->dwfl);
	free(f);
	return NULL;
}

static void debug_file_closep(struct debug_file **f)
{
	debug_file_close(*f);
}

static bool may_have_separate(int fd)
{
	char build_id[PROFILE_BUILD_ID_MAX];
	__cleanup(closep) int separate = -1;

	if (debuginfod_servers())
		return true;
	elf_file_build_id(fd, build_id, sizeof(build_id));
	separate = separate_debug_open(fd, build_id);
	return separate >= 0;
}

/*
 * libdwfl loads libdebuginfod and its 40 libraries, in 20 ms, even if there is no server to ask. So
 * it is not asked for what is not there.
 */
static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **found)
{
	const struct debug_file *f = *userdata;

	return f->has_separate ? dwfl_standard_find_debuginfo(module, userdata, name, base, file,
							      link, crc, found)
			       : -1;
}

int debug_file_open(struct debug_file **out, int fd, const char *path)
{
	static const Dwfl_Callbacks callbacks = {
		.find_debuginfo = find_debuginfo,
		.debuginfo_path = (char **)&debug_file_path,
	};
	__cleanup(debug_file_closep) struct debug_file *f = calloc(1, sizeof(*f));
	void **userdata;
	int copy;

	if (!f)
		return -ENOMEM;
	f->has_separate = may_have_separate(fd);
	f->dwfl = dwfl_begin(&callbacks);
	if (!f->dwfl)
		return -ENOMEM;
	limit_debuginfod(f->dwfl);

	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	dwfl_report_begin(f->dwfl);
	/* With base 0 and add_p_vaddr, the module's addresses are the file's virtual addresses. */
	f->module = dwfl_report_elf(f->dwfl, path, path, copy, 0, true);
	if (!f->module)
		close(copy);
	dwfl_report_end(f->dwfl, NULL, NULL);
	if (!f->module)
		return -ENOEXEC;
	dwfl_module_info(f->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = f;
	*out = steal(f);
	return 0;
}

int debug_file_nsymbols(struct debug_file *f)
{
	int n = dwfl_module_getsymtab(f->module);

	progress_end_debuginfod();
	return n;
}

const char *debug_file_symbol(struct debug_file *f, int i, GElf_Sym *sym, GElf_Addr *address,
			      Elf **elf)
{
	return dwfl_module_getsym_info(f->module, i, sym, address, NULL, elf, NULL);
}

Dwarf *debug_file_dwarf(struct debug_file *f, Dwarf_Addr *bias)
{
	Dwarf *dwarf = dwfl_module_getdwarf(f->module, bias);

	progress_end_debuginfod();
	return dwarf;
}
