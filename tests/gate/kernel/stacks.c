/* stacks.c - the walk over a stack of the test's own, by each kind of unwind rule */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "core/arch.h"
#include "core/unwind_maps.h"
#include "synthetic.h"
#include "tests/lib/observed.h"
#include "tests/lib/observer.h"
#include "tests/programs/loops.h"

SYNTHETIC_SUITE(synth_stacks, true);

#if defined(__x86_64__)

#define PERIOD_NS 10000000u

/*
 * The test makes the system call that gives the sample with its own stack and frame pointer, so it
 * knows each word that the walk reads. The pcs are in the loops of this program; the rows of each
 * loop are one rule.
 */
#define STACK 64 /* words */
#define SP 8	 /* where the pointers point, in words */
#define RBX 12
#define R9_IS 2
#define FP 24
#define OUTER_FP 40

/* DWARF's numbers of registers, in a row's cfa. */
#define SHIFT PROFIL_UNWIND_REGISTER_SHIFT
#define NONE (PROFIL_UNWIND_NO_REGISTER << SHIFT)
#define R9 9
#define R10 10

#define CALLER 20 /* the loop to which each rule leads, by FP and 16 bytes, ... */
#define OUTER 21  /* ... and the one to which that returns: to the byte behind the loop */
#define BEHIND 22
#define BEFORE 19

static uint64_t stack[STACK];

struct rule {
	const char *name;
	struct profil_unwind_row row;
	unsigned int pc;	     /* bytes of the loop */
	unsigned int fp;	     /* 0: FP */
	unsigned int cfa;	     /* word of the stack */
	unsigned int saved;	     /* word with the caller's frame pointer; 0: not saved */
	unsigned int word;	     /* that the rule reads; 0: none */
	unsigned int points;	     /* to this word */
	enum profil_stack_root root; /* not WHOLE: the walk ends here */
};

#define FP_SAVED PROFIL_UNWIND_FP_SAVED
#define ABOVE PROFIL_UNWIND_SAVED_ABOVE

static const struct rule rules[] = {
	{ "sp", { .rule = PROFIL_UNWIND_SP, .cfa = 4 }, .cfa = SP + 4 },
	{ "sp, pair saved",
	  { .rule = PROFIL_UNWIND_SP | FP_SAVED, .cfa = 4, .saved = 2 },
	  .cfa = SP + 4,
	  .saved = SP + 2 },
	{ "sp, saved apart",
	  { .rule = PROFIL_UNWIND_SP | FP_SAVED, .cfa = 6, .saved = 5 },
	  .cfa = SP + 6,
	  .saved = SP + 1 },
	{ "sp, saved above",
	  { .rule = PROFIL_UNWIND_SP | FP_SAVED | ABOVE, .cfa = 10, .saved = 3 },
	  .cfa = SP + 10,
	  .saved = SP + 3 },
	{ "fp",
	  { .rule = PROFIL_UNWIND_FP | FP_SAVED, .cfa = 2, .saved = 2 },
	  .cfa = FP + 2,
	  .saved = FP },
	{ "plt, before its push",
	  { .rule = PROFIL_UNWIND_PLT, .cfa = 11 },
	  .pc = 10,
	  .cfa = SP + 1 },
	{ "plt, behind its push",
	  { .rule = PROFIL_UNWIND_PLT, .cfa = 11 },
	  .pc = 11,
	  .cfa = SP + 2 },
	{ "word at sp",
	  { .rule = PROFIL_UNWIND_SP_WORD, .cfa = NONE | 1 << 8 | 3 },
	  .cfa = SP + 8,
	  .word = SP + 3,
	  .points = SP + 7 },
	{ "word at sp and a register",
	  { .rule = PROFIL_UNWIND_SP_WORD | FP_SAVED, .cfa = R9 << SHIFT | 2 << 8 | 1, .saved = 3 },
	  .cfa = SP + 9,
	  .saved = SP + 6,
	  .word = SP + 1 + R9_IS,
	  .points = SP + 7 },
	{ "word at fp",
	  { .rule = PROFIL_UNWIND_FP_WORD | FP_SAVED | ABOVE, .cfa = NONE | 1 << 8 | (uint8_t)-2 },
	  .cfa = SP + 10,
	  .saved = FP,
	  .word = FP - 2,
	  .points = SP + 9 },
	{ "rbx",
	  { .rule = PROFIL_UNWIND_REGISTER, .cfa = ARCH_DWARF_RBX << SHIFT | 3, .saved = 2 },
	  .cfa = RBX + 3 },
	{ "a register of an interrupted frame",
	  { .rule = PROFIL_UNWIND_REGISTER | FP_SAVED, .cfa = R10 << SHIFT | 4, .saved = 2 },
	  .cfa = RBX + 4,
	  .saved = RBX + 2 },
	{ "switch to a lower stack",
	  { .rule = PROFIL_UNWIND_SWITCH | FP_SAVED, .cfa = 2, .saved = 2 },
	  .fp = 2,
	  .cfa = 4,
	  .saved = 2 },
	/* The register has the number of the system call's command, which is no address of code. */
	{ "return address in a register",
	  { .rule = PROFIL_UNWIND_SP | PROFIL_UNWIND_RA_LINK },
	  .root = PROFIL_STACK_NOWHERE },
	{ "end", { .rule = PROFIL_UNWIND_END }, .root = PROFIL_STACK_WHOLE },
	{ "beyond", { .rule = PROFIL_UNWIND_BEYOND }, .root = PROFIL_STACK_BEYOND },
	{ "none", { .rule = PROFIL_UNWIND_NONE }, .root = PROFIL_STACK_NO_TABLE },
	{ "a frame that does not grow",
	  { .rule = PROFIL_UNWIND_FP | FP_SAVED, .cfa = 2, .saved = 2 },
	  .fp = 2,
	  .root = PROFIL_STACK_UNREADABLE },
};

