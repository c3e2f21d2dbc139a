/* table.c - the layout of a table of places, and the BPF map that holds it */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "core/proto.h"
#include "core/unwind_maps.h"
#include "table.h"

#define PAGE_PLACES (PROFIL_PAGE_LINES * PROFIL_LINE_PLACES)

/* A free place ends a search: with half of them free, 0.2 % of places are coarse. */
#define USUAL_PLACES 81920
#define USUAL_IMAGES 512
#define USUAL_GROUPS 1024

#define USUAL_NODES 65536
#define USUAL_UNWIND_ROWS (1u << 20)
#define USUAL_SLEEPERS 8192
#define USUAL_FUNCTIONS 8192

/* 64 MiB of places; images are named by 16 bits, groups by 14. */
#define MOST_PLACES (5u << 20)
#define MOST_IMAGES 32768
#define MOST_GROUPS 8192
#define MOST_NODES (2u << 20)
#define MOST_UNWIND_ROWS (8u << 20)
#define MOST_SLEEPERS (1u << 20)

/* The pages for @n elements, @each to a page: a power of two. */
static uint32_t pages_for(uint32_t n, uint32_t each)
{
	uint32_t pages = 1;

	while (pages * each < n)
		pages *= 2;
	return pages;
}

/* Call graphs: the tree is behind the places; the unwind rules have a map of their own. */
static int layout_stacks(struct profil_table *header, struct profil_observer *o,
			 const struct table_room *room)
{
	uint32_t nodes = room->nodes ? room->nodes : USUAL_NODES;
	uint32_t rows = room->unwind_rows ? room->unwind_rows : USUAL_UNWIND_ROWS;
	uint32_t heads =
		PROFIL_UNWIND_IMAGE_PAGE + pages_for(header->images, PROFIL_PAGE_UNWIND_IMAGES);

	if (header->flags & PROFIL_OBSERVE_FUNCTIONS && header->stack_mode != PROFIL_STACK_FP)
		header->unwind_pages = heads;
	if (!header->stack_mode)
		return 0;
	if (nodes > MOST_NODES || rows > MOST_UNWIND_ROWS)
		return -E2BIG;
	o->node_pages = pages_for(nodes, PROFIL_PAGE_NODES);
	header->node_page = header->pages;
	header->nodes = o->node_pages * PROFIL_PAGE_NODES;
	header->pages += o->node_pages;
	if (header->stack_mode != PROFIL_STACK_FP)
		header->unwind_pages = heads + pages_for(rows, PROFIL_PAGE_ROWS);
	o->stack_mode = header->stack_mode;
	o->node_page = header->node_page;
	return 0;
}

/* Off-CPU time: the sleepers are behind the tree. */
static int layout_sleepers(struct profil_table *header, struct profil_observer *o, uint32_t n)
{
	uint32_t pages;

	if (header->event_type != PROFIL_EVENT_OFF_CPU && !(header->flags & PROFIL_OBSERVE_WAITS))
		return 0;
	if (n > MOST_SLEEPERS)
		return -E2BIG;
	if (!header->stack_mode)
		return -EINVAL;
	pages = pages_for(n ? n : USUAL_SLEEPERS, PROFIL_PAGE_SLEEPERS);
	header->sleeper_page = header->pages;
	header->sleepers = pages * PROFIL_PAGE_SLEEPERS;
	header->pages += pages;
	o->sleeper_page = header->sleeper_page;
	o->sleeper_mask = pages - 1;
	return 0;
}

/* Functions of interpreted languages, which the kernel finds by descriptors in the unwind map. */
static void layout_functions(struct profil_table *header, struct profil_observer *o)
{
	uint32_t pages = pages_for(USUAL_FUNCTIONS, PROFIL_PAGE_FUNCTIONS);

	if (!(header->flags & PROFIL_OBSERVE_FUNCTIONS) || !header->unwind_pages)
		return;
	header->function_page = header->pages;
	header->functions = pages * PROFIL_PAGE_FUNCTIONS;
	header->pages += pages;
	o->function_page = header->function_page;
	o->function_mask = pages - 1;
	o->functions = header->functions;
}

int table_layout(struct profil_table *header, struct profil_observer *o,
		 const struct table_room *room)
{
	uint32_t places = room->places ? room->places : USUAL_PLACES;
	uint32_t images = room->images ? room->images : USUAL_IMAGES;
	uint32_t groups = room->groups ? room->groups : USUAL_GROUPS;
	uint32_t image_pages, group_pages, place_pages;
	int err;

	if (places > MOST_PLACES || images > MOST_IMAGES || groups > MOST_GROUPS)
		return -E2BIG;
	image_pages = pages_for(images, PROFIL_PAGE_IMAGES);
	group_pages = header->group_by ? pages_for(groups, PROFIL_PAGE_GROUPS) : 0;
	place_pages = pages_for(places, PAGE_PLACES);
	header->unseen_page = PROFIL_UNSEEN_PAGE;
	header->image_page = PROFIL_UNSEEN_PAGE + 1;
	header->images = image_pages * PROFIL_PAGE_IMAGES;
	header->group_page = header->image_page + image_pages;
	header->groups = group_pages * PROFIL_PAGE_GROUPS;
	header->place_page = header->group_page + group_pages;
	header->lines = place_pages * PROFIL_PAGE_LINES;
	header->pages = header->place_page + place_pages;
	header->version = PROFIL_TABLE_VERSION;
	table_describe(o, header);
	err = layout_stacks(header, o, room) ?: layout_sleepers(header, o, room->sleepers);
	if (err)
		return err;
	layout_functions(header, o);
	return 0;
}

void table_describe(struct profil_observer *o, const struct profil_table *header)
{
	o->image_page = header->image_page;
	o->image_mask = header->images / PROFIL_PAGE_IMAGES - 1;
	o->group_page = header->group_page;
	o->group_mask = header->groups ? header->groups / PROFIL_PAGE_GROUPS - 1 : 0;
	o->place_page = header->place_page;
	o->line_mask = header->lines - 1;
	o->group_by = header->group_by;
}

int table_read(struct profil_table *header, int fd)
{
	void *at = mmap(NULL, PROFIL_TABLE_PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	memcpy(header, at, sizeof(*header));
	munmap(at, PROFIL_TABLE_PAGE);
	return header->version == PROFIL_TABLE_VERSION ? 0 : -EINVAL;
}

/* Creates an array of any number of pages; BPF_F_INNER_MAP lets an array of maps take it. */
static int create_pages(const char *name, uint32_t pages)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(__u32), PROFIL_TABLE_PAGE, pages,
				&opts);

	return fd < 0 ? -errno : fd;
}

int table_create_unwind(const struct profil_table *header)
{
	return create_pages("profil_unwind", header->unwind_pages);
}

int table_create(const struct profil_table *header)
{
	__cleanup(closep) int fd = create_pages(PROFIL_TABLE_NAME, header->pages);
	__cleanup(freep) char *page = calloc(1, PROFIL_TABLE_PAGE);
	__u32 key = 0;

	if (fd < 0)
		return fd;
	if (!page)
		return -ENOMEM;
	memcpy(page, header, sizeof(*header));
	if (bpf_map_update_elem(fd, &key, page, BPF_ANY) < 0 || bpf_map_freeze(fd) < 0)
		return -errno;
	return steal_fd(fd);
}
