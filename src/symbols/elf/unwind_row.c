/* unwind_row.c - converts the state of call frame instructions into a row, if it fits one */
#include <dwarf.h>
#include <limits.h>
#include <stdint.h>

#include "core/arch.h"

#include "unwind_row.h"

#define SAVED_WORDS_MOST 65535

/* Says whether it is an offset from the CFA, below it. */
static bool saved_below(const Dwarf_Op *ops, size_t nops, __u32 *words)
{
	__s64 at;

	if (nops == 1 && ops[0].atom == DW_OP_call_frame_cfa)
		at = 0;
	else if (nops == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
		 ops[1].atom == DW_OP_plus_uconst)
		at = (__s64)ops[1].number;
	else
		return false;
	if (at >= 0 || at % 8 || at < -8 * SAVED_WORDS_MOST)
		return false;
	*words = (__u32)(-at / 8);
	return true;
}

/*
 * The lazy PLT of x86-64: all linkers write sp + 8 + ((pc & 15) >= N) * 8, where N depends on how
 * the entry pushes its index.
 */
static bool is_plt(const Dwarf_Op *ops, size_t nops, __u16 *from)
{
	static const __u8 rest[] = { DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
				     DW_OP_ge,	   DW_OP_lit3,	DW_OP_shl, DW_OP_plus };

	if (nops != 1 + sizeof(rest) || ops[0].atom != DW_OP_breg7 || ops[0].number != 8)
		return false;
	for (size_t i = 0; i < sizeof(rest); i++) {
		if (rest[i] && ops[1 + i].atom != rest[i])
			return false;
	}
	if (ops[4].atom < DW_OP_lit0 || ops[4].atom > DW_OP_lit15)
		return false;
	*from = (__u16)(ops[4].atom - DW_OP_lit0);
	return true;
}

/*
 * *(@base + N [+ 8 * register]) [+ M]. OpenSSL's assembly, which aligns the stack, saves the stack
 * pointer above the aligned one. Where gcc realigns the stack of a function with arguments on it,
 * the address of the arguments (DRAP) is saved below the frame pointer.
 */
static bool is_word(const Dwarf_Op *ops, size_t nops, unsigned int base, __u16 *cfa)
{
	__s64 at, more = 0;
	unsigned int index = PROFIL_UNWIND_NO_REGISTER;
	size_t i = 1;

	if (!nops || ops[0].atom != DW_OP_breg0 + base)
		return false;
	at = (__s64)ops[0].number;
	if (nops > 5 && ops[1].atom >= DW_OP_breg0 && ops[1].atom <= DW_OP_breg15 &&
	    ops[1].atom != DW_OP_breg0 + PROFIL_UNWIND_NO_REGISTER && !ops[1].number &&
	    ops[2].atom == DW_OP_lit8 && ops[3].atom == DW_OP_mul && ops[4].atom == DW_OP_plus) {
		index = ops[1].atom - DW_OP_breg0;
		i = 5;
	}
	if (i == nops || ops[i++].atom != DW_OP_deref)
		return false;
	if (i < nops && ops[i].atom == DW_OP_plus_uconst)
		more = (__s64)ops[i++].number;
	*cfa = (__u16)((__u8)(at / 8) | (more / 8) << 8 | index << PROFIL_UNWIND_REGISTER_SHIFT);
	return i == nops && at % 8 == 0 && at / 8 >= INT8_MIN && at / 8 <= INT8_MAX &&
	       more % 8 == 0 && more >= 0 && more / 8 < 16;
}

/* The CFA as a register and a number of words. */
static __u8 cfa_rule(Dwarf_Frame *frame, __u16 *words)
{
	Dwarf_Op *ops;
	size_t nops;
	__s64 at;
	int reg;

	if (dwarf_frame_cfa(frame, &ops, &nops) < 0 || !nops)
		return PROFIL_UNWIND_BEYOND;
	if (is_plt(ops, nops, words))
		return PROFIL_UNWIND_PLT;
	if (is_word(ops, nops, ARCH_DWARF_SP, words))
		return PROFIL_UNWIND_SP_WORD;
	if (is_word(ops, nops, ARCH_DWARF_FP, words))
		return PROFIL_UNWIND_FP_WORD;
	if (nops == 1 && ops[0].atom == DW_OP_bregx) {
		reg = (int)ops[0].number;
		at = (__s64)ops[0].number2;
	} else if (nops == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		reg = ops[0].atom - DW_OP_breg0;
		at = (__s64)ops[0].number;
	} else {
		return PROFIL_UNWIND_BEYOND;
	}
	if (at < 0 || at % 8 || at / 8 > UINT16_MAX)
		return PROFIL_UNWIND_BEYOND;
	*words = (__u16)(at / 8);
	if (reg == ARCH_DWARF_SP)
		return PROFIL_UNWIND_SP;
	if (reg == ARCH_DWARF_FP)
		return PROFIL_UNWIND_FP;
	if (reg >> (16 - PROFIL_UNWIND_REGISTER_SHIFT) || *words >> PROFIL_UNWIND_REGISTER_SHIFT)
		return PROFIL_UNWIND_BEYOND;
	*words |= (__u16)(reg << PROFIL_UNWIND_REGISTER_SHIFT);
	return PROFIL_UNWIND_REGISTER;
}

