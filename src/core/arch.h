/* arch.h - what differs from one architecture to the next, in the kernel's programs and outside */
#ifndef PROFIL_ARCH_H
#define PROFIL_ARCH_H

/*
 * ARCH_PC_SHIFT	no instruction is narrower than 1 << this
 * ARCH_PLT_HEADER	bytes before the stubs of .plt; .plt.sec has nothing of the kind
 * arch_regs		a thread's user registers, as the kernel saves them
 * arch_pc()		its program counter there
 * arch_user_mode()	whether it was in user mode
 * ARCH_MCOUNT_ASIDE	-pg calls mcount beside the calling convention: it keeps all registers
 */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
#define ARCH_PC_SHIFT 0
#define ARCH_PLT_HEADER 16
#define arch_regs pt_regs
#define arch_pc(regs) ((regs)->rip)
#define arch_user_mode(regs) ((regs)->cs & 3)
#define ARCH_MCOUNT_ASIDE 1
#elif defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define ARCH_PC_SHIFT 2
#define ARCH_PLT_HEADER 32
#define arch_regs user_pt_regs
#define arch_pc(regs) ((regs)->pc)
#define arch_user_mode(regs) (!((regs)->pstate & 0xf)) /* EL0 */
#define ARCH_MCOUNT_ASIDE 0
#else
#error "name what is special about this architecture here"
#endif

#endif
