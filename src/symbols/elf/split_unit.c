/* split_unit.c - the part of a DWARF unit that the compiler has put into a .dwo or .dwp file */
#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sanitize.h"
#include "symbols/proc/guarded_file.h"

#include "split_unit.h"
#include "symbols/proc/trusted_path.h"

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

static const char no_such_file[] = "no such file";

/* Joins the parts of a path as libdw does. Returns false if that is too long, or not absolute. */
static bool join(char out[PATH_MAX], const char *folder, const char *built, const char *name)
{
	const char *first = *name == '/' ? "" : built && *built == '/' ? built : folder;
	const char *second = *name == '/' || !built || *built == '/' ? "" : built;
	int n = *name == '/'
			? snprintf(out, PATH_MAX, "%s", name)
			: snprintf(out, PATH_MAX, "%s/%s/%s", first ? first : "", second, name);

	return n > 0 && n < PATH_MAX && (first || *name == '/');
}

/*
 * Says whether libdw may look for the file of @skeleton. It opens by itself each of these paths
 * that there is, in this order, until a file has the right unit: what the program's file names it
 * opens, so none of them may be another user's, now or when libdw opens it.
 */
static const char *refusal(const struct debug_file *f, Dwarf_Die *skeleton, const char *name)
{
	Dwarf_Attribute attr;
	const char *built = dwarf_formstring(dwarf_attr(skeleton, DW_AT_comp_dir, &attr));
	const char *folder = debug_file_folder(f), *folders[] = { NULL, built };
	bool any = false;
	char path[PATH_MAX];

	for (size_t i = 0; i < 2; i++) {
		__cleanup(closep) int fd = -1;
		enum path_trust trust;

		if ((i && !built) || !join(path, folder, folders[i], name))
			continue;
		fd = guarded_file_open(path, NULL); /* its file system answers */
		if (fd < 0 && fd != -ENOENT)
			return "it cannot be read";
		trust = path_trust(path);
		if (trust == PATH_UNTRUSTED)
			return "another user can replace it";
		any |= trust == PATH_TRUSTED;
	}
	return any ? NULL : no_such_file;
}

/* Says whether the files are linked into a .dwp beside the program, which newer libdw read. */
static bool has_package(const struct debug_file *f, char path[PATH_MAX])
{
	const char *file = debug_file_path_of(f);
	__cleanup(closep) int fd = -1;

	if (!file || snprintf(path, PATH_MAX, "%s.dwp", file) >= PATH_MAX)
		return false;
	fd = guarded_file_open(path, NULL);
	return fd >= 0 && path_trust(path) == PATH_TRUSTED;
}

bool split_unit(const struct debug_file *f, Dwarf_Die *skeleton, Dwarf_Die *out)
{
	const char *name = text_of(skeleton, DW_AT_dwo_name, DW_AT_GNU_dwo_name), *why;
	char package[PATH_MAX];
	uint8_t type;
	bool packed;

	if (!name || dwarf_cu_info(skeleton->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) ||
	    type != DW_UT_skeleton)
		return false;
	why = debug_file_is_trusted(f) ? refusal(f, skeleton, name)
				       : "it is named by another user's file";
	packed = why == no_such_file && has_package(f, package);
	if (why && !packed) {
		note(name, why);
		return false;
	}
	if (dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, out, NULL, NULL, NULL) || !out->addr) {
		note(packed ? package : name,
		     packed ? "this libdw reads no .dwp files" : "it is of another build");
		return false;
	}
	return true;
}
