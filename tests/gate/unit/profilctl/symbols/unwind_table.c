/* unwind_table.c - the kernel's unwind rows of real files */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arch.h"
#include "build_dir.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "symbols/elf/go_stack_switch.h"
#include "symbols/elf/unwind_table.h"
#include "symbols/elf_symbols.h"

static void open_table(struct unwind_table *t, const char *path)
{
	__cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "cannot open %s", path);
	cr_assert_eq(unwind_table_open(t, fd, -1, NULL), 0);
}

static unsigned int kind(const struct profil_unwind_row *row)
{
	return row->rule & PROFIL_UNWIND_KIND;
}

static int note_libc(struct dl_phdr_info *info, size_t size, void *path)
{
	if (strstr(info->dlpi_name, "/libc.so."))
		snprintf(path, 256, "%s", info->dlpi_name);
	return 0;
}

static size_t count(const struct unwind_table *t, unsigned int wanted)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += kind(&t->row[i]) == wanted;
	return n;
}

Test(unwind_table, sorts_rows_of_libc_and_repeats_none)
{
	char path[256] = "";
	struct unwind_table t;

	dl_iterate_phdr(note_libc, path);
	open_table(&t, path);
	cr_assert_gt(t.n, 5000, "%s has %zu rows", path, t.n);
	for (size_t i = 1; i < t.n; i++) {
		cr_assert_lt(t.row[i - 1].offset, t.row[i].offset, "row %zu", i);
		cr_assert(memcmp(&t.row[i - 1].cfa, &t.row[i].cfa, 4), "row %zu repeats", i);
	}
	unwind_table_fini(&t);
}

Test(unwind_table, finds_the_start_of_threads_and_the_signal_trampoline_in_libc)
{
	char path[256] = "";
	struct unwind_table t;

	dl_iterate_phdr(note_libc, path);
	open_table(&t, path);
	cr_assert_geq(count(&t, PROFIL_UNWIND_END), 1, "clone() has no caller");
#if ARCH_DWARF_RA == 16
	cr_assert_geq(count(&t, PROFIL_UNWIND_SIGNAL), 1, "__restore_rt is a signal frame");
	cr_assert_geq(count(&t, PROFIL_UNWIND_PLT), 1, "the lazy PLT has a rule of its own");
#endif
	cr_assert_lt(t.beyond * 100, t.n, "%zu of %zu rows are expressions", t.beyond, t.n);
	unwind_table_fini(&t);
}

Test(unwind_table, finds_the_row_that_covers_an_offset)
{
	struct unwind_table t;

	open_table(&t, "/proc/self/exe");
	cr_assert_gt(t.n, 2);
	cr_assert_null(unwind_table_find(&t, t.row[0].offset - 1));
	cr_assert_eq(unwind_table_find(&t, t.row[1].offset), &t.row[1]);
	cr_assert_eq(unwind_table_find(&t, t.row[2].offset - 1), &t.row[1]);
	cr_assert_eq(unwind_table_find(&t, UINT32_MAX), &t.row[t.n - 1]);
	unwind_table_fini(&t);
}

#define LARGE_BYTES (4 << 20)

/* A large program's rows; its functions are some hundred thousand. */
static void expect_within_4_mib(const char *path)
{
	struct unwind_table t;

	open_table(&t, path);
	cr_expect_gt(t.n, 50000, "%s has %zu rows", path, t.n);
	cr_expect_eq(sizeof(*t.row), 8);
	cr_expect_leq(t.n * sizeof(*t.row), LARGE_BYTES, "%s has %zu rows", path, t.n);
	unwind_table_fini(&t);
}

Test(unwind_table, of_gccs_compiler_takes_4_mib_at_most)
{
	FILE *said = popen("gcc -print-prog-name=cc1", "r");
	char path[4096] = "";

	if (said && fscanf(said, "%4095s", path) != 1)
		*path = 0;
	if (said)
		pclose(said);
	if (*path != '/')
		cr_skip_test("gcc has no cc1");
	expect_within_4_mib(path);
}

