/* stack_reader.c - reads the calling contexts of a table into a profile's call tree */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "stack_reader.h"

_Static_assert((int)CALL_WHOLE == PROFIL_STACK_WHOLE && (int)CALL_NO_ROOM == PROFIL_STACK_NO_ROOM,
	       "roots have the same numbers in the kernel and here");

#define PATH_MAX_NODES (PROFIL_FRAMES_MAX + PROFIL_KERNEL_FRAMES_MAX + 1)

struct tree_reader {
	const struct table_reader *table;
	struct call_tree *into;
	__u32 *index; /* of each node: index + 1; 0: not read yet */
};

static const struct profil_node *node_at(const struct tree_reader *r, __u32 number)
{
	return table_node(&r->table->table, number - PROFIL_STACK_ROOTS);
}

static bool is_node(const struct tree_reader *r, __u32 number)
{
	return number >= PROFIL_STACK_ROOTS &&
	       number - PROFIL_STACK_ROOTS < r->table->table.head->nodes;
}

/*
 * Collects the nodes from @number outwards, to its root or to a node that was read, in @path.
 * Returns their number, and in *@parent the index above them, 0 if a frame is not complete.
 */
static size_t path_of(const struct tree_reader *r, __u32 number, __u32 *path, __u32 *parent)
{
	size_t n = 0;

	while (is_node(r, number) && n < PATH_MAX_NODES) {
		if (r->index[number - PROFIL_STACK_ROOTS]) {
			*parent = r->index[number - PROFIL_STACK_ROOTS] - 1;
			return n;
		}
		if (!node_at(r, number)->place)
			break;
		path[n++] = number;
		number = node_at(r, number)->parent;
	}
	*parent = number <= PROFIL_STACK_NO_ROOM ? number : CALL_UNREADABLE;
	return n;
}

/* Finds the object and the profile's offset of the frame of @node. */
static void locate(const struct tree_reader *r, const struct profil_node *node, __u32 *object,
		   __u64 *offset)
{
	__u32 image = profil_place_image(node->place);
	struct place place = { 0 };

	*object = 0;
	if (image && image <= r->table->table.head->images && r->table->object[image]) {
		*object = r->table->object[image] - 1;
		table_reader_locate(r->table, &place, image, profil_place_offset(node->place));
	}
	*offset = place.offset;
}

static int read_node(struct tree_reader *r, __u32 number, __u32 count)
{
	__u32 path[PATH_MAX_NODES], at;
	size_t n = path_of(r, number, path, &at);

	while (n-- > 0) {
		__u64 offset;
		__u32 object;
		int err;

		locate(r, node_at(r, path[n]), &object, &offset);
		err = call_tree_add(r->into, at, object, offset, &at);
		if (err)
			return err;
		r->index[path[n] - PROFIL_STACK_ROOTS] = at + 1;
	}
	r->into->node[at].count += count;
	return 0;
}

int stack_reader_read(const struct table_reader *table, struct call_tree *into)
{
	const struct profil_table *head = table->table.head;
	__cleanup(freep) __u32 *index = calloc(head->nodes + 1u, sizeof(*index));
	struct tree_reader r = { .table = table, .into = into, .index = index };
	int err = index ? 0 : -ENOMEM;

	for (__u32 i = 0; head->stack_mode && i < head->nodes && !err; i++) {
		const struct profil_node *node = node_at(&r, PROFIL_STACK_ROOTS + i);

		if (node->count && node->place)
			err = read_node(&r, PROFIL_STACK_ROOTS + i, node->count);
	}
	return err;
}

int stack_reader_add(const struct table_reader *table, const struct stack_count *count, size_t n,
		     struct call_tree *into)
{
	__cleanup(freep) __u32 *index = calloc(table->table.head->nodes + 1u, sizeof(*index));
	struct tree_reader r = { .table = table, .into = into, .index = index };
	int err = index ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++)
		err = read_node(&r, PROFIL_STACK_ROOTS + count[i].node, count[i].count);
	return err;
}
