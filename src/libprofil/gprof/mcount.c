/* mcount.c - counts calls: every function of a -pg program calls mcount first, in any thread */
#include "libprofil/entry.h"
#include "core/arch.h"
#include "mcount.h"

/*
 * mcount may be called in several threads at once, in a signal handler, or before constructors. So
 * it is lock-free: a count is an atomic addition, and a new arc is put at the front of its list by
 * compare-and-swap. If two threads add the same arc at once, there are two of it, and gprof adds
 * them up. Floating-point registers are not used: the Makefile forbids it.
 */
static struct profil_graph *counting;

void mcount_set(struct profil_graph *g)
{
	__atomic_store_n(&counting, g, __ATOMIC_RELEASE);
}

static void add_arc(struct profil_graph *g, __u32 *head, __u32 from, __u32 self)
{
	struct profil_arc *arc;
	__u32 n = g->arcs_max;

	if (__atomic_load_n(&g->arcs, __ATOMIC_RELAXED) < g->arcs_max)
		n = __atomic_fetch_add(&g->arcs, 1, __ATOMIC_RELAXED);
	if (n >= g->arcs_max) {
		__atomic_fetch_add(&g->uncounted, 1, __ATOMIC_RELAXED);
		return;
	}
	arc = &graph_arcs(g)[n];
	arc->from = from;
	arc->self = self;
	arc->calls = 1;
	arc->next = __atomic_load_n(head, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(head, &arc->next, n + 1, 0, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* The list of an arc: a hash, by the top bits, which the multiplication mixes best. */
static __u32 *head_of(struct profil_graph *g, __u32 from, __u32 self)
{
	__u32 mixed = from * 0x9e3779b1u + self * 0x85ebca6bu;

	return &graph_heads(g)[(__u64)mixed * g->heads >> 32];
}

/*
 * As in libc, a call from outside of the text (of main, or a thread's first) is not an arc. Marked
 * used, because only the assembly below calls it.
 */
__attribute__((__used__)) void mcount_call(unsigned long from_pc, unsigned long self_pc)
{
	struct profil_graph *g = __atomic_load_n(&counting, __ATOMIC_ACQUIRE);
	struct profil_arc *arc;
	__u32 *head, from, self;

	if (!g || from_pc - g->low >= g->text_bytes || self_pc - g->low >= g->text_bytes)
		return;
	from = (__u32)(from_pc - g->low);
	self = (__u32)(self_pc - g->low);
	head = head_of(g, from, self);
	for (__u32 i = __atomic_load_n(head, __ATOMIC_ACQUIRE); i; i = arc->next) {
		arc = &graph_arcs(g)[i - 1];
		if (arc->from == from && arc->self == self) {
			__atomic_fetch_add(&arc->calls, 1, __ATOMIC_RELAXED);
			return;
		}
	}
	add_arc(g, head, from, self);
}

#if ARCH_MCOUNT_ASIDE
/*
 * Called while a function's arguments are in registers, so all must be preserved. mcount is called
 * after the frame is set up and __fentry__ before, so they find the caller's return address in
 * different places. The stack need not be aligned, because mcount_call() uses only general
 * registers.
 */
#define ENTRY(names, from)                         \
	__asm__(".text\n" names ".cfi_startproc\n" \
		"endbr64\n"                        \
		"subq $72, %rsp\n"                 \
		".cfi_adjust_cfa_offset 72\n"      \
		"movq %rax, (%rsp)\n"              \
		"movq %rcx, 8(%rsp)\n"             \
		"movq %rdx, 16(%rsp)\n"            \
		"movq %rsi, 24(%rsp)\n"            \
		"movq %rdi, 32(%rsp)\n"            \
		"movq %r8, 40(%rsp)\n"             \
		"movq %r9, 48(%rsp)\n"             \
		"movq %r10, 56(%rsp)\n"            \
		"movq %r11, 64(%rsp)\n"            \
		"movq " from ", %rdi\n"            \
		"movq 72(%rsp), %rsi\n"            \
		"call mcount_call\n"               \
		"movq (%rsp), %rax\n"              \
		"movq 8(%rsp), %rcx\n"             \
		"movq 16(%rsp), %rdx\n"            \
		"movq 24(%rsp), %rsi\n"            \
		"movq 32(%rsp), %rdi\n"            \
		"movq 40(%rsp), %r8\n"             \
		"movq 48(%rsp), %r9\n"             \
		"movq 56(%rsp), %r10\n"            \
		"movq 64(%rsp), %r11\n"            \
		"addq $72, %rsp\n"                 \
		".cfi_adjust_cfa_offset -72\n"     \
		"ret\n"                            \
		".cfi_endproc\n")
#define NAME(name) ".globl " name "\n.type " name ",@function\n" name ":\n"

ENTRY(NAME("mcount") NAME("_mcount"), "8(%rbp)");
ENTRY(NAME("__fentry__"), "80(%rsp)");
#else
PROFIL_PUBLIC void _mcount(void *from);

/* Called like any function; @from is its caller's return address, which may be signed. */
void _mcount(void *from)
{
	register void *bare __asm__("x30") = from;

	__asm__("hint 7" : "+r"(bare)); /* xpaclri; a no-op on older processors */
	mcount_call((unsigned long)bare, (unsigned long)__builtin_return_address(0));
}
#endif
