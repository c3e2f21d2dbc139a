/* disassembly.c - the instructions of a function, with sample counts */
/*
 * objdump gets the bytes of the code instead of the file, since it reads all relocations first, a
 * second for a file of hundreds of megabytes. So this file adds the names of branch targets.
 */
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/count_while.h"
#include "base/cleanup.h"

#include "disassembly.h"
#include "symbols/demangle.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf_symbols.h"
#include "symbols/jit_codes.h"
#include "base/grow.h"

/* The code of a function, or a part of it, in offsets of the object. */
struct code {
	const struct object *object;
	const struct function *function;
	int fd;		       /* the file that has the code; -1: @jit has it */
	struct jit_codes *jit; /* NULL: it was not compiled at run time */
	struct symbols *symbols;
	const char *machine; /* for objdump -m */
	__u64 start;
	__u64 end;
};

int disassembler_init(struct disassembler *d, const struct profile *p, const struct spots *s)
{
	*d = (struct disassembler){ .profile = p, .spots = s };
	d->symbols = calloc(p->nobjects + 1, sizeof(struct symbols *));
	d->tried = calloc(p->nobjects + 1, sizeof(*d->tried));
	return d->symbols && d->tried ? 0 : -ENOMEM;
}

void disassembler_fini(struct disassembler *d)
{
	for (size_t i = 0; d->symbols && i < d->profile->nobjects; i++)
		symbols_close(d->symbols[i]);
	free(d->symbols);
	free(d->tried);
}

static struct symbols *symbols_of(struct disassembler *d, __u32 object, int fd)
{
	if (!d->tried[object] && fd >= 0)
		symbols_open(&d->symbols[object], fd, d->profile->objects[object].path);
	d->tried[object] = true;
	return d->symbols[object];
}

/* NULL: code of this machine is not disassembled. */
static const char *machine_name(__u32 machine)
{
	return machine == EM_X86_64    ? "i386:x86-64"
	       : machine == EM_386     ? "i386"
	       : machine == EM_AARCH64 ? "aarch64"
				       : NULL;
}

static const char *machine_of(int fd)
{
	__u32 machine = EM_NONE;
	GElf_Ehdr eh;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && gelf_getehdr(elf, &eh))
		machine = eh.e_machine;
	elf_end(elf);
	return machine_name(machine);
}

/* The first place of @f. Its places are contiguous, except for those of functions nested in it. */
static const struct spot *first_spot(const struct spots *s, const struct function *f)
{
	size_t lo = COUNT_WHILE(s->n, i,
				s->spot[i].place.object < f->object ||
					(s->spot[i].place.object == f->object &&
					 s->spot[i].place.offset < f->offset));

	return s->spot + lo;
}

static bool in_function(const struct spots *s, const struct spot *spot, const struct function *f)
{
	return spot < s->spot + s->n && spot->place.object == f->object &&
	       spot->place.offset - f->offset < f->size;
}

/*
 * Chooses the part of a long function around its hottest place. It begins at a sample's pc, which
 * is the start of an instruction.
 */
static void choose_part(struct code *c, const struct spots *s)
{
	const struct function *f = c->function;
	const struct spot *first = first_spot(s, f), *hottest = first;

	c->start = f->offset;
	c->end = f->offset + f->size;
	if (f->size <= DISASSEMBLY_BYTES_MAX)
		return;
	for (const struct spot *i = first; in_function(s, i, f); i++) {
		if (i->function == f && i->place.count > hottest->place.count)
			hottest = i;
	}
	while (hottest->place.offset - first->place.offset > DISASSEMBLY_BYTES_MAX / 2)
		first++;
	c->start = first->place.offset;
	if (c->end - c->start > DISASSEMBLY_BYTES_MAX)
		c->end = c->start + DISASSEMBLY_BYTES_MAX;
}

/* Returns a descriptor of the bytes of the code, or a negative errno. */
static int copy_code(const struct code *c)
{
	__cleanup(closep) int copy = memfd_create("code", MFD_CLOEXEC);
	__cleanup(freep) char *bytes = malloc(c->end - c->start);
	ssize_t n;

	if (copy < 0 || !bytes)
		return -ENOMEM;
	n = c->jit ? (ssize_t)jit_codes_read(c->jit, c->start, bytes, c->end - c->start)
		   : pread(c->fd, bytes, c->end - c->start, (off_t)c->start);
	if (n <= 0)
		return -ENOENT;
	return write(copy, bytes, (size_t)n) == n ? steal_fd(copy) : -ENOMEM;
}

