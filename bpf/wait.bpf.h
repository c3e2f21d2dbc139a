/* wait.bpf.h - what a thread waits for when it goes to sleep
 *
 * A thread sleeps in a system call, whose number and first argument are in the registers with which
 * it left user mode, or in a fault. The number says what it waits for; of a file, its kind does.
 * The scheduler marks waits for block devices, whatever the system call is. Locks of the kernel are
 * known from its tracepoints of contention, which keep the lock's address with the thread.
 *
 * The word of a futex is named by the file whose variable it is. Variables that are zero at first
 * may lie behind the file's mapping, in memory that the loader has mapped without a file.
 */
#ifndef PROFIL_BPF_WAIT_BPF_H
#define PROFIL_BPF_WAIT_BPF_H

#include <stdbool.h>

#include <asm/unistd.h>

#include "observe.bpf.h"

/* System calls that are newer than the oldest headers of the build. */
#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAIT 455

#define SYSCALLS 512

/* enum profil_wait by system call; 0: OTHER. */
static const __u8 waits_of[SYSCALLS] = {
	[__NR_futex] = PROFIL_WAIT_FUTEX,
	[NR_FUTEX_WAIT] = PROFIL_WAIT_FUTEX,
	[NR_FUTEX_WAITV] = PROFIL_WAIT_FUTEX,
	[__NR_nanosleep] = PROFIL_WAIT_TIMER,
	[__NR_clock_nanosleep] = PROFIL_WAIT_TIMER,
	[__NR_ppoll] = PROFIL_WAIT_POLL,
	[__NR_pselect6] = PROFIL_WAIT_POLL,
	[__NR_epoll_pwait] = PROFIL_WAIT_POLL,
	[__NR_epoll_pwait2] = PROFIL_WAIT_POLL,
#ifdef __NR_poll
	[__NR_poll] = PROFIL_WAIT_POLL,
	[__NR_select] = PROFIL_WAIT_POLL,
	[__NR_epoll_wait] = PROFIL_WAIT_POLL,
	[__NR_pause] = PROFIL_WAIT_SIGNAL,
	[__NR_vfork] = PROFIL_WAIT_PROCESS,
#endif
	[__NR_io_getevents] = PROFIL_WAIT_ASYNC_IO,
	[__NR_io_pgetevents] = PROFIL_WAIT_ASYNC_IO,
	[__NR_io_uring_enter] = PROFIL_WAIT_ASYNC_IO,
	[__NR_flock] = PROFIL_WAIT_FILE_LOCK,
	[__NR_fcntl] = PROFIL_WAIT_FILE_LOCK,
	[__NR_semop] = PROFIL_WAIT_IPC,
	[__NR_semtimedop] = PROFIL_WAIT_IPC,
	[__NR_msgrcv] = PROFIL_WAIT_IPC,
	[__NR_msgsnd] = PROFIL_WAIT_IPC,
	[__NR_mq_timedreceive] = PROFIL_WAIT_IPC,
	[__NR_mq_timedsend] = PROFIL_WAIT_IPC,
	[__NR_wait4] = PROFIL_WAIT_PROCESS,
	[__NR_waitid] = PROFIL_WAIT_PROCESS,
	[__NR_clone] = PROFIL_WAIT_PROCESS, /* vfork() and posix_spawn() */
	[__NR_clone3] = PROFIL_WAIT_PROCESS,
	[__NR_rt_sigsuspend] = PROFIL_WAIT_SIGNAL,
	[__NR_rt_sigtimedwait] = PROFIL_WAIT_SIGNAL,
	[__NR_read] = PROFIL_WAIT_FD,
	[__NR_write] = PROFIL_WAIT_FD,
	[__NR_readv] = PROFIL_WAIT_FD,
	[__NR_writev] = PROFIL_WAIT_FD,
	[__NR_pread64] = PROFIL_WAIT_FD,
	[__NR_pwrite64] = PROFIL_WAIT_FD,
	[__NR_preadv] = PROFIL_WAIT_FD,
	[__NR_pwritev] = PROFIL_WAIT_FD,
	[__NR_preadv2] = PROFIL_WAIT_FD,
	[__NR_pwritev2] = PROFIL_WAIT_FD,
	[__NR_recvfrom] = PROFIL_WAIT_FD,
	[__NR_sendto] = PROFIL_WAIT_FD,
	[__NR_recvmsg] = PROFIL_WAIT_FD,
	[__NR_sendmsg] = PROFIL_WAIT_FD,
	[__NR_recvmmsg] = PROFIL_WAIT_FD,
	[__NR_sendmmsg] = PROFIL_WAIT_FD,
	[__NR_accept] = PROFIL_WAIT_FD,
	[__NR_accept4] = PROFIL_WAIT_FD,
	[__NR_connect] = PROFIL_WAIT_FD,
	[__NR_sendfile] = PROFIL_WAIT_FD,
	[__NR_splice] = PROFIL_WAIT_FD,
	[__NR_tee] = PROFIL_WAIT_FD,
	[__NR_vmsplice] = PROFIL_WAIT_FD,
	[__NR_ioctl] = PROFIL_WAIT_FD,
	[__NR_fsync] = PROFIL_WAIT_FD,
	[__NR_fdatasync] = PROFIL_WAIT_FD,
	[__NR_sync_file_range] = PROFIL_WAIT_FD,
	[__NR_fallocate] = PROFIL_WAIT_FD,
	[__NR_ftruncate] = PROFIL_WAIT_FD,
	[__NR_getdents64] = PROFIL_WAIT_FD,
};

/* --- files ------------------------------------------------------------------------------------ */

