/* go_stack_switch.c - functions of Go's runtime whose unwind rules describe another stack */
#include <string.h>

#include "go_stack_switch.h"

/*
 * What switches stacks in Go 1.2 to 1.24 (runtime/asm_*.s, sys_linux_*.s). goexit, mstart and
 * rt0_go switch none, but are outermost frames, which old versions do not say in their rules.
 */
static const struct {
	const char *name;
	enum go_switch kind;
} functions[] = {
	{ "runtime.systemstack", GO_SWITCH_KEPT },
	{ "runtime.asmcgocall", GO_SWITCH_KEPT },
	{ "runtime.asmcgocall_landingpad", GO_SWITCH_KEPT },
	{ "runtime.asmcgocall_no_g", GO_SWITCH_KEPT },
	{ "runtime.onM", GO_SWITCH_KEPT },
	{ "runtime.onsystemstack", GO_SWITCH_KEPT },
	{ "runtime.cgocallback", GO_SWITCH_FRAMED },
	{ "runtime.cgocallback_gofunc", GO_SWITCH_FRAMED },
	{ "runtime.nanotime1", GO_SWITCH_FRAMED },
	{ "runtime.nanotime", GO_SWITCH_FRAMED },
	{ "runtime.walltime1", GO_SWITCH_FRAMED },
	{ "runtime.walltime", GO_SWITCH_FRAMED },
	{ "runtime.vgetrandom1", GO_SWITCH_FRAMED },
	{ "time.now", GO_SWITCH_FRAMED },
	{ "runtime.mcall", GO_SWITCH_TOP },
	{ "runtime.gogo", GO_SWITCH_TOP },
	{ "runtime.morestack", GO_SWITCH_TOP },
	{ "runtime.morestack_noctxt", GO_SWITCH_TOP },
	{ "runtime.goexit", GO_SWITCH_TOP },
	{ "runtime.mstart", GO_SWITCH_TOP },
	{ "runtime.rt0_go", GO_SWITCH_TOP },
	{ "runtime.sigreturn", GO_SWITCH_SIGNAL },
	{ "runtime.sigreturn__sigaction", GO_SWITCH_SIGNAL },
};

enum go_switch go_switch_of(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		size_t n = strlen(functions[i].name);

		/* Symbols have their calling convention behind them: ".abi0". */
		if (!strncmp(name, functions[i].name, n) && (!name[n] || name[n] == '.'))
			return functions[i].kind;
	}
	return GO_SWITCH_NONE;
}
