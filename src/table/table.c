/* table.c - an attachment's table of places, mapped read-only while the kernel counts into it */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "table.h"

/* Says whether @n elements, @per per page, fit into the table from @page on. */
static bool has_room(const struct profil_table *head, __u32 page, __u32 n, __u32 per)
{
	return page && n && (__u64)page + ((__u64)n + per - 1) / per <= head->pages;
}

static bool is_sound(const struct profil_table *head)
{
	return head->version == PROFIL_TABLE_VERSION && !head->reserved &&
	       head->images <= 1u << 16 && head->groups <= PROFIL_PLACE_GROUPS &&
	       has_room(head, head->image_page, head->images, PROFIL_PAGE_IMAGES) &&
	       (!head->groups ||
		has_room(head, head->group_page, head->groups, PROFIL_PAGE_GROUPS)) &&
	       has_room(head, head->place_page, head->lines, PROFIL_PAGE_LINES) &&
	       (!head->stack_mode ||
		has_room(head, head->node_page, head->nodes, PROFIL_PAGE_NODES)) &&
	       head->unseen_page < head->pages &&
	       (!head->sleepers ||
		has_room(head, head->sleeper_page, head->sleepers, PROFIL_PAGE_SLEEPERS)) &&
	       (!head->functions ||
		has_room(head, head->function_page, head->functions, PROFIL_PAGE_FUNCTIONS));
}

int table_read_head(struct profil_table *out, int fd)
{
	const struct profil_table *head =
		mmap(NULL, PROFIL_TABLE_PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (head == MAP_FAILED)
		return -errno;
	*out = *head;
	munmap((void *)head, PROFIL_TABLE_PAGE);
	return is_sound(out) ? 0 : -EPROTO;
}

int table_open(struct table *t, int fd)
{
	struct profil_table first = { 0 };
	const struct profil_table *head;
	int err = table_read_head(&first, fd);
	size_t bytes;

	if (err)
		return err;
	bytes = (size_t)first.pages * PROFIL_TABLE_PAGE;
	head = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (head == MAP_FAILED)
		return -errno;
	/* A helper process that hangs must not keep the table, which is charged to this user. */
	madvise((void *)head, bytes, MADV_DONTFORK);
	*t = (struct table){ .head = head, .bytes = bytes };
	return 0;
}

void table_close(struct table *t)
{
	if (t->head)
		munmap((void *)t->head, t->bytes);
	*t = (struct table){ 0 };
}

static const void *page_of(const struct table *t, __u32 page)
{
	return (const char *)t->head + (size_t)page * PROFIL_TABLE_PAGE;
}

const struct profil_image *table_image(const struct table *t, __u32 index)
{
	const struct profil_image *image = page_of(t, t->head->image_page);

	if (!index || index > t->head->images)
		return NULL;
	image += index - 1;
	return __atomic_load_n(&image->ready, __ATOMIC_ACQUIRE) == 1 ? image : NULL;
}

const struct profil_function *table_function(const struct table *t, __u32 index)
{
	const struct profil_function *function = page_of(t, t->head->function_page);

	if (index >= t->head->functions)
		return NULL;
	function += index;
	return __atomic_load_n(&function->ready, __ATOMIC_ACQUIRE) == 1 ? function : NULL;
}

const struct profil_group *table_group(const struct table *t, __u32 index)
{
	const struct profil_group *group = page_of(t, t->head->group_page);

	if (!index || index > t->head->groups)
		return NULL;
	group += index - 1;
	return __atomic_load_n(&group->ready, __ATOMIC_ACQUIRE) == 1 ? group : NULL;
}

const struct profil_line *table_lines(const struct table *t)
{
	return page_of(t, t->head->place_page);
}

const struct profil_node *table_node(const struct table *t, __u32 index)
{
	const struct profil_node *page = page_of(t, t->head->node_page + index / PROFIL_PAGE_NODES);

	return page + index % PROFIL_PAGE_NODES;
}

const struct profil_sleeper *table_sleepers(const struct table *t)
{
	return page_of(t, t->head->sleeper_page);
}

__u64 table_waiting_ns(const struct table *t)
{
	const __u64 *cells = page_of(t, t->head->unseen_page);
	__u64 sum = 0;

	for (__u32 i = 0; t->head->unseen_page && i < PROFIL_UNSEEN_CELLS; i++)
		sum += __atomic_load_n(&cells[i], __ATOMIC_RELAXED) & PROFIL_UNSEEN_MOST;
	return sum;
}

__u64 table_total(const struct table *t)
{
	const struct profil_table *head = t->head;
	const struct profil_line *lines = table_lines(t);
	__u64 total = head->unmatched + head->image_full + head->lost;

	for (__u32 i = 0; i < head->lines; i++) {
		for (int k = 0; k < PROFIL_LINE_PLACES && lines[i].key[k]; k++) {
			if (!(lines[i].key[k] & (PROFIL_PLACE_FOLDED | PROFIL_PLACE_SUM)))
				total += lines[i].count[k];
		}
	}
	for (__u32 i = 1; i <= head->images; i++) {
		const struct profil_image *image = table_image(t, i);

		total += image ? image->coarse[0] : 0;
	}
	return total;
}

/*
 * image->path has the last component first. If outer ones are missing, the path has no leading '/'.
 */
void table_image_path(const struct profil_image *image, char *out, size_t bytes)
{
	size_t at = bytes - 1;
	const char *name = image->path, *end = image->path + sizeof(image->path);

	out[at] = '\0';
	while (name < end && *name) {
		size_t n = strnlen(name, (size_t)(end - name));

		if (name + n == end || n + 1 > at)
			break;
		at -= n;
		memcpy(out + at, name, n);
		out[--at] = '/';
		name += n + 1;
	}
	at += at < bytes - 1 && image->path_cut;
	memmove(out, out + at, bytes - at);
}
