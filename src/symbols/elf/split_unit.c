/* split_unit.c - the part of a DWARF unit that the compiler has put into a .dwo or .dwp file */
#include <dwarf.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sanitize.h"
#include "symbols/proc/guarded_file.h"

#include "split_unit.h"
#include "unpack_limit.h"

/* Says it once: each unit can lack its file. */
static void note(const char *name, const char *why)
{
	static bool noted;
	char clean[PATH_MAX];

	if (!__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED))
		log_notice("%s: %s: its inlined functions are not shown",
			   sanitize(clean, sizeof(clean), name), why);
}

static const char *text_of(Dwarf_Die *die, unsigned int name, unsigned int older)
{
	Dwarf_Attribute attr;
	const char *text = dwarf_formstring(dwarf_attr(die, name, &attr));

	return text ? text : dwarf_formstring(dwarf_attr(die, older, &attr));
}

/*
 * Says whether libdw may open @name in @folder. It opens any path that a file names, so the file
 * must be one that root or this user made, and a file system that does not answer must not hold it
 * up.
 */
static bool may_open(const char *folder, const char *name, bool *trusted)
{
	__cleanup(closep) int fd = -1;
	char path[2 * PATH_MAX];
	int n = *name == '/' || !folder ? snprintf(path, sizeof(path), "%s", name)
					: snprintf(path, sizeof(path), "%s/%s", folder, name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return false;
	fd = guarded_file_open(path, NULL);
	*trusted = fd >= 0 && file_is_trusted(fd);
	return *trusted;
}

/* A skeleton names its file; libdw looks beside the program, and where it was compiled. */
static bool may_look(const struct debug_file *f, Dwarf_Die *skeleton, const char *name)
{
	Dwarf_Attribute attr;
	const char *built = dwarf_formstring(dwarf_attr(skeleton, DW_AT_comp_dir, &attr));
	bool trusted = false;

	return may_open(debug_file_folder(f), name, &trusted) || may_open(built, name, &trusted);
}

bool split_unit(const struct debug_file *f, Dwarf_Die *skeleton, Dwarf_Die *out)
{
	const char *name = text_of(skeleton, DW_AT_dwo_name, DW_AT_GNU_dwo_name);
	uint8_t type;

	if (!name || dwarf_cu_info(skeleton->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) ||
	    type != DW_UT_skeleton)
		return false;
	if (!debug_file_is_trusted(f) || !may_look(f, skeleton, name)) {
		note(name, debug_file_is_trusted(f) ? "no such file, or it is another user's"
						    : "it is named by another user's file");
		return false;
	}
	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, out, NULL, NULL, NULL) || !out->addr) {
		note(name, "it is of another build");
		return false;
	}
	return true;
}
