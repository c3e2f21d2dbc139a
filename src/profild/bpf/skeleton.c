/* skeleton.c - opens the BPF object */
#include <bpf/libbpf.h>
#include <linux/capability.h>

#include "profild/worker/capabilities.h"
#include "profild/skeleton.h"

/*
 * Types and functions that this kernel does not have are not looked for in its modules: none has
 * them, and only CAP_SYS_ADMIN may list the modules, without which libbpf takes the refusal for the
 * failure of the load. libbpf asks for the list once for each object, here, where it is refused.
 */
static void leave_out_modules(struct profil_bpf *skel)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);

	capabilities_lower(CAPABILITY(CAP_SYS_ADMIN));
	bpf_program__set_attach_target(skel->progs.sched_process_free, 0, "profil_no_function");
	capabilities_raise(CAPABILITY(CAP_SYS_ADMIN));
	libbpf_set_print(print);
}

struct profil_bpf *skeleton_open(void)
{
	struct profil_bpf *skel = profil_bpf__open();

	if (skel)
		leave_out_modules(skel);
	return skel;
}
