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

/*
 * Finds the functions of @skeleton in the .dwp file @path, into which the program's .dwo files are
 * linked. Returns NULL, or why not.
 */
static const char *from_package(struct split_package **p, const char *path, Dwarf *program,
				Dwarf_Die *skeleton, Dwarf_Die *out)
{
	__cleanup(closep) int fd = -1;

	if (!*p) {
		fd = guarded_file_open(path, NULL);
		if (fd < 0 || path_trust(path) != PATH_TRUSTED)
			return no_such_file;
		*p = split_package_open(fd);
	}
	if (!*p)
		return "it is no package of .dwo files, or damaged";
	return split_package_unit(*p, program, skeleton, out)
		       ? NULL
		       : "it is of another build, or damaged";
}

bool split_unit(struct split_package **p, const struct debug_file *f, Dwarf *program,
		Dwarf_Die *skeleton, Dwarf_Die *out)
{
	const char *name = text_of(skeleton, DW_AT_dwo_name, DW_AT_GNU_dwo_name), *why;
	const char *file = debug_file_path_of(f);
	char package[PATH_MAX];
	uint8_t type;

	if (!name || dwarf_cu_info(skeleton->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) ||
	    type != DW_UT_skeleton)
		return false;
	why = debug_file_is_trusted(f) ? refusal(f, skeleton, name)
				       : "it is named by another user's file";
	if (!why) {
		if (!dwarf_cu_info(skeleton->cu, NULL, NULL, NULL, out, NULL, NULL, NULL) &&
		    out->addr)
			return true;
		why = "it is of another build";
	} else if (why == no_such_file && file &&
		   snprintf(package, sizeof(package), "%s.dwp", file) < PATH_MAX) {
		const char *fault = from_package(p, package, program, skeleton, out);

		if (!fault)
			return true;
		if (fault != no_such_file) {
			name = package;
			why = fault;
		}
	}
	note(name, why);
	return false;
}