/* Debian's own /usr/bin/node has its code in a library. */
Test(unwind_table, of_node_takes_4_mib_at_most)
{
	glob_t found;

	if (glob("/usr/lib/*/libnode.so.*", 0, NULL, &found) &&
	    glob("/usr/bin/node", 0, NULL, &found))
		cr_skip_test("no node: sudo make deps");
	expect_within_4_mib(found.gl_pathv[0]);
	globfree(&found);
}

Test(unwind_table, reads_the_vdso)
{
	struct unwind_table t;

	cr_assert_eq(unwind_table_open_vdso(&t), 0);
#if ARCH_DWARF_RA == 16
	cr_assert_gt(t.n, 4, "%zu rows", t.n);
#else
	cr_assert_eq(t.n, 2, "%zu rows", t.n);
	cr_assert_eq(count(&t, PROFIL_UNWIND_SIGNAL), 1, "signal handlers return to the vdso");
#endif
	unwind_table_fini(&t);
}

Test(unwind_table, refuses_a_file_that_is_not_elf)
{
	__cleanup(closep) int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct unwind_table t;

	cr_assert_eq(unwind_table_open(&t, fd, -1, NULL), -ENOEXEC);
	cr_assert_eq(t.n, 0);
}

/* Builds "a" with @functions functions, each with @rules rules, and reads it. */
static void build_table(struct unwind_table *t, unsigned int functions, unsigned int rules)
{
	char source[512], path[128];

	snprintf(source, sizeof(source),
		 "asm(\".rept %u\\n.cfi_startproc\\n.rept %u\\nnop\\n"
		 ".cfi_adjust_cfa_offset 8\\nnop\\n.cfi_adjust_cfa_offset -8\\n.endr\\n"
		 ".cfi_endproc\\n.balign 16\\n.endr\");\nint main(void) { return 0; }\n",
		 functions, rules / 2);
	build_dir_open(source, "");
	build_dir_run("gcc -o a a.c");
	snprintf(path, sizeof(path), "%s/a", build_dir);
	open_table(t, path);
	build_dir_close();
}

Test(unwind_table, has_a_limited_number_of_rows_for_a_function)
{
	struct unwind_table t;
	size_t none;

	build_table(&t, 1, 40000);
	none = count(&t, PROFIL_UNWIND_NONE);
	cr_expect(t.n > 16000 && t.n < 16500, "%zu rows", t.n);
	cr_expect_geq(none, 1, "the rest of the function has no rules");
	unwind_table_fini(&t);
}

