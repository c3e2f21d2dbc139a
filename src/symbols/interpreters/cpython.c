/* cpython.c - the descriptor of CPython's binaries: python3.x and libpython */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/observe_maps.h"

#include "binary.h"
#include "interpreter.h"

/*
 * The layouts of structures, from CPython's headers of each minor version, x86-64 and arm64. Before
 * 3.12 the state of the lock, with two mutexes of libc, is in the runtime before the key.
 */
struct layout {
	enum profil_interpreter_kind kind;
	struct profil_cpython at;
};

#define GIL_MUTEXES (2 * sizeof(pthread_mutex_t))
#define MINOR_MIN 8
#define MINOR_MAX 15

/* What rows of several versions have in common. */
#define BEFORE_3_11                                                                  \
	.state_frame = 24, .frame_code = 32, .frame_previous = 24, .code_file = 104, \
	.code_name = 112, .code_line = 40, .code_lines = 120, .string_ascii = 48,    \
	.string_compact = 72, .end_is_frame = 1, .end_value = 255
#define SINCE_3_11                                                                      \
	.frame_instruction = 56, .code_file = 112, .code_name = 128, .code_lines = 136, \
	.code_units = 16, .instruction_shift = 1, .line_format = PROFIL_LINES_PEP_657
#define SINCE_3_12                                                                         \
	SINCE_3_11, .frame_code = 0, .frame_previous = 8, .end_value = 3, .code_line = 68, \
		    .string_ascii = 40, .string_compact = 56

static const struct layout layouts[] = {
	[8 - MINOR_MIN] = { PROFIL_INTERPRETER_CPYTHON_CALLS,
			    { BEFORE_3_11, .key = 1312 + GIL_MUTEXES, .frame_instruction = 104,
			      .instruction_shift = 1, .line_format = PROFIL_LINES_LNOTAB } },
	[9 - MINOR_MIN] = { PROFIL_INTERPRETER_CPYTHON_CALLS,
			    { BEFORE_3_11, .key = 504 + GIL_MUTEXES, .frame_instruction = 104,
			      .instruction_shift = 1, .line_format = PROFIL_LINES_LNOTAB } },
	[10 - MINOR_MIN] = { PROFIL_INTERPRETER_CPYTHON_CALLS,
			     { BEFORE_3_11, .key = 504 + GIL_MUTEXES, .frame_instruction = 96,
			       .line_format = PROFIL_LINES_PEP_626 } },
	[11 - MINOR_MIN] = { PROFIL_INTERPRETER_CPYTHON_CFRAME,
			     { SINCE_3_11, .key = 512 + GIL_MUTEXES, .state_frame = 56,
			       .cframe_frame = 8, .cframe_previous = 16, .frame_code = 32,
			       .frame_previous = 48, .frame_end = 68, .end_value = 1,
			       .end_is_frame = 1, .code_line = 72, .code_bytes = 184,
			       .string_ascii = 48, .string_compact = 72 } },
	[12 - MINOR_MIN] = { PROFIL_INTERPRETER_CPYTHON_CFRAME,
			     { SINCE_3_12, .key = 1544, .state_frame = 56, .cframe_frame = 0,
			       .cframe_previous = 8, .frame_end = 70, .code_bytes = 192 } },
	[13 - MINOR_MIN] = { PROFIL_INTERPRETER_CPYTHON_ENTRY,
			     { SINCE_3_12, .key = 2160, .state_frame = 72, .frame_end = 70,
			       .code_bytes = 200 } },
	[14 - MINOR_MIN] = { PROFIL_INTERPRETER_CPYTHON_ENTRY,
			     { SINCE_3_12, .key = 2336, .state_frame = 72, .frame_end = 74,
			       .code_bytes = 208, .tagged = 1 } },
	[15 - MINOR_MIN] = { PROFIL_INTERPRETER_CPYTHON_ENTRY,
			     { SINCE_3_12, .state_frame = 72, .frame_end = 74, .code_bytes = 208,
			       .tagged = 1 } },
};
_Static_assert(sizeof(layouts) / sizeof(*layouts) == MINOR_MAX - MINOR_MIN + 1, "a row for each");

/* The minor version: since 3.11 it is in the file, before that in the names of file and library. */
static int minor_of(Elf *elf, const char *path)
{
	const char *name = strrchr(path, '/');
	struct binary_symbol version;
	__u32 hex;
	int minor;

	if (binary_symbol(&version, elf, "Py_Version") &&
	    binary_bytes(elf, version.vaddr, &hex, sizeof(hex)) && hex >> 24 == 3)
		return (int)(hex >> 16 & 255);
	name = name ? name + 1 : path;
	if (sscanf(name, "python3.%d", &minor) == 1 || sscanf(name, "libpython3.%d", &minor) == 1)
		return minor;
	return -1;
}

#define MINOR_DEBUG_OFFSETS 13

/*
 * Since 3.13 the runtime begins with a description for debuggers, which says whether the build is
 * free-threaded: objects have other layouts there.
 */
static bool is_free_threaded(Elf *elf, const struct binary_symbol *runtime)
{
	struct {
		char cookie[8];
		__u64 version;
		__u64 free_threaded;
	} begins;

	return !binary_bytes(elf, runtime->vaddr, &begins, sizeof(begins)) ||
	       memcmp(begins.cookie, "xdebugpy", sizeof(begins.cookie)) != 0 ||
	       begins.free_threaded;
}

/*
 * Since 3.15 the state is a thread-local variable without a key. PyGILState_GetThisThreadState()
 * returns it, in an executable by mov %fs:OFFSET,%rax. Returns false where it does not.
 */
static bool state_offset(__s16 *out, Elf *elf)
{
	static const unsigned char mov[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 };
	struct binary_symbol reader;
	unsigned char code[16];
	__s32 offset;

	if (!binary_symbol(&reader, elf, "PyGILState_GetThisThreadState") ||
	    !binary_bytes(elf, reader.vaddr, code, sizeof(code)))
		return false;
	for (size_t i = 0; i + sizeof(mov) + sizeof(offset) <= sizeof(code); i++) {
		if (memcmp(code + i, mov, sizeof(mov)) != 0)
			continue;
		memcpy(&offset, code + i + sizeof(mov), sizeof(offset));
		*out = (__s16)offset;
		return offset < 0 && *out == offset;
	}
	return false;
}

int cpython_read(struct profil_interpreter *d, Elf *elf, const char *path)
{
	struct binary_symbol runtime, loop;
	const struct layout *layout;
	__u64 delta;
	int minor;

	if (!binary_symbol(&loop, elf, "_PyEval_EvalFrameDefault"))
		return -ENOENT;
	minor = minor_of(elf, path);
	if (!binary_symbol(&runtime, elf, "_PyRuntime") || minor < MINOR_MIN || minor > MINOR_MAX ||
	    (minor >= MINOR_DEBUG_OFFSETS && is_free_threaded(elf, &runtime)) ||
	    !binary_delta(elf, loop.vaddr, &delta))
		return -EOPNOTSUPP;
	layout = &layouts[minor - MINOR_MIN];
	*d = (struct profil_interpreter){ .kind = (__u8)layout->kind,
					  .language = PROFIL_LANGUAGE_PYTHON,
					  .runtime = runtime.vaddr - delta,
					  .cpython = layout->at };
	if (d->cpython.key)
		d->cpython.specific = binary_specific_offset();
	else if (!state_offset(&d->cpython.specific, elf))
		return -EOPNOTSUPP;
	return binary_loops(d, elf, &loop) ? 0 : -EOPNOTSUPP;
}
