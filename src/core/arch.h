/* arch.h - all that depends on the architecture, for the BPF programs and user space */
#ifndef PROFIL_CORE_ARCH_H
#define PROFIL_CORE_ARCH_H

/* clang-format off */
/*
 * ARCH_PC_SHIFT	log2 of the shortest instruction's bytes
 * ARCH_KERNEL_TEXT	where vmlinux is linked
 * arch_regs		a thread's registers, as the kernel saves them
 * arch_pc()		the program counter in them
 * arch_sp(), arch_fp()	stack and frame pointer
 * arch_link()		the link register; x86-64: rdi, in which vfork() has its return address
 * arch_rbx()		x86-64: rbx, from which ld.so's trampolines find their frames
 * arch_zend_frame(), arch_zend_instruction() where PHP's loop, built by GCC, keeps what it executes
 * ARCH_COUNT_IN_TASK	the kernel's count of interrupts is in the task, not the CPU's variable
 * arch_mode()		the word after the program counter, which has the processor's mode
 * arch_mode_is_user()	true if that is user mode
 * arch_in_vsyscall()	the pc is in the page of system calls whose address is fixed
 * arch_syscall()	the number of the system call that has left user mode; negative: an interrupt
 *			or a fault has. The registers are the kernel's struct pt_regs
 * arch_syscall_arg()	its first argument
 * arch_mode_is_native() false for code of 32 bits, whose system calls have other numbers
 * arch_ra_at()		where a function with frame CFA has saved its return address; arm64:
 *			behind the frame pointer at @fp_at, or at @fp_at if that is not saved
 * arch_return_address() strips the bits of pointer authentication
 * ARCH_RA_ON_STACK	a call pushes the return address
 * ARCH_DWARF_SP, _FP, _RA, _LINK, _RBX  DWARF's numbers of stack pointer, frame pointer, return
 *			address, arch_link() and rbx; -1: none
 * ARCH_ELF_MACHINE	e_machine of native ELF files
 * ARCH_SIGNAL_*	offsets from sp of the interrupted registers in a signal frame
 * ARCH_REGISTER(n)	the offset in arch_regs of the register with DWARF's number n, below 16, but
 *			not of the stack pointer; ARCH_SIGNAL_REGISTER(n): in a signal frame
 * ARCH_MCOUNT_ASIDE	mcount must preserve all registers: -pg calls it outside of the ABI
 */
/* clang-format on */
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
#define ARCH_PC_SHIFT 0
#define ARCH_KERNEL_TEXT 0xffffffff81000000u
#define arch_regs pt_regs
#define arch_pc(regs) ((regs)->rip)
#define arch_sp(regs) ((regs)->rsp)
#define arch_fp(regs) ((regs)->rbp)
#define arch_link(regs) ((regs)->rdi)
#define arch_zend_frame(regs) ((regs)->r14)
#define arch_zend_instruction(regs) ((regs)->r15)
#define arch_mode(regs) ((regs)->cs)
#define arch_mode_is_user(mode) (((mode)&3) != 0)
#define arch_mode_is_native(mode) ((mode) == 0x33)
#define arch_syscall(regs) ((__s64)(regs)->orig_rax)
#define arch_syscall_arg(regs) ((regs)->rdi)
#define arch_in_vsyscall(pc) ((pc) >> 12 == 0xffffffffff600u)
#define arch_ra_at(cfa, fp_at, fp_saved) ((cfa)-8)
#define arch_return_address(word) (word)
#define ARCH_COUNT_IN_TASK 0
#define ARCH_RA_ON_STACK 1
#define ARCH_THREAD_IS_BEFORE_POINTER 0 /* glibc's struct pthread */
#define ARCH_DWARF_SP 7
#define ARCH_DWARF_FP 6
#define ARCH_DWARF_RA 16
#define ARCH_DWARF_LINK 5
#define ARCH_DWARF_RBX 3
#define ARCH_ELF_MACHINE EM_X86_64
#define ARCH_SIGNAL_FP 120 /* ucontext.uc_mcontext.gregs[] */
#define ARCH_SIGNAL_SP 160
#define ARCH_SIGNAL_PC 168
#define ARCH_SIGNAL_LINK 104
#define ARCH_REGISTER(n) ((0x0123678904ed5bcaull >> (n)*4 & 15) * 8)
#define ARCH_SIGNAL_REGISTER(n) (40 + (0x76543210fa89becdull >> (n)*4 & 15) * 8)
#define ARCH_MCOUNT_ASIDE 1
#elif defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
#define ARCH_PC_SHIFT 2
#define ARCH_KERNEL_TEXT 0xffff800080000000u
#define arch_regs user_pt_regs
#define arch_pc(regs) ((regs)->pc)
#define arch_sp(regs) ((regs)->sp)
#define arch_fp(regs) ((regs)->regs[29])
#define arch_link(regs) ((regs)->regs[30])
#define arch_zend_frame(regs) ((regs)->regs[27])
#define arch_zend_instruction(regs) ((regs)->regs[28])
#define arch_mode(regs) ((regs)->pstate)
#define arch_mode_is_user(mode) (((mode)&0xf) == 0) /* EL0 */
#define arch_mode_is_native(mode) (((mode)&0x10) == 0)
/* In struct pt_regs user_pt_regs is followed by orig_x0 and syscallno. */
#define arch_syscall(regs) ((__s64) * (const __s32 *)((const char *)((regs) + 1) + 8))
#define arch_syscall_arg(regs) ((regs)->regs[0])
#define arch_in_vsyscall(pc) ((void)(pc), 0)
#define arch_ra_at(cfa, fp_at, fp_saved) ((fp_saved) ? (fp_at) + 8 : (fp_at))
#define arch_return_address(word) ((word)&0xffffffffffffull)
#define ARCH_COUNT_IN_TASK 1
#define ARCH_RA_ON_STACK 0
#define ARCH_THREAD_IS_BEFORE_POINTER 1
#define ARCH_DWARF_SP 31
#define ARCH_DWARF_FP 29
#define ARCH_DWARF_RA 30
#define ARCH_DWARF_LINK 30
#define ARCH_DWARF_RBX -1
#define ARCH_ELF_MACHINE EM_AARCH64
/* struct rt_sigframe: siginfo (128), ucontext; uc_mcontext at 176 of it: fault_address, regs[31] */
#define ARCH_SIGNAL_FP (128 + 176 + 8 + 29 * 8)
#define ARCH_SIGNAL_SP (128 + 176 + 8 + 31 * 8)
#define ARCH_SIGNAL_PC (128 + 176 + 8 + 32 * 8)
#define ARCH_SIGNAL_LINK (128 + 176 + 8 + 30 * 8)
#define ARCH_REGISTER(n) ((n)*8)
#define ARCH_SIGNAL_REGISTER(n) (128 + 176 + 8 + (n)*8)
#define ARCH_MCOUNT_ASIDE 0
#else
#error "name what is special about this architecture here"
#endif

#endif