#define RULES (sizeof(rules) / sizeof(*rules))
_Static_assert(RULES < BEFORE, "a loop for each");
#define SIGNAL RULES

/*
 * Runs synth_count() with @a, while the stack and frame pointer are @sp and @fp, and rbx and r10
 * the address of RBX.
 */
static void give_with(struct synth_count *a, const uint64_t *sp, const uint64_t *fp)
{
	union bpf_attr attr = { 0 };
	register const uint64_t *r10 __asm__("r10");
	register uint64_t r9 __asm__("r9");
	long ret = __NR_bpf;

	attr.test.prog_fd = (__u32)bpf_program__fd(s.object->progs.synth_count);
	attr.test.ctx_in = (uintptr_t)a;
	attr.test.ctx_size_in = sizeof(*a);
	r10 = &stack[RBX];
	r9 = R9_IS;
	__asm__ volatile("mov %%rsp, %%r12\n mov %%rbp, %%r13\n"
			 "mov %[sp], %%rsp\n mov %[fp], %%rbp\n"
			 "syscall\n"
			 "mov %%r12, %%rsp\n mov %%r13, %%rbp\n"
			 : "+a"(ret)
			 : "D"((long)BPF_PROG_RUN), "S"(&attr),
			   "d"((long)sizeof(attr)), [sp] "r"(sp), [fp] "r"(fp), "b"(&stack[RBX]),
			   "r"(r9), "r"(r10)
			 : "rcx", "r11", "r12", "r13", "memory");
	cr_assert_eq(ret, 0, "%s", strerror((int)-ret));
}

static void give_at(uintptr_t pc, unsigned int fp)
{
	struct synth_count a = { .user_pc = pc,
				 .ns = PERIOD_NS,
				 .clock_ns = PERIOD_NS,
				 .periods = 1,
				 .flags = PROFIL_TARGET_TICK,
				 .user_mode = 1 };

	give_with(&a, &stack[SP], &stack[fp ? fp : FP]);
}

static void observe(struct observer *o, enum profil_stack_mode mode)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, PERIOD_NS);

	ask.stack_mode = mode;
	cr_assert_eq(observer_open(o, &d, &ask), 0);
	cr_assert_eq(observer_add(o, getpid()), 0);
	memset(stack, 0, sizeof(stack));
}

