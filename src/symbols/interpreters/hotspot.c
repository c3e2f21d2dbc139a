/* hotspot.c - the descriptor of HotSpot's library, libjvm.so */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/arch.h"
#include "core/observe_maps.h"

#include "binary.h"
#include "interpreter.h"

/*
 * What the library exports for debuggers has offsets only in a running process. So they are a
 * table here, as running processes of product builds have told them, 64 bits.
 */
#define COMMON                                                                        \
	.method_fixed = 8, .fixed_constants = 8, .pool_holder = 24, .class_name = 24, \
	.symbol_length = 4, .symbol_bytes = 6

static const struct layout {
	int version;
	struct profil_hotspot at;
} layouts[] = {
	{ 17,
	  { COMMON, .heap_memory = 8, .heap_segments = 136, .heap_shift = 256, .block_bytes = 16,
	    .blob_name = 96, .blob_frame = 28, .blob_complete = 20, .blob_code = 32,
	    .blob_method = 112, .method_name = 34 } },
	{ 21,
	  { COMMON, .heap_memory = 0, .heap_segments = 128, .heap_shift = 248, .block_bytes = 16,
	    .blob_name = 64, .blob_frame = 88, .blob_complete = 80, .blob_code = 8,
	    .blob_method = 112, .method_name = 36 } },
	{ 25,
	  { COMMON, .heap_memory = 0, .heap_segments = 128, .heap_shift = 248, .block_bytes = 8,
	    .blob_name = 8, .blob_frame = 44, .blob_complete = 54, .blob_code = 36,
	    .blob_method = 80, .is_short = 1, .method_name = 36 } },
};

/* The version in the text that the library has of itself: "OpenJDK 64-Bit Server VM (17.0.15+6". */
static int version_of(Elf *elf)
{
	static const char before[] = " 64-Bit Server VM (";
	size_t size;
	const char *raw = elf_rawfile(elf, &size), *end = raw + size, *at = raw;

	while (raw && (at = memmem(at, (size_t)(end - at), before, sizeof(before) - 1))) {
		char number[4] = "";

		at += sizeof(before) - 1;
		if (end - at > (ptrdiff_t)sizeof(number))
			memcpy(number, at, sizeof(number) - 1);
		if (atoi(number) > 0)
			return atoi(number);
	}
	return 0;
}

/* An entry of what the library exports for debuggers. */
enum entry { ENTRY_TYPE, ENTRY_FIELD, ENTRY_ADDRESS = 5, ENTRY_WORDS };

#define ENTRIES_MAX 2048

static bool is_text(Elf *elf, __u64 vaddr, const char *text)
{
	char is[32];

	return vaddr && strlen(text) < sizeof(is) &&
	       binary_bytes(elf, vaddr, is, strlen(text) + 1) && !strcmp(is, text);
}

/* The address of static member @field of class @type; 0: it is not exported. */
static __u64 static_member(Elf *elf, const char *type, const char *field)
{
	__cleanup(freep) __u64 *word = calloc(ENTRIES_MAX, ENTRY_WORDS * sizeof(*word));
	struct binary_symbol structs;
	__u64 array, n = ENTRIES_MAX;

	if (!word || !binary_symbol(&structs, elf, "gHotSpotVMStructs") ||
	    !binary_pointers(elf, structs.vaddr, &array, 1))
		return 0;
	while (n && !binary_pointers(elf, array, word, n * ENTRY_WORDS))
		n /= 2;
	for (__u64 *e = word; e < word + n * ENTRY_WORDS && e[ENTRY_TYPE]; e += ENTRY_WORDS) {
		if (is_text(elf, e[ENTRY_TYPE], type) && is_text(elf, e[ENTRY_FIELD], field))
			return e[ENTRY_ADDRESS];
	}
	return 0;
}

/* Any code of the library: what is exported is in the segment of the code. */
static bool code_delta(Elf *elf, __u64 *delta)
{
	struct binary_symbol create;

	return binary_symbol(&create, elf, "JNI_CreateJavaVM") &&
	       binary_delta(elf, create.vaddr, delta);
}

#define SOURCE_BEFORE_END 18 /* the index of the source file's name in ConstantPool */

/*
 * ConstantPool has grown within a version. JVM_GetMethodIxNameUTF() has Method::name(): the index,
 * movzwl INDEX(%reg),%reg, then the constant, mov BYTES(%reg,%reg,8),%reg. Returns false if it has
 * not, or another index.
 */
static bool read_pool(struct profil_hotspot *at, Elf *elf)
{
	struct binary_symbol name;
	unsigned char code[256], *movzwl;
	size_t n;

	if (!binary_symbol(&name, elf, "JVM_GetMethodIxNameUTF"))
		return false;
	n = name.bytes < sizeof(code) ? name.bytes : sizeof(code);
	if (n < 32 || !binary_bytes(elf, name.vaddr, code, n))
		return false;
	for (movzwl = code; movzwl < code + n - 24; movzwl++) {
		if (movzwl[0] == 0x0f && movzwl[1] == 0xb7 && (movzwl[2] & 0xc0) == 0x40 &&
		    movzwl[3] == at->method_name)
			break;
	}
	for (unsigned char *mov = movzwl + 4; mov < code + n - 8 && mov < movzwl + 16; mov++) {
		if (mov[0] != 0x48 || mov[1] != 0x8b || (mov[2] & 0xc7) != 0x44 || mov[3] >> 6 != 3)
			continue;
		at->pool_bytes = mov[4];
		at->pool_source = (__u16)(mov[4] - SOURCE_BEFORE_END);
		return mov[4] > SOURCE_BEFORE_END;
	}
	return false;
}

int hotspot_read(struct profil_interpreter *d, Elf *elf)
{
	const struct layout *layout = NULL;
	struct binary_symbol structs;
	__u64 heaps, delta;
	int version;

	if (!binary_symbol(&structs, elf, "gHotSpotVMStructs"))
		return -ENOENT;
	version = version_of(elf);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		if (layouts[i].version == version)
			layout = &layouts[i];
	}
	heaps = layout && ARCH_RA_ON_STACK ? static_member(elf, "CodeCache", "_heaps") : 0;
	if (!heaps || !code_delta(elf, &delta))
		return -EOPNOTSUPP;
	*d = (struct profil_interpreter){ .kind = PROFIL_INTERPRETER_HOTSPOT,
					  .language = PROFIL_LANGUAGE_JAVA,
					  .runtime = heaps - delta,
					  .hotspot = layout->at };
	return read_pool(&d->hotspot, elf) ? 0 : -EOPNOTSUPP;
}
