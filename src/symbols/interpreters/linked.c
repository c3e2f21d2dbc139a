/* linked.c - the descriptors of PHP and Ruby, whose frames are in a list of the thread */
#include <errno.h>
#include <stdbool.h>
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
	.native_is = 1,	      /* none: functions in C have their own kind */
	.frame_instruction = 0,
	.instruction_line = 24,
	.function_body = PROFIL_LINKED_NONE,
	.function_kind = 0,
	.kind_is = 2, /* ZEND_USER_FUNCTION */
	.function_name = 8,
	.function_class = 16,
	.class_name = 8,
};

/* mov 0xNNN(%reg),%reg: the displacement of the @nth such instruction of function @name. */
static bool displacement(__u32 *out, Elf *elf, const char *name, int nth)
{
	struct binary_symbol symbol;
	unsigned char code[128];
	size_t n;

	if (!binary_symbol(&symbol, elf, name))
		return false;
	n = symbol.bytes < sizeof(code) ? symbol.bytes : sizeof(code);
	if (!binary_bytes(elf, symbol.vaddr, code, n))
		return false;
	for (size_t i = 0; i + 7 <= n; i++) {
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
	__u32 head, file;
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
	/* Its sister reads filename_override, current_execute_data, then the function's file, whose
	 * place is another one in most versions. The line has always been behind it. */
	if (!displacement(&file, elf, "zend_get_executed_filename_ex", 2) || file % 8 ||
	    file > PROFIL_LINKED_FUNCTION_BYTES - 2 * sizeof(__u64))
		return -EOPNOTSUPP;
	*d = (struct profil_interpreter){ .kind = PROFIL_INTERPRETER_LINKED,
					  .language = PROFIL_LANGUAGE_PHP,
					  .runtime = globals.vaddr - delta,
					  .linked = php };
	d->linked.head = (__u16)head;
	d->linked.function_file = (__u16)file;
	d->linked.function_line = (__u16)(file + sizeof(__u64));
	return binary_loops(d, elf, &loop) ? 0 : -EOPNOTSUPP;
}

/* --- Ruby ------------------------------------------------------------------------------------- */

/* rb_control_frame_t, rb_iseq_t and its body, of Ruby 3.1. */
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
	.native_mask = 0x7fff0000,
	.native_is = 0x66660000, /* VM_FRAME_MAGIC_IFUNC, a block in C */
	.frame_instruction = PROFIL_LINKED_NONE,
	.function_body = 16,
	.function_kind = PROFIL_LINKED_NONE,
	.function_class = PROFIL_LINKED_NONE,
	.function_file = 64,
	.function_name = 80,
	.function_line = 88,
	.line_shift = 1,
};

/*
 * The slot with the module and the offset of ruby_current_ec, which newer versions do not export:
 * rb_block_given_p() begins with a look at it, by lea SLOT(%rip),%rdi with the prefix 0x66, which
 * the ABI prescribes before a call of __tls_get_addr().
 */
static bool current_ec_slot(__u64 *vaddr, Elf *elf)
{
	static const unsigned char lea[] = { 0x66, 0x48, 0x8d, 0x3d };
	struct binary_symbol reader;
	unsigned char code[32];
	__s32 distance;

	if (!binary_symbol(&reader, elf, "rb_block_given_p") || reader.bytes < sizeof(code) ||
	    !binary_bytes(elf, reader.vaddr, code, sizeof(code)))
		return false;
	for (size_t i = 0; i + sizeof(lea) + sizeof(distance) <= sizeof(code); i++) {
		if (memcmp(code + i, lea, sizeof(lea)) != 0)
			continue;
		memcpy(&distance, code + i + sizeof(lea), sizeof(distance));
		*vaddr = reader.vaddr + i + sizeof(lea) + sizeof(distance) + (__u64)(__s64)distance;
		return true;
	}
	return false;
}

#define LOOP_MIN (8u << 10)

/*
 * The loop is the largest function that rb_vm_exec() calls, which itself is the largest one that
 * rb_iseq_eval() calls where it has no symbol.
 */
static bool ruby_loop(struct binary_symbol *loop, Elf *elf)
{
	struct binary_symbol eval, exec;

	if (!binary_symbol(&exec, elf, "rb_vm_exec") &&
	    (!binary_symbol(&eval, elf, "rb_iseq_eval") ||
	     !binary_largest_callee(&exec, elf, &eval)))
		return false;
	return binary_largest_callee(loop, elf, &exec) && loop->bytes >= LOOP_MIN;
}

int ruby_read(struct profil_interpreter *d, Elf *elf)
{
	struct binary_symbol version, loop;
	char text[4] = "";
	__u64 delta, slot;

	if (!binary_symbol(&version, elf, "ruby_version"))
		return -ENOENT;
	if (!binary_bytes(elf, version.vaddr, text, 3) ||
	    (strcmp(text, "3.1") != 0 && strcmp(text, "3.3") != 0) ||
	    !current_ec_slot(&slot, elf) || !ruby_loop(&loop, elf) ||
	    !binary_delta(elf, loop.vaddr, &delta))
		return -EOPNOTSUPP;
	*d = (struct profil_interpreter){ .kind = PROFIL_INTERPRETER_LINKED,
					  .language = PROFIL_LANGUAGE_RUBY,
					  .runtime = slot - delta,
					  .linked = ruby };
	if (text[2] == '3') {
		d->linked.string = PROFIL_STRING_RUBY_3_3;
		d->linked.frame_bytes = 56;
		d->linked.line_shift = 0;
	}
	return binary_loops(d, elf, &loop) ? 0 : -EOPNOTSUPP;
}