/* A row for each loop, from the first image on. */
static void put_rows(const struct observer *o, uint32_t image)
{
	size_t bytes = (size_t)o->table->unwind_pages * PROFIL_UNWIND_PAGE;
	uint32_t free_page =
		PROFIL_UNWIND_IMAGE_PAGE +
		(o->table->images + PROFIL_PAGE_UNWIND_IMAGES - 1) / PROFIL_PAGE_UNWIND_IMAGES;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, o->unwind, 0);
	struct profil_unwind_image *of;
	struct profil_unwind_row *row;

	cr_assert_neq(map, MAP_FAILED, "%s", strerror(errno));
	row = (void *)(map + (free_page + 1) * PROFIL_UNWIND_PAGE);
	memset(row, 0xff, PROFIL_UNWIND_PAGE);
	for (unsigned int i = 0; i < LOOPS; i++) {
		row[i] = (struct profil_unwind_row){ .rule = PROFIL_UNWIND_BEYOND };
		if (i < RULES)
			row[i] = rules[i].row;
		row[i].offset = (uint32_t)observed_offset(loop_at(i));
	}
	row[SIGNAL].rule = PROFIL_UNWIND_SIGNAL;
	row[CALLER].rule = PROFIL_UNWIND_FP | FP_SAVED;
	row[CALLER].cfa = row[CALLER].saved = 2;
	row[OUTER].rule = PROFIL_UNWIND_END;
	*(uint32_t *)(void *)(map + free_page * PROFIL_UNWIND_PAGE) = row->offset;
	of = (struct profil_unwind_image *)(void *)(map +
						    PROFIL_UNWIND_IMAGE_PAGE * PROFIL_UNWIND_PAGE) +
	     image - 1;
	*of = (struct profil_unwind_image){ .first_page = free_page,
					    .row_page = free_page + 1,
					    .pages = 1,
					    .looked = PROFIL_LOOKED };
	munmap(map, bytes);
}

/* The stack of the only sample at @pc must be these frames, the innermost first, and @root. */
static void expect_stack(const struct observer *o, const char *name, const uintptr_t *pc,
			 unsigned int n, enum profil_stack_root root)
{
	uint32_t image = observer_find(o, PROFIL_IMAGE_FILE, "kernel-tests");
	const struct profil_node *node = NULL;
	unsigned int i;

	for (uint32_t at = 0; at < o->table->nodes; at++) {
		const struct profil_node *it = observer_node(o, PROFIL_STACK_ROOTS + at);

		if (it->count && profil_place_offset(it->place) == observed_offset(pc[0])) {
			cr_assert(!node, "%s: two stacks", name);
			node = it;
		}
	}
	cr_assert(node, "%s: no stack", name);
	cr_expect_eq(node->count, 1);
	for (i = 0; i < n; i++) {
		cr_assert(node, "%s: %u frames, not %u", name, i, n);
		cr_assert_eq(profil_place_image(node->place), image, "%s: frame %u", name, i);
		cr_assert_eq(profil_place_offset(node->place), observed_offset(pc[i]),
			     "%s: frame %u is %#x", name, i, profil_place_offset(node->place));
		if (i == n - 1)
			cr_expect_eq(node->parent, root, "%s: it ends with %u, not %d", name,
				     node->parent, root);
		node = node->parent < PROFIL_STACK_ROOTS ? NULL : observer_node(o, node->parent);
	}
	cr_expect(!node, "%s: more than %u frames", name, n);
}

/* The frame of CALLER, whose frame pointer is the address of word @at. */
static void put_caller(unsigned int at)
{
	stack[at] = (uintptr_t)&stack[STACK - 2];
	stack[at + 1] = loop_at(BEHIND);
}

static void check(const struct observer *o, unsigned int i)
{
	const struct rule *r = &rules[i];
	uintptr_t pc[] = { loop_at(i) + r->pc, loop_at(CALLER) + 5, loop_at(BEHIND) };

	memset(stack, 0, sizeof(stack));
	if (r->word)
		stack[r->word] = (uintptr_t)&stack[r->points];
	if (r->cfa)
		stack[r->cfa - 1] = pc[1];
	if (r->saved)
		stack[r->saved] = (uintptr_t)&stack[OUTER_FP];
	if (r->cfa)
		put_caller(r->saved ? OUTER_FP : FP);
	give_at(pc[0], r->fp);
	expect_stack(o, r->name, pc, r->cfa ? 3 : 1, r->root);
}