#define FILE_PIPE 0010000
#define FILE_FOLDER 0040000
#define FILE_BLOCK_DEVICE 0060000
#define FILE_REGULAR 0100000
#define FILE_SOCKET 0140000
#define ANON_INODE_MAGIC 0x09041934

/* enum profil_wait of the running thread's descriptor @fd. Global, as insert(). */
__attribute__((noinline)) int file_wait(__u32 fd)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = NULL;
	const struct inode *inode;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), &files[fd]);
	inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	if (!inode)
		return PROFIL_WAIT_OTHER;
	if (BPF_CORE_READ(inode, i_sb, s_magic) == ANON_INODE_MAGIC)
		return PROFIL_WAIT_EVENT;
	switch (BPF_CORE_READ(inode, i_mode) & FILE_TYPE) {
	case FILE_PIPE:
		return PROFIL_WAIT_PIPE;
	case FILE_SOCKET:
		return PROFIL_WAIT_SOCKET;
	case FILE_CHARACTER_DEVICE:
		return PROFIL_WAIT_DEVICE;
	case FILE_REGULAR:
	case FILE_FOLDER:
	case FILE_BLOCK_DEVICE:
		return PROFIL_WAIT_DISK;
	}
	return PROFIL_WAIT_OTHER;
}

/* --- locks ------------------------------------------------------------------------------------ */

/* The note of the variable at @offset of @image; without an image of @wait. */
static __always_inline __u64 lock_note(__u32 image, __u32 offset, enum profil_wait wait)
{
	return image ? profil_place(PROFIL_NOTE_LOCK, image, offset)
		     : profil_place(PROFIL_NOTE_WAIT, 0, wait);
}

/* Finds the image of the variable at @address, in @s. Global, as image_number(). */
__attribute__((noinline)) int variable_find(__u32 slot, struct spot *s, __u64 address)
{
	__u64 start;

	if (!s)
		return 0;
	task_memory_read(&s->memory);
	spot_find(s, address);
	start = s->m.start;
	if (s->kind == PROFIL_IMAGE_ANON && !s->m.file && image_lookup == PROFIL_LOOKUP_WALK) {
		s->kind = 0;
		spot_find(s, start - 1);
		if (s->m.end != start || !(s->m.flags & VM_WRITE))
			return 0;
	}
	if (s->kind != PROFIL_IMAGE_FILE)
		return 0;
	image_number(slot, s);
	if (!(s->todo & IMAGE_FILL))
		return 0;
	unwind_adopt(slot, s->image, s->ino, s->dev);
	image_fill(slot, s);
	image_build_id(slot, s);
	return 0;
}

/* The note of the futex at @address. Global, as insert(). */
__attribute__((noinline)) __u64 futex_note(__u32 slot, __u64 address)
{
	__u64 note = lock_note(0, 0, PROFIL_WAIT_FUTEX);
	struct table table, *t = &table;
	struct spot *s;

	s = table_of(t, slot) ? spot_take(t->observer->epoch) : NULL;
	if (!s)
		return note;
	variable_find(slot, s, address);
	note = lock_note(s->image, (__u32)(address - s->base), PROFIL_WAIT_FUTEX);
	spot_give();
	return note;
}

/* The note of the kernel's lock at @address. Global, as insert(). */
__attribute__((noinline)) __u64 kernel_lock_note(__u32 slot, __u64 address)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 variables = switch_iterator, place = 0;
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);

	if (address == (__u64)task->mm + bpf_core_field_offset(struct mm_struct, mmap_lock))
		return lock_note(0, 0, PROFIL_WAIT_MMAP_LOCK);
	/* Others are allocated. */
	if (o && !(o->flags & PROFIL_OBSERVER_HIDES_KERNEL) && variables &&
	    address >> WINDOW_BITS == variables >> WINDOW_BITS)
		place = kernel_place(slot, address);
	return lock_note(profil_place_image(place), profil_place_offset(place),
			 PROFIL_WAIT_KERNEL_LOCK);
}

/*
 * The note of what the running thread, which goes to sleep, waits for. The place of a lock is in
 * the table of the attachment in @slot. Global, as insert().
 */
__attribute__((noinline)) __u64 wait_note(__u32 slot)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	const struct arch_regs *regs = (void *)bpf_task_pt_regs(task);
	__s64 nr = arch_syscall(regs);
	__u32 call = (__u32)nr, wait = PROFIL_WAIT_OTHER;

	/* The bound below is that of another register to Linux 6.1 on arm64. */
	asm volatile("" : "+r"(call));
	call &= SYSCALLS - 1;
	/* The end of an earlier attachment's wait is not seen once that has ended. */
	if (thread && thread->lock && thread->lock_epoch == tables.clock.epoch)
		return kernel_lock_note(slot, thread->lock);
	if (nr < 0)
		wait = PROFIL_WAIT_FAULT;
	else if (arch_mode_is_native(arch_mode(regs)) && nr < SYSCALLS && waits_of[call])
		wait = waits_of[call];
	if (task->__state & TASK_STOPPED_TRACED)
		wait = PROFIL_WAIT_STOPPED;
	else if (wait != PROFIL_WAIT_ASYNC_IO && BPF_CORE_READ_BITFIELD(task, in_iowait))
		wait = PROFIL_WAIT_DISK;
	else if (wait == PROFIL_WAIT_FD)
		wait = (__u32)file_wait((__u32)arch_syscall_arg(regs));
	else if (wait == PROFIL_WAIT_FUTEX && nr != NR_FUTEX_WAITV)
		return futex_note(slot, arch_syscall_arg(regs));
	return profil_place(PROFIL_NOTE_WAIT, 0, wait);
}

#endif
