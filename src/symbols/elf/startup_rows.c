/* startup_rows.c - unwind rows of the start-up code that compilers add to each file, without rules */
#include <string.h>

#include "core/arch.h"

#include "startup_rows.h"

static void put(struct startup_rows *out, __u64 at, struct profil_unwind_row row)
{
	out->at[out->n] = at;
	out->row[out->n++] = row;
}

static void put_sp(struct startup_rows *out, __u64 at, __u16 words)
{
	put(out, at, (struct profil_unwind_row){ .rule = PROFIL_UNWIND_SP, .cfa = words });
}

static const struct profil_unwind_row none = { .rule = PROFIL_UNWIND_NONE };

/* sub $8, %rsp; ...; add $8, %rsp; ret */
void startup_init_rows(struct startup_rows *out, const unsigned char *code, size_t n, __u64 vaddr)
{
	const unsigned char *sub = memmem(code, n, "\x48\x83\xec\x08", 4), *add;

	out->n = 0;
	add = sub ? memmem(sub, n - (size_t)(sub - code), "\x48\x83\xc4\x08\xc3", 5) : NULL;
	if (!ARCH_RA_ON_STACK || !add)
		return;
	put_sp(out, vaddr, 1);
	put_sp(out, vaddr + (__u64)(sub - code) + 4, 2);
	put_sp(out, vaddr + (__u64)(add - code) + 4, 1);
	put(out, vaddr + n, none);
}

#define DTORS_BYTES 0x40  /* of __do_global_dtors_aux(), and the padding behind it */
#define CLONES_BYTES 0x70 /* of deregister_tm_clones() and register_tm_clones(), before it */

/* cmpb $0, completed; jne 1f; push %rbp; [cmpq $0, __cxa_finalize;] mov %rsp, %rbp */
static size_t dtors_frame(const unsigned char *c)
{
	if (c[0] != 0x80 || c[1] != 0x3d || c[6] || c[7] != 0x75 || c[9] != 0x55)
		return 0;
	if (!memcmp(c + 10, "\x48\x89\xe5", 3))
		return 13;
	return !memcmp(c + 10, "\x48\x83\x3d", 3) && !memcmp(c + 18, "\x48\x89\xe5", 3) ? 21 : 0;
}

/* lea __TMC_END__(%rip), %rdi, or mov $__TMC_END__, %eax */
static int begins_clones(const unsigned char *c)
{
	return !memcmp(c, "\x48\x8d\x3d", 3) || *c == 0xb8;
}

void startup_crt_rows(struct startup_rows *out, const unsigned char *code, size_t n, __u64 vaddr)
{
	const struct profil_unwind_row fp = { .rule = PROFIL_UNWIND_FP | PROFIL_UNWIND_FP_SAVED,
					      .cfa = 2,
					      .saved = 2 };
	size_t at = 0, framed = 0, begin;
	const unsigned char *pop = NULL;

	out->n = 0;
	for (; ARCH_RA_ON_STACK && !pop && at + DTORS_BYTES <= n; at++) {
		framed = dtors_frame(code + at);
		if (framed)
			pop = memmem(code + at + framed, DTORS_BYTES - framed, "\x5d\xc3", 2);
	}
	if (!pop)
		return;
	at--;
	begin = at - (at >= 4 && !memcmp(code + at - 4, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0);
	if (begin >= CLONES_BYTES && begins_clones(code + begin - CLONES_BYTES))
		begin -= CLONES_BYTES;
	put_sp(out, vaddr + begin, 1);
	put(out, vaddr + at + 10,
	    (struct profil_unwind_row){
		    .rule = PROFIL_UNWIND_SP | PROFIL_UNWIND_FP_SAVED, .cfa = 2, .saved = 2 });
	put(out, vaddr + at + framed, fp);
	put_sp(out, vaddr + (__u64)(pop - code) + 1, 1);
	/* frame_dummy() is a jump in the 16 bytes behind it. */
	put(out, (vaddr + (__u64)(pop - code) + 2 + 15) / 16 * 16 + 16, none);
}