Test(synth_stacks, of_each_rule_have_the_frames_of_the_stack)
{
	struct observer o;

	observe(&o, PROFIL_STACK_CFI);
	give_at(loop_at(LOOPS - 1), 0); /* gives this program an image */
	put_rows(&o, observer_find(&o, PROFIL_IMAGE_FILE, "kernel-tests"));
	for (unsigned int i = 0; i < RULES; i++)
		check(&o, i);
	cr_expect_eq(observer_check(&o), RULES + 1);
	observer_close(&o);
}

/* In a caller the register is what its callee has saved, if the row says where. */
Test(synth_stacks, of_an_rbx_that_a_callee_has_saved_have_its_frame)
{
	unsigned int i = 0;
	struct observer o;

	while (rules[i].row.rule != PROFIL_UNWIND_REGISTER)
		i++;
	for (unsigned int wrong = 0; wrong < 2; wrong++) {
		uintptr_t pc[] = { loop_at(0), loop_at(i) + 5, loop_at(CALLER) + 5,
				   loop_at(BEHIND) };

		observe(&o, PROFIL_STACK_CFI);
		give_at(loop_at(LOOPS - 1), 0);
		put_rows(&o, observer_find(&o, PROFIL_IMAGE_FILE, "kernel-tests"));
		stack[SP + 3] = pc[1];
		stack[SP + 2] = wrong ? (uintptr_t)stack : (uintptr_t)&stack[SP + 5];
		stack[SP + 7] = pc[2];
		put_caller(FP);
		give_at(pc[0], 0);
		expect_stack(&o, "rbx", pc, wrong ? 2 : 4,
			     wrong ? PROFIL_STACK_BEYOND : PROFIL_STACK_WHOLE);
		observer_close(&o);
	}
}

/*
 * The interrupted pc is not a return address: it is looked up itself, and its frame is stored one
 * byte behind it.
 */
Test(synth_stacks, of_a_signal_continue_at_the_interrupted_pc)
{
	uintptr_t pc[] = { loop_at(SIGNAL), loop_at(CALLER) + 1, loop_at(BEHIND) };
	struct observer o;

	observe(&o, PROFIL_STACK_CFI);
	give_at(loop_at(LOOPS - 1), 0);
	put_rows(&o, observer_find(&o, PROFIL_IMAGE_FILE, "kernel-tests"));
	stack[SP + ARCH_SIGNAL_PC / 8] = loop_at(CALLER);
	stack[SP + ARCH_SIGNAL_FP / 8] = (uintptr_t)&stack[OUTER_FP];
	stack[SP + ARCH_SIGNAL_SP / 8] = (uintptr_t)&stack[SP + 24];
	put_caller(OUTER_FP);
	give_at(pc[0], 0);
	expect_stack(&o, "signal", pc, 3, PROFIL_STACK_WHOLE);
	observer_close(&o);
}

/* Frame pointers rise; the last one is 0. */
Test(synth_stacks, of_frame_pointers_have_the_frames_of_the_stack)
{
	uintptr_t pc[] = { loop_at(0), loop_at(1) + 5, loop_at(2) + 5, loop_at(3) + 5 };
	struct observer o;

	observe(&o, PROFIL_STACK_FP);
	stack[FP] = (uintptr_t)&stack[FP + 6];
	stack[FP + 1] = pc[1];
	stack[FP + 6] = (uintptr_t)&stack[FP + 8];
	stack[FP + 7] = pc[2];
	stack[FP + 9] = pc[3];
	give_at(pc[0], 0);
	expect_stack(&o, "frame pointers", pc, 4, PROFIL_STACK_WHOLE);
	pc[0] = loop_at(4);
	stack[FP + 6] = (uintptr_t)&stack[FP + 6]; /* does not rise */
	give_at(pc[0], 0);
	expect_stack(&o, "a loop of frame pointers", pc, 2, PROFIL_STACK_NO_TABLE);
	observer_close(&o);
}

#else

Test(synth_stacks, of_each_rule_have_the_frames_of_the_stack)
{
	(void)s;
	cr_skip("the stack is switched by instructions of x86-64");
}

#endif
