/* unpack_limit.c - limits what compressed sections of ELF files may unpack to */
#include <gelf.h>
#include <lzma.h>
#include <string.h>

#include "elf_image.h"
#include "unpack_limit.h"

#define DECODER_BYTES (64u << 20) /* memory of the decoder: xz -9 needs it */
#define PIECE_BYTES 65536

#define COMPRESSED_ZSTD 2 /* ELFCOMPRESS_ZSTD, which older elf.h lack */
#define TRIED_BYTES (1u << 20)
#define ABBREVIATIONS_MAX (2u << 20)

/* GNU's older form: the name begins with ".zdebug", the contents with "ZLIB" and the size. */
static __u64 gnu_bytes(Elf_Scn *scn)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	const unsigned char *at = data ? data->d_buf : NULL;
	__u64 bytes = 0;

	if (!at || data->d_size < 12 || memcmp(at, "ZLIB", 4) != 0)
		return 0;
	for (int i = 4; i < 12; i++)
		bytes = bytes << 8 | at[i];
	return bytes;
}

static __u64 add(__u64 a, __u64 b)
{
	return a + b < a ? ~0ull : a + b;
}

/* What the section unpacks to; 0: it is not compressed. */
static __u64 packed_bytes(Elf_Scn *scn, const GElf_Shdr *sh, const char *name)
{
	GElf_Chdr ch;

	if (sh->sh_flags & SHF_COMPRESSED && gelf_getchdr(scn, &ch))
		return ch.ch_size;
	return name && !strncmp(name, ".zdebug", strlen(".zdebug")) ? gnu_bytes(scn) : 0;
}

__u64 unpack_dwarf_bytes(Elf *elf)
{
	Elf_Scn *scn = NULL;
	__u64 sum = 0;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return 0;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh))
			sum = add(sum, packed_bytes(scn, &sh, elf_strptr(elf, names, sh.sh_name)));
	}
	return sum;
}

bool unpack_abbreviations_within(Elf *elf)
{
	static const char *const names[] = { ".debug_abbrev", ".zdebug_abbrev" };
	GElf_Shdr sh;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		Elf_Scn *scn = elf_image_section(elf, names[i], &sh);

		if (scn && (sh.sh_size > ABBREVIATIONS_MAX ||
			    packed_bytes(scn, &sh, names[i]) > ABBREVIATIONS_MAX))
			return false;
	}
	return true;
}

bool unpack_is_unknown(Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Chdr ch;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn))) {
		if (gelf_getshdr(scn, &sh) && sh.sh_flags & SHF_COMPRESSED &&
		    gelf_getchdr(scn, &ch) && ch.ch_type == COMPRESSED_ZSTD &&
		    ch.ch_size <= TRIED_BYTES)
			return elf_compress(scn, 0, 0) < 0;
	}
	return false;
}

bool unpack_symbols_within(Elf *elf, __u64 most)
{
	unsigned char piece[PIECE_BYTES];
	lzma_stream s = LZMA_STREAM_INIT;
	lzma_ret ret;
	__u64 bytes = 0;
	GElf_Shdr sh;
	Elf_Data *data = elf_image_bytes(elf, ".gnu_debugdata", &sh);

	if (!data)
		return true;
	if (lzma_stream_decoder(&s, DECODER_BYTES, 0) != LZMA_OK)
		return false;
	s.next_in = data->d_buf;
	s.avail_in = data->d_size;
	do {
		s.next_out = piece;
		s.avail_out = sizeof(piece);
		ret = lzma_code(&s, LZMA_FINISH);
		bytes += sizeof(piece) - s.avail_out;
	} while (ret == LZMA_OK && bytes <= most);
	lzma_end(&s);
	return ret == LZMA_STREAM_END && bytes <= most;
}
