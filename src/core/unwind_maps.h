/* unwind_maps.h - tables of unwind rules, which the client makes and the kernel reads */
#ifndef PROFIL_CORE_UNWIND_MAPS_H
#define PROFIL_CORE_UNWIND_MAPS_H

#include <linux/types.h>

/*
 * A row says how to find the caller's frame from any pc between its own offset and the next row's.
 * The rows of an image are sorted by offset (file offset minus the image's base). A row can express
 * what compilers emit: the canonical frame address (CFA) is a register plus a constant, and the
 * frame pointer and the return address are saved at constant distances below it.
 */
enum profil_unwind_kind {
	PROFIL_UNWIND_NONE = 0, /* no table covers this code */
	PROFIL_UNWIND_SP,	/* CFA = stack pointer + 8 * cfa */
	PROFIL_UNWIND_FP,	/* CFA = frame pointer + 8 * cfa */
	PROFIL_UNWIND_PLT, /* x86-64 lazy PLT: CFA = sp + 8, + 16 from byte `cfa` of an entry on */
	PROFIL_UNWIND_SIGNAL, /* the return trampoline of a signal: sp points to the ucontext */
	PROFIL_UNWIND_END,    /* the outermost frame of a thread: the return address is undefined */
	PROFIL_UNWIND_BEYOND, /* a row cannot express the rule: the walk ends here */
	/*
	 * CFA = 8 * m + the word at sp or fp + 8 * n [+ 8 * a register], in realigned stacks and
	 * assembly: n is the (signed) lower byte of cfa, m the next 4 bits, the upper 4 bits name
	 * the register as in PROFIL_UNWIND_REGISTER; PROFIL_UNWIND_NO_REGISTER: none.
	 */
	PROFIL_UNWIND_SP_WORD,
	PROFIL_UNWIND_FP_WORD,
	PROFIL_UNWIND_SWITCH, /* CFA = frame pointer + 8 * cfa, on another stack than this frame */
	/*
	 * CFA = the register with DWARF's number in the upper 4 bits of cfa + 8 * the lower 12 bits:
	 * assembly that aligns the stack. An interrupted frame has its registers. At a return
	 * address only rbx of x86-64 is known, in the trampolines of ld.so: without
	 * PROFIL_UNWIND_FP_SAVED the callee has saved it `saved` words below its own CFA (0: not
	 * known).
	 */
	PROFIL_UNWIND_REGISTER,
	PROFIL_UNWIND_KINDS,
	/* Private to the kernel: what profil_unwind_image.looked says. */
	PROFIL_UNWIND_NO_ROOM = 0x0e,
	PROFIL_UNWIND_NOT_YET = 0x0f,
};

#define PROFIL_UNWIND_NO_REGISTER 7	/* x86-64: the stack pointer */
#define PROFIL_UNWIND_REGISTER_SHIFT 12 /* of its number in cfa */

/* Or-ed to the kind. */
#define PROFIL_UNWIND_KIND 0x0f
#define PROFIL_UNWIND_FP_SAVED 0x10 /* frame pointer at CFA - 8 * saved */
/* arm64: return address saved; else it is in the link register. */
#define PROFIL_UNWIND_RA_SAVED 0x20
/*
 * arm64: if both are saved, the return address is at CFA - 8 * saved + 8, as in the ABI's frame
 * record; if only the return address is, it is at CFA - 8 * saved. x86-64: always at CFA - 8.
 */

/* `saved` are words above the register that the rule is relative to, not below the CFA. */
#define PROFIL_UNWIND_SAVED_ABOVE 0x40

/*
 * x86-64: the return address is in the register of arch_link(), as in vfork(), whose child must not
 * find it on the stack that it shares.
 */
#define PROFIL_UNWIND_RA_LINK 0x80

struct profil_unwind_row {
	__u32 offset;
	__u16 cfa;
	__u8 saved;
	__u8 rule; /* enum profil_unwind_kind and flags */
};
_Static_assert(sizeof(struct profil_unwind_row) == 8, "512 of them are a page of a map");

/*
 * The map of an attachment: pages of 4 KiB, which the client maps writable and the kernel reads.
 *
 *	file pages	PROFIL_UNWIND_FILE_PAGES: files whose rows the client has prepared
 *	interpreter page	descriptors of interpreters (interpreter_maps.h)
 *	image pages	images, by their number in the table of places, 256 to a page
 *	row pages	the rows of an image, 512 to a page; its last page is filled up with
 *			rows of offset ~0
 *	first pages	the first offset of each row page of an image, 1024 to a page
 *
 * So a row is found by two binary searches in one page each. `pages` is written last.
 *
 * An image gets its number at its first sample. So that this sample has rules too, the kernel then
 * looks for the image among the files, and copies its entry.
 */
enum profil_unwind_looked {
	PROFIL_LOOKED_NOT_YET,
	PROFIL_LOOKED,	       /* without pages, the image has no rules */
	PROFIL_LOOKED_NO_ROOM, /* it has, but the map has no room for them */
};

struct profil_unwind_image {
	union {
		struct {
			__u32 first_page;
			__u32 row_page;
		};
		/* Of a process's memory without a file, with code of an interpreter: the base of
		 * the interpreter's file there, address minus offset of its code; 0: not known. */
		__u64 base;
	};
	__u32 pages;	   /* of rows; 0: see looked */
	__u16 looked;	   /* enum profil_unwind_looked */
	__u16 interpreter; /* number of its descriptor; 0: it is none */
};
_Static_assert(sizeof(struct profil_unwind_image) == 16, "256 of them are a page of a map");

struct profil_unwind_file {
	__u64 ino; /* 0: free */
	__u32 dev; /* as in the kernel: major << 20 | minor; 0: any */
	__u32 first_page;
	__u32 row_page;
	__u32 pages;	   /* written last */
	__u32 interpreter; /* as in struct profil_unwind_image */
	__u32 anonymous;   /* likewise, of memory without a file in processes that execute this file
			    */
};
_Static_assert(sizeof(struct profil_unwind_file) == 32, "128 of them are a page of a map");

#define PROFIL_UNWIND_VDSO (~0ull) /* instead of an inode number */

#define PROFIL_UNWIND_PAGE 4096
#define PROFIL_PAGE_ROWS (PROFIL_UNWIND_PAGE / 8)
#define PROFIL_PAGE_FIRSTS (PROFIL_UNWIND_PAGE / 4)
#define PROFIL_PAGE_UNWIND_IMAGES (PROFIL_UNWIND_PAGE / 16)
#define PROFIL_PAGE_UNWIND_FILES (PROFIL_UNWIND_PAGE / 32)
#define PROFIL_FIRST_PAGES_MAX 8 /* of one image: 4 Mi rows */

#define PROFIL_UNWIND_FILE_PAGES 4
#define PROFIL_UNWIND_INTERPRETER_PAGE PROFIL_UNWIND_FILE_PAGES
#define PROFIL_UNWIND_IMAGE_PAGE (PROFIL_UNWIND_INTERPRETER_PAGE + 1)
#define PROFIL_UNWIND_FILE_TRIES 16 /* elements probed from the hash on, in one page */

/* The page and the element in it at which the search for file @ino begins. */
static inline __u32 profil_unwind_file_page(__u64 ino)
{
	return (__u32)(ino * 0x9e3779b97f4a7c15ull >> 62) % PROFIL_UNWIND_FILE_PAGES;
}

static inline __u32 profil_unwind_file_at(__u64 ino)
{
	return (__u32)(ino * 0x9e3779b97f4a7c15ull >> 32) % PROFIL_PAGE_UNWIND_FILES;
}

#endif