enum saved { SAVED_NOT, SAVED_BELOW, SAVED_LINK, SAVED_ABOVE_FP, SAVED_UNDEFINED, SAVED_BEYOND };

/* The location of the caller's register @reg; if saved, *@words words below the CFA. */
static enum saved saved_rule(Dwarf_Frame *frame, int reg, __u32 *words)
{
	Dwarf_Op mem[3], *ops;
	size_t nops;

	if (dwarf_frame_register(frame, reg, mem, &ops, &nops) < 0)
		return SAVED_BEYOND;
	if (!nops)
		return ops ? SAVED_UNDEFINED : SAVED_NOT;
	if (saved_below(ops, nops, words))
		return SAVED_BELOW;
	if (nops == 1 && ops[0].atom == DW_OP_regx && ops[0].number == ARCH_DWARF_LINK)
		return SAVED_LINK;
	/* At *(fp + N), beside a CFA that has to be loaded. libdw pushes the CFA before it. */
	if (nops == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	    ops[1].atom == DW_OP_breg0 + ARCH_DWARF_FP && ops[1].number % 8 == 0 &&
	    ops[1].number / 8 <= UINT8_MAX) {
		*words = (__u32)(ops[1].number / 8);
		return SAVED_ABOVE_FP;
	}
	return SAVED_BEYOND;
}

/*
 * Where registers are saved: at most 255 words below the CFA, or above the register that it is
 * relative to, as in large frames of arm64.
 */
static bool put_saved(struct profil_unwind_row *row, __u32 words)
{
	unsigned int kind = row->rule & PROFIL_UNWIND_KIND;

	if (words <= UINT8_MAX) {
		row->saved = (__u8)words;
		return true;
	}
	if ((kind != PROFIL_UNWIND_SP && kind != PROFIL_UNWIND_FP) || words > row->cfa ||
	    row->cfa - words > UINT8_MAX)
		return false;
	row->saved = (__u8)(row->cfa - words);
	row->rule |= PROFIL_UNWIND_SAVED_ABOVE;
	return true;
}

/* The return address: on x86-64 a call has pushed it; on arm64 it is saved beside the frame
 * pointer. */
static bool ra_fits(enum saved ra, __u32 ra_words, enum saved fp, __u32 fp_words,
		    struct profil_unwind_row *row)
{
	if (ARCH_DWARF_RA == 16) {
		row->rule |= ra == SAVED_LINK ? PROFIL_UNWIND_RA_LINK : 0;
		return ra == SAVED_LINK || (ra == SAVED_BELOW && ra_words == 1);
	}
	if (ra == SAVED_NOT)
		return true;
	if (ra != SAVED_BELOW || (fp == SAVED_BELOW && ra_words + 1 != fp_words))
		return false;
	row->rule |= PROFIL_UNWIND_RA_SAVED;
	return fp == SAVED_BELOW || put_saved(row, ra_words);
}

struct profil_unwind_row unwind_row(Dwarf_Frame *frame, bool signal)
{
	const struct profil_unwind_row beyond = { .rule = PROFIL_UNWIND_BEYOND };
	struct profil_unwind_row row = { 0 };
	enum saved ra, fp;
	__u32 ra_words = 0, fp_words = 0;

	if (signal)
		return (struct profil_unwind_row){ .rule = PROFIL_UNWIND_SIGNAL };
	ra = saved_rule(frame, ARCH_DWARF_RA, &ra_words);
	if (ra == SAVED_UNDEFINED)
		return (struct profil_unwind_row){ .rule = PROFIL_UNWIND_END };
	row.rule = cfa_rule(frame, &row.cfa);
	if (row.rule == PROFIL_UNWIND_BEYOND)
		return beyond;
	fp = saved_rule(frame, ARCH_DWARF_FP, &fp_words);
	if (fp == SAVED_BELOW) {
		row.rule |= PROFIL_UNWIND_FP_SAVED;
		if (!put_saved(&row, fp_words))
			return beyond;
	}
	if (fp == SAVED_ABOVE_FP) {
		if ((row.rule & PROFIL_UNWIND_KIND) != PROFIL_UNWIND_FP_WORD)
			return beyond;
		row.rule |= PROFIL_UNWIND_FP_SAVED | PROFIL_UNWIND_SAVED_ABOVE;
		row.saved = (__u8)fp_words;
	}
	if (fp == SAVED_BEYOND || fp == SAVED_LINK || !ra_fits(ra, ra_words, fp, fp_words, &row))
		return beyond;
	return row;
}

__u8 unwind_rbx_saved(Dwarf_Frame *frame)
{
	__u32 words = 0;

	if (ARCH_DWARF_RBX < 0 || saved_rule(frame, ARCH_DWARF_RBX, &words) != SAVED_BELOW)
		return 0;
	return words <= UINT8_MAX ? (__u8)words : 0;
}