#if ARCH_DWARF_RA == 16
static const struct profil_unwind_row *row_of_symbol(struct unwind_table *t, const char *name,
						     __u64 more)
{
	__cleanup(closep) int fd = -1;
	struct symbols *s;
	char path[128];
	__u64 at;

	snprintf(path, sizeof(path), "%s/a", build_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(symbols_open(&s, fd, path), 0);
	cr_assert(symbols_named(s, name, &at), "no symbol %s", name);
	symbols_close(s);
	if (!t->n)
		cr_assert_eq(unwind_table_open(t, fd, -1, NULL), 0);
	return unwind_table_find(t, (__u32)(at + more));
}

#define NONE (PROFIL_UNWIND_NO_REGISTER << PROFIL_UNWIND_REGISTER_SHIFT)
#define RBX (ARCH_DWARF_RBX << PROFIL_UNWIND_REGISTER_SHIFT)

/* A realigned stack: the CFA is the word at fp - 8, the caller's frame pointer is at fp. */
Test(unwind_table, has_rules_of_a_realigned_stack)
{
	const struct profil_unwind_row *row;
	struct unwind_table t = { 0 };

	build_dir_open("__attribute__((noinline)) int f(int *a, int b, int c, int d, int e, int g, "
		       "int h)\n"
		       "{ __attribute__((aligned(64))) volatile int x[16] = { h }; x[b] = g;\n"
		       "__asm__ volatile(\".globl inside\\ninside:\" : : : \"memory\");\n"
		       "return x[c] + *a + d + e; }\n"
		       "int main(int n, char **v) { return f(&n, n, 1, 2, 3, 4, 5) + !v; }\n",
		       "store");
	build_dir_run("gcc -O2 -mforce-drap -o a a.c");
	row = row_of_symbol(&t, "inside", 0);
	cr_assert_not_null(row);
	cr_expect_eq(kind(row), PROFIL_UNWIND_FP_WORD);
	cr_expect_eq((__s8)row->cfa, -1);
	cr_expect_eq(row->cfa >> 8, NONE >> 8);
	cr_expect_eq(row->rule & ~PROFIL_UNWIND_KIND,
		     PROFIL_UNWIND_FP_SAVED | PROFIL_UNWIND_SAVED_ABOVE);
	cr_expect_eq(row->saved, 0);
	unwind_table_fini(&t);
	build_dir_close();
}

static void expect_row(struct unwind_table *t, const char *name, unsigned int rule, __u16 cfa,
		       __u8 saved)
{
	const struct profil_unwind_row *row = row_of_symbol(t, name, 0);

	cr_assert_not_null(row);
	cr_expect_eq(row->rule, rule, "%s: rule %#x", name, row->rule);
	cr_expect_eq(row->cfa, cfa, "%s: CFA %#x", name, row->cfa);
	cr_expect_eq(row->saved, saved, "%s: saved %u", name, row->saved);
}

/* Call frame instructions of the test's own; .cfi_escape 0x0f is an expression for the CFA. */
Test(unwind_table, has_the_numbers_of_each_rule)
{
	struct unwind_table t = { 0 };

	build_dir_open(
		"asm(\".globl sp, below, above, plt, sp_word, index, fp_word, link, r11, far\\n"
		"sp: .cfi_startproc\\nnop\\n.cfi_def_cfa_offset 64\\n.cfi_offset 6, -48\\n"
		"below: nop\\n.cfi_def_cfa_offset 2400\\n.cfi_offset 6, -2320\\n"
		"above: nop\\n.cfi_restore 6\\n"
		".cfi_escape 0x0f,11,0x77,8,0x80,0,0x3f,0x1a,0x3b,0x2a,0x33,0x24,0x22\\n"
		"plt: nop\\n.cfi_escape 0x0f,5,0x77,24,6,0x23,8\\n"
		"sp_word: nop\\n.cfi_escape 0x0f,10,0x77,8,0x79,0,0x38,0x1e,0x22,6,0x23,64\\n"
		"index: nop\\n.cfi_escape 0x0f,5,0x76,0x70,6,0x23,24\\n"
		"fp_word: nop\\n.cfi_def_cfa 7, 0\\n.cfi_register 16, 5\\n"
		"link: nop\\n.cfi_restore 16\\n.cfi_def_cfa 11, 96\\n.cfi_offset 6, -16\\n"
		"r11: nop\\n.cfi_def_cfa 11, 32768\\nfar: nop\\n.cfi_endproc\");\nint main(void) { return 0; }\n",
		"store");
	build_dir_run("gcc -o a a.c");
	expect_row(&t, "sp", PROFIL_UNWIND_SP, 1, 0);
	expect_row(&t, "below", PROFIL_UNWIND_SP | PROFIL_UNWIND_FP_SAVED, 8, 6);
	expect_row(&t, "above",
		   PROFIL_UNWIND_SP | PROFIL_UNWIND_FP_SAVED | PROFIL_UNWIND_SAVED_ABOVE, 300, 10);
	expect_row(&t, "plt", PROFIL_UNWIND_PLT, 11, 0);
	expect_row(&t, "sp_word", PROFIL_UNWIND_SP_WORD, NONE | 1 << 8 | 3, 0);
	expect_row(&t, "index", PROFIL_UNWIND_SP_WORD, 9 << 12 | 8 << 8 | 1, 0);
	expect_row(&t, "fp_word", PROFIL_UNWIND_FP_WORD, NONE | 3 << 8 | (__u8)-2, 0);
	expect_row(&t, "link", PROFIL_UNWIND_SP | PROFIL_UNWIND_RA_LINK, 0, 0);
	expect_row(&t, "r11", PROFIL_UNWIND_REGISTER | PROFIL_UNWIND_FP_SAVED, 11 << 12 | 12, 2);
	expect_row(&t, "far", PROFIL_UNWIND_BEYOND, 0, 0);
	unwind_table_fini(&t);
	build_dir_close();
}

/* As _dl_runtime_resolve() of ld.so: what it calls has saved the register below its own frame. */
Test(unwind_table, says_where_a_callee_has_saved_rbx)
{
	struct unwind_table t = { 0 };

	build_dir_open(
		"asm(\".globl before, call, after\\n"
		"resolve: .cfi_startproc\\npush %rbx\\n.cfi_def_cfa_offset 16\\n"
		".cfi_offset 3, -16\\nmov %rsp, %rbx\\n.cfi_def_cfa_register 3\\n"
		"before: and $-64, %rsp\\n"
		"call: call fixup\\nafter: mov %rbx, %rsp\\npop %rbx\\n.cfi_def_cfa 7, 8\\nret\\n"
		".cfi_endproc\\n"
		"fixup: .cfi_startproc\\npush %r12\\n.cfi_def_cfa_offset 16\\npush %rbx\\n"
		".cfi_def_cfa_offset 24\\n.cfi_offset 3, -24\\nnop\\n.cfi_endproc\");\n"
		"int main(void) { return 0; }\n",
		"store");
	build_dir_run("gcc -o a a.c");
	expect_row(&t, "before", PROFIL_UNWIND_REGISTER, RBX | 2, 0);
	expect_row(&t, "call", PROFIL_UNWIND_REGISTER, RBX | 2, 3);
	expect_row(&t, "after", PROFIL_UNWIND_REGISTER, RBX | 2, 0);
	unwind_table_fini(&t);
	build_dir_close();
}

/* The compiler's own start-up code has no rules in the file. */
Test(unwind_table, has_rules_of_start_up_code)
{
	struct unwind_table t = { 0 };

	build_dir_open("int main(void) { return 0; }\n", "store");
	build_dir_run("gcc -o a a.c");
	expect_row(&t, "_init", PROFIL_UNWIND_SP, 1, 0);
	expect_row(&t, "deregister_tm_clones", PROFIL_UNWIND_SP, 1, 0);
	expect_row(&t, "__do_global_dtors_aux", PROFIL_UNWIND_SP, 1, 0);
	cr_expect_gt(count(&t, PROFIL_UNWIND_FP), 0, "its frame");
	expect_row(&t, "frame_dummy", PROFIL_UNWIND_SP, 1, 0);
	expect_row(&t, "main", PROFIL_UNWIND_SP, 1, 0);
	expect_row(&t, "_fini", PROFIL_UNWIND_SP, 1, 0);
	unwind_table_fini(&t);
	build_dir_close();
}

/* The same bytes in the middle of other code begin at their own function. */
Test(unwind_table, leaves_unknown_code_before_start_up_code_alone)
{
	struct unwind_table t = { 0 };

	build_dir_open("asm(\".globl unknown, dtors, behind\\n"
		       "first: .cfi_startproc\\nret\\n.cfi_endproc\\n.balign 16\\n"
		       "unknown: push %rbx\\n.fill 128, 1, 0x90\\npop %rbx\\nret\\n.balign 16\\n"
		       "dtors: cmpb $0, x(%rip)\\njne 1f\\npush %rbp\\nmov %rsp, %rbp\\n"
		       "call first\\npop %rbp\\nret\\n1: ret\\n.balign 16\\n"
		       "jmp first\\n.balign 16\\nbehind: .fill 128, 1, 0x90\\n"
		       "last: .cfi_startproc\\nret\\n.cfi_endproc\");\n"
		       "char x;\nint main(void) { return 0; }\n",
		       "store");
	build_dir_run("gcc -o a a.c");
	expect_row(&t, "unknown", PROFIL_UNWIND_NONE, 0, 0);
	expect_row(&t, "dtors", PROFIL_UNWIND_SP, 1, 0);
	expect_row(&t, "behind", PROFIL_UNWIND_NONE, 0, 0);
	unwind_table_fini(&t);
	build_dir_close();
}

/* musl's _start() has no rules; start-up code follows it. */
Test(unwind_table, has_rows_in_order_where_the_entry_point_has_no_rules)
{
	struct unwind_table t = { 0 };

	build_dir_open("asm(\".globl _start, dtors\\n"
		       "_start: xor %ebp, %ebp\\ncall main\\n.balign 16\\n"
		       "dtors: cmpb $0, x(%rip)\\njne 1f\\npush %rbp\\nmov %rsp, %rbp\\n"
		       "call _start\\npop %rbp\\nret\\n1: ret\\n.balign 16\\n"
		       "jmp dtors\\n.balign 16\\n.skip 128, 0x90\");\n"
		       "char x;\nint main(void) { return 0; }\n",
		       "store");
	build_dir_run("gcc -nostdlib -static -o a a.c");
	expect_row(&t, "_start", PROFIL_UNWIND_END, 0, 0);
	expect_row(&t, "dtors", PROFIL_UNWIND_SP, 1, 0);
	for (size_t i = 1; i < t.n; i++)
		cr_expect_lt(t.row[i - 1].offset, t.row[i].offset);
	unwind_table_fini(&t);
	build_dir_close();
}

/*
 * V8's PushAllRegistersAndIterateStack has no rules but a frame pointer. glibc's clone3 leaves its
 * rules out behind the system call, where those before it are right for the parent.
 */
Test(unwind_table, has_short_functions_with_a_frame_pointer_but_no_rules)
{
	struct unwind_table t = { 0 };

	build_dir_open(
		"asm(\".globl before, framed, branch, call\\n"
		"before: .cfi_startproc\\npush %rbx\\n.cfi_def_cfa_offset "
		"16\\nnop\\n.cfi_endproc\\n"
		"framed: push %rbp\\nmov %rsp, %rbp\\npush %rbx\\ncall before\\nret\\n.balign 16\\n"
		"branch: .cfi_startproc\\nendbr64\\nnop\\n.cfi_endproc\\n"
		"call: syscall\\ntest %rax, %rax\\nret\\n.balign 16\\n\");\n"
		"int main(void) { return 0; }\n",
		"store");
	build_dir_run("gcc -o a a.c");
	expect_row(&t, "framed", PROFIL_UNWIND_NONE, 0, 0);
	expect_row(&t, "branch", PROFIL_UNWIND_SP, 1, 0);
	expect_row(&t, "call", PROFIL_UNWIND_SP, 1, 0);
	unwind_table_fini(&t);
	build_dir_close();
}

/* Other frames of Go save the frame pointer, on which a switch of stacks relies. */
Test(unwind_table, has_rules_of_the_stack_switches_in_go)
{
	const struct profil_unwind_row *row;
	struct unwind_table t = { 0 };

	if (system("command -v go >/dev/null") != 0)
		cr_skip_test("no go here");
	build_dir_open("", "store");
	build_dir_run("printf 'package main\\nfunc main() { println(1) }\\n' > a.go && "
		      "GO111MODULE=off HOME=$PWD go build -o a a.go");
	row = row_of_symbol(&t, "runtime.systemstack.abi0", 1);
	cr_expect_eq(kind(row), PROFIL_UNWIND_SWITCH);
	cr_expect_eq(row->cfa, 2);
	cr_expect_eq(kind(row_of_symbol(&t, "runtime.mcall", 1)), PROFIL_UNWIND_END);
	cr_expect_eq(kind(row_of_symbol(&t, "runtime.morestack.abi0", 1)), PROFIL_UNWIND_END);
	row = row_of_symbol(&t, "main.main", 32);
	cr_expect_eq(kind(row), PROFIL_UNWIND_SP);
	cr_expect(row->rule & PROFIL_UNWIND_FP_SAVED);
	cr_expect_eq(row->saved, 2);
	unwind_table_fini(&t);
	build_dir_close();
}
#endif

Test(unwind_table, knows_the_stack_switches_of_go_by_name)
{
	cr_expect_eq(go_switch_of("runtime.systemstack.abi0"), GO_SWITCH_KEPT);
	cr_expect_eq(go_switch_of("runtime.systemstack_switch"), GO_SWITCH_NONE);
	cr_expect_eq(go_switch_of("runtime.nanotime1.abi0"), GO_SWITCH_FRAMED);
	cr_expect_eq(go_switch_of("runtime.mstart0"), GO_SWITCH_NONE);
	cr_expect_eq(go_switch_of("runtime.sigreturn"), GO_SWITCH_SIGNAL);
}
