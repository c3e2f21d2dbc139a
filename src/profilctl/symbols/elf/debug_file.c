/* debug_file.c - an ELF file's symbols and DWARF, or its separate debug file's, from libdwfl */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cleanup.h"

#include "debug_file.h"
#include "debuginfod.h"

const char *debug_file_path = ":.debug:/usr/lib/debug";

struct debug_file {
	Dwfl *dwfl;
	Dwfl_Module *module;
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

int debug_file_open(struct debug_file **out, int fd, const char *path)
{
	static const Dwfl_Callbacks callbacks = {
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = (char **)&debug_file_path,
	};
	__cleanup(debug_file_closep) struct debug_file *f = calloc(1, sizeof(*f));
	int copy;

	if (!f)
		return -ENOMEM;
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
