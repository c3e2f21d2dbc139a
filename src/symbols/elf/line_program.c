/* line_program.c - the rows of a unit's DWARF line program, without those of removed code */
#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_while.h"
#include "base/grow.h"

#include "line_program.h"

struct cursor {
	const unsigned char *at;
	const unsigned char *end;
	bool failed;
};

/* The registers of the line number state machine, and the header's parameters of its opcodes. */
struct machine {
	struct cursor in;
	struct line_rows *out;
	const struct segments *code;
	struct line_row row;
	size_t most;  /* rows */
	size_t first; /* row of the current sequence */
	__u8 unit;    /* bytes of an instruction, at least */
	__s8 line_base;
	__u8 line_range;
	__u8 opcode_base;
	const unsigned char *operands; /* their number, of each standard opcode */
};

static __u64 take(struct cursor *c, size_t bytes)
{
	__u64 value = 0;

	if ((size_t)(c->end - c->at) < bytes || bytes > sizeof(value)) {
		c->failed = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, bytes); /* all supported machines are little-endian */
	c->at += bytes;
	return value;
}

static __u64 take_uleb(struct cursor *c)
{
	unsigned int shift = 0;
	__u64 value = 0, byte;

	do {
		byte = take(c, 1);
		value |= shift < 64 ? (byte & 0x7f) << shift : 0;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

static __s64 take_sleb(struct cursor *c)
{
	unsigned int shift = 0;
	__u64 value = 0, byte;

	do {
		byte = take(c, 1);
		value |= shift < 64 ? (byte & 0x7f) << shift : 0;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && byte & 0x40)
		value |= ~0ull << shift;
	return (__s64)value;
}

static int read_header(struct machine *m, struct cursor section)
{
	__u64 length = take(&section, 4), header;
	size_t word = 4;
	unsigned int version;

	if (length == 0xffffffff) {
		word = 8;
		length = take(&section, 8);
	}
	if (section.failed || length > (__u64)(section.end - section.at))
		return -EINVAL;
	m->in = section;
	m->in.end = m->in.at + length;
	version = (unsigned int)take(&m->in, 2);
	if (version < 2 || version > 5)
		return -EINVAL;
	if (version == 5)
		take(&m->in, 2); /* sizes of an address and of a segment selector */
	header = take(&m->in, word);
	if (header > (__u64)(m->in.end - m->in.at))
		return -EINVAL;
	section.at = m->in.at + header; /* of the first opcode, behind the tables of files */
	m->unit = (__u8)take(&m->in, 1);
	take(&m->in, version >= 4 ? 2 : 1); /* operations of an instruction; default of is_stmt */
	m->line_base = (__s8)take(&m->in, 1);
	m->line_range = (__u8)take(&m->in, 1);
	m->opcode_base = (__u8)take(&m->in, 1);
	m->operands = m->in.at;
	if (m->in.failed || !m->line_range || !m->opcode_base ||
	    m->in.end - m->in.at < m->opcode_base)
		return -EINVAL;
	m->in.at = section.at;
	return 0;
}

static int add_row(struct machine *m)
{
	struct line_rows *r = m->out;
	struct line_row *more;

	if (r->n == m->most)
		return -EFBIG;
	more = grow(r->row, r->n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->row = more;
	more[r->n++] = m->row;
	m->row.discriminator = 0;
	return 0;
}

/* Says whether the rows from m->first on are of code that exists, and ascend. */
static bool is_live(const struct machine *m)
{
	const struct line_row *row = m->out->row;
	const struct segment *g;

	if (m->out->n == m->first)
		return false;
	g = segments_of_address(m->code, row[m->first].address);
	if (!g || m->row.address - g->vaddr > g->bytes)
		return false;
	for (size_t i = m->first + 1; i < m->out->n; i++) {
		if (row[i].address < row[i - 1].address)
			return false;
	}
	return m->row.address >= row[m->out->n - 1].address &&
	       m->row.address > row[m->first].address;
}

/* Ends a sequence at m->row.address. */
static int end_sequence(struct machine *m)
{
	struct line_rows *r = m->out;
	struct line_sequence *more;

	if (is_live(m)) {
		more = grow(r->sequence, r->nsequences, sizeof(*more));
		if (!more)
			return -ENOMEM;
		r->sequence = more;
		more[r->nsequences++] =
			(struct line_sequence){ r->row[m->first].address, m->row.address, m->first,
						r->n - m->first };
	} else {
		r->n = m->first;
	}
	m->first = r->n;
	m->row = (struct line_row){ .file = 1, .line = 1 };
	return 0;
}

static int extended(struct machine *m)
{
	__u64 bytes = take_uleb(&m->in);
	const unsigned char *next;
	int err = 0;

	if (!bytes || bytes > (__u64)(m->in.end - m->in.at))
		return -EINVAL;
	next = m->in.at + bytes;
	switch (take(&m->in, 1)) {
	case DW_LNE_end_sequence:
		err = end_sequence(m);
		break;
	case DW_LNE_set_address:
		m->row.address = take(&m->in, bytes - 1);
		break;
	case DW_LNE_set_discriminator:
		m->row.discriminator = (__u32)take_uleb(&m->in);
		break;
	}
	m->in.at = next;
	return err;
}

static int standard(struct machine *m, unsigned int opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return add_row(m);
	case DW_LNS_advance_pc:
		m->row.address += take_uleb(&m->in) * m->unit;
		return 0;
	case DW_LNS_advance_line:
		m->row.line += (__u32)take_sleb(&m->in);
		return 0;
	case DW_LNS_set_file:
		m->row.file = (__u32)take_uleb(&m->in);
		return 0;
	case DW_LNS_const_add_pc:
		m->row.address += (__u64)((255 - m->opcode_base) / m->line_range) * m->unit;
		return 0;
	case DW_LNS_fixed_advance_pc:
		m->row.address += take(&m->in, 2);
		return 0;
	}
	for (__u8 i = 0; i < m->operands[opcode - 1]; i++)
		take_uleb(&m->in);
	return 0;
}

static int special(struct machine *m, unsigned int opcode)
{
	unsigned int step = opcode - m->opcode_base;

	m->row.address += (__u64)(step / m->line_range) * m->unit;
	m->row.line += (__u32)(m->line_base + (int)(step % m->line_range));
	return add_row(m);
}

static int by_low(const void *a, const void *b)
{
	const struct line_sequence *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

int line_rows_read(struct line_rows *out, const unsigned char *section, size_t bytes, __u64 offset,
		   const struct segments *code, size_t most)
{
	struct machine m = {
		.out = out, .code = code, .row = { .file = 1, .line = 1 }, .most = most
	};
	int err;

	*out = (struct line_rows){ 0 };
	if (offset >= bytes)
		return -EINVAL;
	err = read_header(&m, (struct cursor){ section + offset, section + bytes, false });
	while (!err && !m.in.failed && m.in.at < m.in.end) {
		unsigned int opcode = (unsigned int)take(&m.in, 1);

		if (opcode >= m.opcode_base)
			err = special(&m, opcode);
		else
			err = opcode ? standard(&m, opcode) : extended(&m);
	}
	out->n = m.first; /* without a sequence that has no end */
	if (out->nsequences)
		qsort(out->sequence, out->nsequences, sizeof(*out->sequence), by_low);
	return err;
}

const struct line_row *line_rows_find(const struct line_rows *r, __u64 address)
{
	const struct line_sequence *s = NULL;
	size_t lo = COUNT_WHILE(r->nsequences, i, r->sequence[i].low <= address);

	s = lo ? &r->sequence[lo - 1] : NULL;
	if (!s || address >= s->high)
		return NULL;
	lo = COUNT_WHILE(s->n, i, r->row[s->first + i].address <= address);
	return &r->row[s->first + lo - 1]; /* the first row of a sequence is at its low */
}

void line_rows_fini(struct line_rows *r)
{
	free(r->row);
	free(r->sequence);
	*r = (struct line_rows){ 0 };
}
