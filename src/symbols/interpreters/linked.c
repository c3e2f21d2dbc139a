/* linked.c - the descriptors of PHP and Ruby, whose frames are in a list of the thread */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/observe_maps.h"

#include "binary.h"
#include "interpreter.h"

/* --- PHP -------------------------------------------------------------------------------------- */

/* zend_execute_data, zend_function, zend_op and zend_class_entry of PHP 8, 64 bits. */
static const struct profil_linked php = {
	.string = PROFIL_STRING_ZEND,
	.frame_next = 48,
	.frame_function = 24,
	.frame_end = 40,      /* the type of This, which has the call's flags */
	.end_mask = 1u << 17, /* ZEND_CALL_TOP */
	.frame_instruction = 0,
	.instruction_line = 24,
	.function_body = PROFIL_LINKED_NONE,
	.function_kind = 0,
	.kind_is = 2, /* ZEND_USER_FUNCTION */
	.function_name = 8,
	.function_file = 152,
	.function_line = 160,
	.function_class = 16,
	.class_name = 8,
};

/* mov 0xNNN(%reg),%reg: the displacement of the @nth such instruction of function @name. */
static bool displacement(__u32 *out, Elf *elf, const char *name, int nth)
{
	struct binary_symbol symbol;
	unsigned char code[64];

	if (!binary_symbol(&symbol, elf, name) || symbol.bytes < sizeof(code) ||
	    !binary_bytes(elf, symbol.vaddr, code, sizeof(code)))
		return false;
	for (size_t i = 0; i + 7 <= sizeof(code); i++) {
		if (code[i] != 0x48 || code[i + 1] != 0x8b || (code[i + 2] & 0xc0) != 0x80)
			continue;
		if (nth-- > 0) {
			i += 6;
			continue;
		}
		memcpy(out, code + i + 3, sizeof(*out));
		return true;
	}
	return false;
}

int php_read(struct profil_interpreter *d, Elf *elf)
{
	struct binary_symbol globals, loop;
	__u32 head;
	__u64 delta;

	if (!binary_symbol(&loop, elf, "execute_ex"))
		return -ENOENT;
	/* A thread-safe build has no such variable. */
	if (!binary_symbol(&globals, elf, "executor_globals") ||
	    !binary_delta(elf, loop.vaddr, &delta))
		return -EOPNOTSUPP;
	/* zend_get_executed_lineno() reads what an uncaught exception has, then
	 * current_execute_data. */
	if (!displacement(&head, elf, "zend_get_executed_lineno", 1) || head >= globals.bytes)
		return -EOPNOTSUPP;
	*d = (struct profil_interpreter){ .kind = PROFIL_INTERPRETER_LINKED,
					  .language = PROFIL_LANGUAGE_PHP,
					  .runtime = globals.vaddr - delta,
					  .linked = php };
	d->linked.head = (__u16)head;
	return binary_loops(d, elf, &loop) ? 0 : -EOPNOTSUPP;
}

/* --- Ruby ------------------------------------------------------------------------------------- */

/* rb_control_frame_t, rb_iseq_t and its body. */
static const struct profil_linked ruby = {
	.string = PROFIL_STRING_RUBY_3_1,
	.is_thread_data = 1,
	.list_start = 0,
	.list_words = 8,
	.head = 16,
	.frame_bytes = 64,
	.frame_function = 16,
	.frame_end = 32, /* ep, which points to the flags */
	.end_is_behind = 1,
	.end_mask = 0x20, /* VM_FRAME_FLAG_FINISH */
	.frame_instruction = PROFIL_LINKED_NONE,
	.function_body = 16,
	.function_kind = PROFIL_LINKED_NONE,
	.function_class = PROFIL_LINKED_NONE,
	.function_file = 64,
	.function_name = 80,
	.function_line = 88,
	.line_shift = 1,
};

/* The slot with the module and the offset of thread-local @name, by its relocation. */
static bool thread_data_slot(__u64 *vaddr, Elf *elf, const char *name)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header, symbols;
	GElf_Rela rela;
	GElf_Sym symbol;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data, *table;
		Elf_Scn *linked;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		linked = elf_getscn(elf, header.sh_link);
		if (!linked || !gelf_getshdr(linked, &symbols))
			continue;
		data = elf_getdata(section, NULL);
		table = elf_getdata(linked, NULL);
		for (int i = 0; data && table && gelf_getrela(data, i, &rela); i++) {
			const char *is;

			if (GELF_R_TYPE(rela.r_info) != R_X86_64_DTPMOD64 ||
			    !gelf_getsym(table, (int)GELF_R_SYM(rela.r_info), &symbol))
				continue;
			is = elf_strptr(elf, symbols.sh_link, symbol.st_name);
			if (is && !strcmp(is, name)) {
				*vaddr = rela.r_offset;
				return true;
			}
		}
	}
	return false;
}

static bool ruby_version_of(Elf *elf, int *minor)
{
	struct binary_symbol version;
	char text[8] = "";
	int major;

	return binary_symbol(&version, elf, "ruby_version") &&
	       binary_bytes(elf, version.vaddr, text, 5) &&
	       sscanf(text, "%d.%d", &major, minor) == 2 && major == 3;
}

int ruby_read(struct profil_interpreter *d, Elf *elf)
{
	struct binary_symbol exec, loop;
	__u64 delta, slot;
	int minor;

	if (!binary_symbol(&exec, elf, "rb_vm_exec"))
		return -ENOENT;
	if (!ruby_version_of(elf, &minor) || minor != 1 ||
	    !thread_data_slot(&slot, elf, "ruby_current_ec") ||
	    !binary_delta(elf, exec.vaddr, &delta) || !binary_largest_callee(&loop, elf, &exec))
		return -EOPNOTSUPP;
	*d = (struct profil_interpreter){ .kind = PROFIL_INTERPRETER_LINKED,
					  .language = PROFIL_LANGUAGE_RUBY,
					  .runtime = slot - delta,
					  .linked = ruby };
	return binary_loops(d, elf, &loop) ? 0 : -EOPNOTSUPP;
}
