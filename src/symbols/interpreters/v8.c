/* v8.c - the descriptor of binaries with V8: node and libnode */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/observe_maps.h"

#include "binary.h"
#include "interpreter.h"

/* A constant that V8 exports for debuggers, v8dbg_NAME, and where it goes. */
struct constant {
	size_t at;
	const char *name[4]; /* of versions: a field's ends in its type */
};

#define AT(field) offsetof(struct profil_v8, field)

static const struct constant constants[] = {
	{ AT(frame_function), { "off_fp_function" } },
	{ AT(frame_context), { "off_fp_context" } },
	{ AT(function_shared), { "class_JSFunction__shared__SharedFunctionInfo" } },
	{ AT(shared_name),
	  { "class_SharedFunctionInfo__name_or_scope_info__Object",
	    "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_",
	    "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
	    "class_SharedFunctionInfo__raw_name_or_scope_info__Object" } },
	{ AT(shared_script),
	  { "class_SharedFunctionInfo__script__Tagged_HeapObject_",
	    "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
	    "class_SharedFunctionInfo__script__HeapObject" } },
	{ AT(script_name), { "class_Script__name__Object" } },
	{ AT(map_type), { "class_Map__instance_type__uint16_t" } },
	{ AT(string_length), { "class_String__length__int32_t" } },
	{ AT(string_chars), { "class_SeqOneByteString__chars__char" } },
	{ AT(type_nonstring), { "FirstNonstringType" } },
	{ AT(type_shared), { "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE" } },
	{ AT(type_script), { "type_Script__SCRIPT_TYPE" } },
	{ AT(type_function), { "type_JSFunction__JS_FUNCTION_TYPE" } },
	{ AT(string_one_byte), { "OneByteStringTag" } },
};

static bool value_of(Elf *elf, const char *name, __s32 *value)
{
	__cleanup(freep) char *full = NULL;
	struct binary_symbol symbol;

	if (asprintf(&full, "v8dbg_%s", name) < 0 || !binary_symbol(&symbol, elf, full))
		return false;
	/* Those that are 0 lie in .bss, which is not in the file. */
	if (!binary_bytes(elf, symbol.vaddr, value, sizeof(*value)))
		*value = 0;
	return true;
}

static bool read_constant(struct profil_v8 *v, Elf *elf, const struct constant *c)
{
	size_t names = sizeof(c->name) / sizeof(*c->name);
	__s32 value;

	for (size_t i = 0; i < names && c->name[i]; i++) {
		if (value_of(elf, c->name[i], &value)) {
			*(__u16 *)((char *)v + c->at) = (__u16)value;
			return true;
		}
	}
	return false;
}

static bool read_constants(struct profil_v8 *v, Elf *elf)
{
	for (size_t i = 0; i < sizeof(constants) / sizeof(*constants); i++) {
		if (!read_constant(v, elf, &constants[i]))
			return false;
	}
	return true;
}

/*
 * ScopeInfo's fields are words behind its map: flags, parameters, the number of context locals,
 * since V8 13 the position, and the context locals.
 */
static bool read_scope(struct profil_v8 *v, Elf *elf)
{
	__s32 locals, first;

	if (!value_of(elf, "scopeinfo_idx_ncontextlocals", &locals) ||
	    !value_of(elf, "scopeinfo_idx_first_vars", &first))
		return false;
	v->scope_locals = (__u16)(8 + 8 * locals);
	v->scope_first = (__u16)(8 + 8 * first);
	if (first > locals + 1)
		v->scope_position = (__u16)(v->scope_locals + 8);
	return true;
}

int v8_read(struct profil_interpreter *d, Elf *elf)
{
	__s32 smi;

	if (!value_of(elf, "off_fp_function", &smi))
		return -ENOENT;
	*d = (struct profil_interpreter){ .kind = PROFIL_INTERPRETER_V8,
					  .language = PROFIL_LANGUAGE_JAVASCRIPT };
	/* Compressed pointers, which no Node has, have small integers of 31 bits. */
	if (!value_of(elf, "SmiShiftSize", &smi) || smi != 31 || !read_constants(&d->v8, elf) ||
	    !read_scope(&d->v8, elf))
		return -EOPNOTSUPP;
	d->v8.string_kind_mask = 7;
	d->v8.type_function_last = 0xfffe;
	return binary_largest_gap(d, elf) ? 0 : -EOPNOTSUPP;
}
