/* folded_stacks.c - readers of a tree of calls whose nodes are folded between two readings */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/arch.h"
#include "profil-http/machine/snapshot.h"
#include "symbols/proc/kernel_text.h"
#include "table/stack_reader.h"

#define PAGES 5
#define KERNEL_BASE (ARCH_KERNEL_TEXT & ~0xffffffffull) /* near _text */
#define OUTER (PROFIL_STACK_ROOTS + 3)
#define INNER (PROFIL_STACK_ROOTS + 1)

/* The machine's table with a file, the kernel, and stacks of the kernel's code. */
struct machine {
	int fd;
	struct profil_table *head;
	struct profil_image *image;
	struct profil_line *line;
	struct profil_node *node;
};

static void *page_of(const struct machine *m, int page)
{
	return (char *)m->head + (size_t)page * PROFIL_TABLE_PAGE;
}

static void set_node(const struct machine *m, __u32 number, __u32 parent, __u32 offset, __u32 count)
{
	m->node[number - PROFIL_STACK_ROOTS] =
		(struct profil_node){ .id = offset | 1,
				      .place = profil_place(0, 1, offset),
				      .parent = parent,
				      .count = count };
}

static void add_samples(const struct machine *m, __u32 number, __u32 n)
{
	m->line[0].count[0] += n;
	m->node[number - PROFIL_STACK_ROOTS].count += n;
}

