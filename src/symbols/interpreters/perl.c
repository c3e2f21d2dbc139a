/* perl.c - the descriptor of Perl's binaries: perl and libperl */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/observe_maps.h"

#include "binary.h"
#include "interpreter.h"

/* Interpreters of a build with threads, from the headers of 5.36, 5.40 and 5.42, 64 bits. */
static const struct profil_perl layout = {
	.state_info = 224,
	.state_statement = 208,
	.info_contexts = 8,
	.info_before = 16,
	.info_innermost = 32,
	.info_type = 44,
	.info_is_program = 1, /* PERLSI_MAIN */
	.context_bytes = 104,
	.context_statement = 16,
	.context_code = 72,
	.context_return = 48,
	.context_depth = 80,
	.context_sub = 9, /* CXt_SUB, CXt_FORMAT, CXt_EVAL */
	.context_format = 10,
	.context_eval = 11,
	.eval_is_block = 0x40, /* CXp_TRYBLOCK */
	.sub_package = 32,
	.sub_start = 40,
	.sub_glob = 56,
	.sub_file = 64,
	.sub_flags = 92,
	.sub_is_named = 0x8000, /* CVf_NAMED */
	.glob_name = 32,
	.hash_name = 32,
	.hash_name_count = 60,
	.op_type = 32,
	.statement_line = 36,
	.statement_file = 48,
};

#define OPERATIONS_MAX 1024

static bool is_known(Elf *elf)
{
	struct binary_symbol revision, version;
	__u8 major, minor;

	return binary_symbol(&revision, elf, "PL_revision") &&
	       binary_symbol(&version, elf, "PL_version") &&
	       binary_bytes(elf, revision.vaddr, &major, 1) &&
	       binary_bytes(elf, version.vaddr, &minor, 1) && major == 5 && minor >= 36 &&
	       minor <= 42;
}

/* Reads the array @name, with an element for each operation. Returns how many it has. */
static size_t read_array(__u64 *out, Elf *elf, const char *name)
{
	struct binary_symbol symbol;
	size_t n;

	if (!binary_symbol(&symbol, elf, name))
		return 0;
	n = symbol.bytes / sizeof(*out);
	return n <= OPERATIONS_MAX && binary_pointers(elf, symbol.vaddr, out, n) ? n : 0;
}

/* The number of the operation "nextstate", which "dbstate" follows; 0: there is none. */
static __u16 statement_of(Elf *elf)
{
	static const char wanted[] = "nextstate";
	__u64 name[OPERATIONS_MAX];
	size_t n = read_array(name, elf, "PL_op_name");
	char text[sizeof(wanted)];

	for (size_t i = 1; i < n; i++) {
		if (binary_bytes(elf, name[i], text, sizeof(text)) &&
		    !memcmp(text, wanted, sizeof(wanted)))
			return (__u16)i;
	}
	return 0;
}

int perl_read(struct profil_interpreter *d, Elf *elf)
{
	struct binary_symbol loop, key;
	__u64 delta, code[OPERATIONS_MAX];
	__u16 statement;

	if (!binary_symbol(&loop, elf, "Perl_runops_standard"))
		return -ENOENT;
	statement = is_known(elf) ? statement_of(elf) : 0;
	/* A build without threads has no such key. */
	if (!statement || !binary_symbol(&key, elf, "PL_thr_key") ||
	    !binary_delta(elf, loop.vaddr, &delta))
		return -EOPNOTSUPP;
	*d = (struct profil_interpreter){ .kind = PROFIL_INTERPRETER_PERL,
					  .language = PROFIL_LANGUAGE_PERL,
					  .runtime = key.vaddr - delta,
					  .perl = layout };
	d->perl.specific = binary_specific_offset();
	d->perl.op_statement = statement;
	if (!binary_loops(d, elf, &loop))
		return -EOPNOTSUPP;
	binary_add_operations(d, elf, code, read_array(code, elf, "PL_ppaddr"));
	return 0;
}