/* The branch target at the end of a line of objdump; 0: none. */
static __u64 target_of(const char *line)
{
	const char *last = strrchr(line, ' ');
	__u64 target;
	char *end;

	if (!last || strncmp(last + 1, "0x", 2) != 0)
		return 0;
	target = strtoull(last + 1, &end, 16);
	return *end ? 0 : target;
}

/* Appends the symbol of the branch target to @line, as objdump does. */
static char *named(const struct code *c, const char *line)
{
	__u64 target = target_of(line), at = object_offset(c->object, target), into;
	__cleanup(freep) char *name = NULL;
	struct symbols_range r = { .kind = SYMBOLS_PAGE };
	char *out = NULL;
	int n;

	if (target && at - c->function->offset < c->function->size) {
		n = asprintf(&out, "%s <+0x%llx>", line, at - c->function->offset);
		return n < 0 ? NULL : out;
	}
	if (target)
		symbols_find(c->symbols, at, &r);
	if (r.kind != SYMBOLS_NAMED)
		return strdup(line);
	name = demangle(r.name, r.name_len);
	if (!name)
		return NULL;
	into = at - r.start;
	if (into)
		n = asprintf(&out, "%s <%s+0x%llx>", line, name, into);
	else
		n = asprintf(&out, "%s <%s>", line, name);
	return n < 0 ? NULL : out;
}

/* "  401136:<tab>push %rbp"; skips other lines. */
static int read_line(struct listing *out, const struct code *c, char *line)
{
	struct listed *more;
	char *end;
	__u64 at = strtoull(line, &end, 16);

	if (end == line || *end != ':')
		return 0;
	for (end++; *end == ' ' || *end == '\t';)
		end++;
	end[strcspn(end, "\n")] = '\0';
	more = grow(out->line, out->n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	out->line = more;
	more[out->n] = (struct listed){ .at = at, .text = named(c, end) };
	return more[out->n++].text ? 0 : -ENOMEM;
}

static int read_all(struct listing *out, const struct code *c, FILE *objdump)
{
	char line[1024];
	int err = 0;

	while (!err && fgets(line, sizeof(line), objdump))
		err = read_line(out, c, line);
	return err;
}

/* Assigns the samples of the function to its instructions; both are sorted. */
static void put_samples(struct listing *out, const struct spots *s, const struct code *c)
{
	const struct function *f = c->function;
	size_t at = 0;

	for (const struct spot *i = first_spot(s, f); in_function(s, i, f); i++) {
		__u64 address = object_address(c->object, i->place.offset);

		if (i->function != f)
			continue;
		while (at + 1 < out->n && out->line[at + 1].at <= address)
			at++;
		if (out->n && out->line[at].at <= address && i->place.offset < c->end)
			out->line[at].samples += i->place.count;
		else
			out->outside += i->place.count;
	}
}

static int run_objdump(struct listing *out, const struct code *c, int code)
{
	char command[256];
	FILE *objdump;
	int err;

	snprintf(command, sizeof(command),
		 "objdump -D -b binary -m %s --no-show-raw-insn -z --adjust-vma=0x%llx "
		 "/proc/%d/fd/%d 2>/dev/null",
		 c->machine, object_address(c->object, c->start), (int)getpid(), code);
	fflush(NULL);
	objdump = popen(command, "re");
	if (!objdump)
		return -ENOSYS;
	err = read_all(out, c, objdump);
	return pclose(objdump) ? -ENOSYS : err;
}

static int open_code(struct code *c)
{
	if (c->object->kind == OBJECT_ANON && !jit_codes_open(&c->jit, c->object))
		c->machine = machine_name(jit_codes_machine(c->jit));
	else if ((c->fd = elf_file_open(c->object)) >= 0)
		c->machine = machine_of(c->fd);
	return c->machine ? 0 : -ENOENT;
}

static void code_fini(struct code *c)
{
	closep(&c->fd);
	jit_codes_close(c->jit);
}

int disassemble(struct listing *out, struct disassembler *d, const struct function *f)
{
	__cleanup(code_fini) struct code c = { .object = &d->profile->objects[f->object],
					       .function = f,
					       .fd = -1 };
	__cleanup(closep) int copy = -1;
	int err = open_code(&c);

	*out = (struct listing){ .readable = true };
	if (err < 0)
		return err;
	c.symbols = symbols_of(d, f->object, c.fd);
	choose_part(&c, d->spots);
	copy = copy_code(&c);
	if (copy < 0)
		return copy;
	err = run_objdump(out, &c, copy);
	if (!err)
		put_samples(out, d->spots, &c);
	return err;
}