static void open_machine(struct machine *m)
{
	m->fd = memfd_create("table", MFD_CLOEXEC);
	cr_assert_eq(ftruncate(m->fd, PAGES * PROFIL_TABLE_PAGE), 0);
	m->head =
		mmap(NULL, PAGES * PROFIL_TABLE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	cr_assert_neq(m->head, MAP_FAILED);
	*m->head = (struct profil_table){ .version = PROFIL_TABLE_VERSION,
					  .pages = PAGES,
					  .image_page = 1,
					  .images = PROFIL_PAGE_IMAGES,
					  .group_page = 2,
					  .groups = PROFIL_PAGE_GROUPS,
					  .place_page = 3,
					  .lines = PROFIL_PAGE_LINES,
					  .node_page = 4,
					  .nodes = PROFIL_PAGE_NODES,
					  .stack_mode = PROFIL_STACK_AUTO,
					  .used_images = 1,
					  .period_ns = 1000000 };
	m->image = page_of(m, 1);
	m->line = page_of(m, 3);
	m->node = page_of(m, 4);
	m->image[0] = (struct profil_image){
		.id = 1, .kind = PROFIL_IMAGE_KERNEL, .base = KERNEL_BASE, .ready = 1
	};
	m->line[0].key[0] = profil_place(0, 1, 0x100);
	set_node(m, OUTER, PROFIL_STACK_WHOLE, 0x100, 0);
	set_node(m, INNER, OUTER, 0x200, 0);
}

/* Frees @INNER as the kernel does: its samples go to its caller, and its room to another node. */
static void fold_inner(const struct machine *m)
{
	__u32 n = m->node[INNER - PROFIL_STACK_ROOTS].count;

	m->head->folds += 2;
	m->head->folded += n;
	m->node[OUTER - PROFIL_STACK_ROOTS].count += n;
	set_node(m, INNER, PROFIL_STACK_WHOLE, 0x300, 0);
}

static void close_machine(struct machine *m)
{
	munmap(m->head, PAGES * PROFIL_TABLE_PAGE);
	close(m->fd);
}

/* The samples at the innermost frame with this @offset, after _text. */
static __u64 samples_at(const struct call_tree *t, __u64 offset)
{
	__u64 n = 0;

	for (size_t i = CALL_ROOTS; i < t->n; i++)
		n += (t->node[i].offset & 0xfff) == offset ? t->node[i].count : 0;
	return n;
}

Test(folded_stacks, intervals_have_each_sample_once)
{
	struct machine m;
	struct table_reader r = { 0 };
	struct table_seen seen;
	struct call_tree last = { 0 };
	struct profile *names, *p;

	if (!kernel_text())
		cr_skip_test("needs root, to read where the kernel's code begins");
	names = profile_new();
	open_machine(&m);
	cr_assert_eq(table_reader_open(&r, m.fd, names), 0);
	cr_assert_eq(table_seen_init(&seen, &r.table), 0);
	add_samples(&m, INNER, 7);
	add_samples(&m, OUTER, 5);
	p = profile_borrow(names);
	cr_assert_eq(stack_reader_read_since(&r, &seen, &last, p), 0);
	cr_expect_eq(call_tree_sum(&p->calls), 12);
	cr_expect_eq(p->calls_folded, 0);
	profile_give_back(p);

	add_samples(&m, INNER, 2);
	fold_inner(&m);
	add_samples(&m, INNER, 1);
	add_samples(&m, OUTER, 3);
	p = profile_borrow(names);
	cr_assert_eq(stack_reader_read_since(&r, &seen, &last, p), 0);
	cr_expect_eq(p->total, 6);
	cr_expect_eq(call_tree_sum(&p->calls), 6, "%llu", call_tree_sum(&p->calls));
	cr_expect_eq(samples_at(&p->calls, 0x300), 1, "of the node that took its room");
	cr_expect_eq(samples_at(&p->calls, 0x200), 0);
	cr_expect_eq(samples_at(&p->calls, 0x100), 5, "those folded since are at the caller");
	cr_expect_eq(p->calls_folded, 9, "all that were moved are told");
	profile_give_back(p);

	call_tree_fini(&last);
	table_seen_fini(&seen);
	table_reader_close(&r);
	profile_free(names);
	close_machine(&m);
}

Test(folded_stacks, frames_of_a_kernel_with_hidden_addresses_are_one)
{
	struct machine m;
	struct table_reader r = { 0 };
	struct table_seen seen;
	struct call_tree last = { 0 };
	struct profile *names = profile_new(), *p;

	open_machine(&m);
	cr_assert_eq(table_reader_open(&r, m.fd, names), 0);
	cr_assert_eq(table_seen_init(&seen, &r.table), 0);
	r.kernel_text = 0;
	add_samples(&m, INNER, 7);
	add_samples(&m, OUTER, 5);
	p = profile_borrow(names);
	cr_assert_eq(stack_reader_read_since(&r, &seen, &last, p), 0);
	cr_expect_eq(p->calls.n, CALL_ROOTS + 1);
	cr_expect_eq(p->calls.node[CALL_ROOTS].count, 12);
	profile_give_back(p);
	call_tree_fini(&last);
	table_seen_fini(&seen);
	table_reader_close(&r);
	profile_free(names);
	close_machine(&m);
}

Test(folded_stacks, copies_never_have_more_samples_than_places)
{
	struct machine m;
	struct source *source;
	struct snapshot *before, *after;

	open_machine(&m);
	cr_assert_eq(source_open(&source, dup(m.fd)), 0);
	add_samples(&m, OUTER, 5);
	m.node[INNER - PROFIL_STACK_ROOTS].count = 2; /* counted between places and nodes */
	cr_assert_eq(snapshot_take(&before, source, 1, NULL), 0);
	cr_expect_eq(before->node[OUTER - PROFIL_STACK_ROOTS].count +
			     before->node[INNER - PROFIL_STACK_ROOTS].count,
		     5);
	m.line[0].count[0] += 2;
	m.node[INNER - PROFIL_STACK_ROOTS].count += 1;
	cr_assert_eq(snapshot_take(&after, source, 2, before), 0);
	for (int i = 0; i < PROFIL_PAGE_NODES; i++)
		cr_expect_geq(after->node[i].count, before->node[i].count, "node %d", i);
	cr_expect_eq(after->node[OUTER - PROFIL_STACK_ROOTS].count +
			     after->node[INNER - PROFIL_STACK_ROOTS].count,
		     7);
	snapshot_unref(before);
	snapshot_unref(after);
	source_unref(source);
	close_machine(&m);
}

Test(folded_stacks, copies_never_grow_by_more_than_places)
{
	struct machine m;
	struct source *source;
	struct snapshot *before, *after;

	open_machine(&m);
	cr_assert_eq(source_open(&source, dup(m.fd)), 0);
	add_samples(&m, OUTER, 5);
	m.line[0].count[0] += 1; /* its node is counted after the copy */
	cr_assert_eq(snapshot_take(&before, source, 1, NULL), 0);
	cr_expect_eq(before->stackless, 1);
	m.node[OUTER - PROFIL_STACK_ROOTS].count += 1;
	add_samples(&m, INNER, 3);
	cr_assert_eq(snapshot_take(&after, source, 2, before), 0);
	cr_expect_eq(after->outcomes.total - before->outcomes.total, 3);
	cr_expect_eq(after->node[OUTER - PROFIL_STACK_ROOTS].count +
			     after->node[INNER - PROFIL_STACK_ROOTS].count,
		     8);
	cr_expect_eq(after->stackless, 1);
	snapshot_unref(before);
	snapshot_unref(after);
	source_unref(source);
	close_machine(&m);
}
