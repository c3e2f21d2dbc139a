/* unwind_rows.bpf.h - which row of unwind rules covers an address */
#ifndef PROFIL_BPF_UNWIND_ROWS_BPF_H
#define PROFIL_BPF_UNWIND_ROWS_BPF_H

/*
 * The client may write the map at any time (core/unwind_maps.h), so its contents are not trusted.
 * bpf_map_lookup_elem() checks page numbers, and a remainder bounds positions in a page.
 */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "core/observers.h"
#include "core/unwind_maps.h"

struct unwind_page {
	union {
		struct profil_unwind_row row[PROFIL_PAGE_ROWS];
		struct profil_unwind_image image[PROFIL_PAGE_UNWIND_IMAGES];
		__u32 first[PROFIL_PAGE_FIRSTS];
		struct profil_unwind_file file[PROFIL_PAGE_UNWIND_FILES];
	};
};

struct unwind_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct unwind_page));
};

/* By slot, like the tables of places. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PROFIL_MAX_OBSERVERS);
	__uint(key_size, sizeof(__u32));
	__array(values, struct unwind_map);
} unwind_tables SEC(".maps");

/* How many of the page's first @n offsets are at or below @offset. */
__attribute__((noinline)) __u32 search_firsts(const struct unwind_page *page, __u32 offset, __u32 n)
{
	__u32 low = 0, high = n;

	if (!page)
		return 0;
	for (int i = 0; i < 11 && low < high; i++) {
		__u32 middle = (low + high) >> 1;

		if (page->first[middle % PROFIL_PAGE_FIRSTS] <= offset)
			low = middle + 1;
		else
			high = middle;
		asm volatile("" : "+r"(low), "+r"(high));
	}
	return low;
}

/*
 * The row of the page that covers @offset, as one word; 0: PROFIL_UNWIND_NONE. @n is
 * PROFIL_PAGE_ROWS, passed as an argument: from a constant the verifier would follow each of the
 * 512 searches.
 */
__attribute__((noinline)) __u64 search_rows(const struct unwind_page *page, __u32 offset, __u32 n)
{
	__u32 low = 0, high = n;

	if (!page)
		return 0;
	for (int i = 0; i < 10 && low < high; i++) {
		__u32 middle = (low + high) >> 1;

		if (page->row[middle % PROFIL_PAGE_ROWS].offset <= offset)
			low = middle + 1;
		else
			high = middle;
		asm volatile("" : "+r"(low), "+r"(high));
	}
	return low ? *(const __u64 *)&page->row[(low - 1) % PROFIL_PAGE_ROWS] : 0;
}

static __always_inline __u64 row_without_pages(__u32 looked)
{
	__u64 kind = looked == PROFIL_LOOKED_NO_ROOM ? PROFIL_UNWIND_NO_ROOM
		     : looked			     ? PROFIL_UNWIND_NONE
						     : PROFIL_UNWIND_NOT_YET;

	return kind << 56;
}

/* The row of @image that covers @offset, as one word. Global, so that the verifier checks it once.
 */
__attribute__((noinline)) __u64 row_of(__u32 slot, __u32 image, __u32 offset)
{
	void *map = bpf_map_lookup_elem(&unwind_tables, &slot);
	__u32 key = PROFIL_UNWIND_IMAGE_PAGE + (image - 1) / PROFIL_PAGE_UNWIND_IMAGES;
	__u32 n = 0, pages, at;
	const struct profil_unwind_image *of;
	const struct unwind_page *page;

	page = map ? bpf_map_lookup_elem(map, &key) : NULL;
	if (!page)
		return 0;
	of = &page->image[(image - 1) % PROFIL_PAGE_UNWIND_IMAGES];
	pages = *(volatile __u32 *)&of->pages;
	if (!pages)
		return row_without_pages(of->looked);
	at = of->first_page;
	key = of->row_page;
	for (int i = 0; i < PROFIL_FIRST_PAGES_MAX && pages; i++, at++) {
		__u32 some = pages < PROFIL_PAGE_FIRSTS ? pages : PROFIL_PAGE_FIRSTS, found;

		found = search_firsts(bpf_map_lookup_elem(map, &at), offset, some);
		n += found;
		if (found < some)
			break;
		pages -= some;
	}
	if (!n)
		return 0;
	key += n - 1;
	return search_rows(bpf_map_lookup_elem(map, &key), offset, PROFIL_PAGE_ROWS);
}

#define INTERPRETER_NOT_YET (1u << 31)

/*
 * The number of the descriptor of @image; 0: it is no interpreter; INTERPRETER_NOT_YET: the client
 * has not looked. Global, as row_of().
 */
__attribute__((noinline)) __u32 image_interpreter(__u32 slot, __u32 image)
{
	void *map = bpf_map_lookup_elem(&unwind_tables, &slot);
	__u32 key = PROFIL_UNWIND_IMAGE_PAGE + (image - 1) / PROFIL_PAGE_UNWIND_IMAGES;
	const struct unwind_page *page = map ? bpf_map_lookup_elem(map, &key) : NULL;
	const struct profil_unwind_image *i;

	if (!page)
		return 0;
	i = &page->image[(image - 1) % PROFIL_PAGE_UNWIND_IMAGES];
	if (!i->interpreter && i->looked == PROFIL_LOOKED_NOT_YET)
		return INTERPRETER_NOT_YET;
	return i->interpreter;
}

/* The base of the interpreter's file in the process whose memory @image is. Global, as row_of(). */
__attribute__((noinline)) __u64 image_base(__u32 slot, __u32 image)
{
	void *map = bpf_map_lookup_elem(&unwind_tables, &slot);
	__u32 key = PROFIL_UNWIND_IMAGE_PAGE + (image - 1) / PROFIL_PAGE_UNWIND_IMAGES;
	const struct unwind_page *page = map ? bpf_map_lookup_elem(map, &key) : NULL;

	return page ? page->image[(image - 1) % PROFIL_PAGE_UNWIND_IMAGES].base : 0;
}

static __always_inline __u8 row_rule(__u64 row)
{
	return (__u8)(row >> 56);
}

static __always_inline __u64 row_cfa(__u64 row)
{
	return (row >> 32 & 0xffff) * 8;
}

static __always_inline __u64 row_saved(__u64 row)
{
	return (row >> 48 & 0xff) * 8;
}

/* Where the caller's registers are saved: below the CFA, or above the rule's register @base. */
static __always_inline __u64 row_saved_at(__u64 row, __u64 cfa, __u64 base)
{
	__u64 saved = row_saved(row);

	return row_rule(row) & PROFIL_UNWIND_SAVED_ABOVE ? base + saved : cfa - saved;
}

static __always_inline __u32 row_register(__u64 row)
{
	return row >> (32 + PROFIL_UNWIND_REGISTER_SHIFT) & 0xf;
}

/* Gives image @number the rows of file @f. */
static __always_inline void adopt(void *map, __u32 number, const struct profil_unwind_file *f)
{
	__u32 key = PROFIL_UNWIND_IMAGE_PAGE + (number - 1) / PROFIL_PAGE_UNWIND_IMAGES;
	struct unwind_page *page = bpf_map_lookup_elem(map, &key);
	struct profil_unwind_image *image;

	if (!page)
		return;
	image = &page->image[(number - 1) % PROFIL_PAGE_UNWIND_IMAGES];
	image->first_page = f->first_page;
	image->row_page = f->row_page;
	image->interpreter = (__u16)f->interpreter;
	*(volatile __u32 *)&image->pages = f->pages;
}

/*
 * Gives the new image @number, memory without a file, the interpreter whose code it has if the
 * process executes file @ino of device @dev. Global, as row_of().
 */
__attribute__((noinline)) int unwind_adopt_anonymous(__u32 slot, __u32 number, __u64 ino, __u32 dev)
{
	void *map = bpf_map_lookup_elem(&unwind_tables, &slot);
	__u32 key = profil_unwind_file_page(ino), at = profil_unwind_file_at(ino), anonymous = 0;
	struct unwind_page *page = map ? bpf_map_lookup_elem(map, &key) : NULL;

	if (!page || !number)
		return 0;
	for (int i = 0; i < PROFIL_UNWIND_FILE_TRIES; i++, at++) {
		const struct profil_unwind_file *f = &page->file[at % PROFIL_PAGE_UNWIND_FILES];

		if (f->ino == ino && (!f->dev || f->dev == dev)) {
			anonymous = f->anonymous;
			break;
		}
	}
	key = PROFIL_UNWIND_IMAGE_PAGE + (number - 1) / PROFIL_PAGE_UNWIND_IMAGES;
	page = anonymous ? bpf_map_lookup_elem(map, &key) : NULL;
	if (page)
		page->image[(number - 1) % PROFIL_PAGE_UNWIND_IMAGES].interpreter =
			(__u16)anonymous;
	return 0;
}

/*
 * Gives the new image @number the rows that the client has prepared for file @ino of device @dev,
 * if any. Global, so that the verifier checks it once.
 */
__attribute__((noinline)) int unwind_adopt(__u32 slot, __u32 number, __u64 ino, __u32 dev)
{
	void *map = bpf_map_lookup_elem(&unwind_tables, &slot);
	__u32 key = profil_unwind_file_page(ino), at = profil_unwind_file_at(ino);
	const struct unwind_page *page = map ? bpf_map_lookup_elem(map, &key) : NULL;

	if (!page || !number)
		return 0;
	for (int i = 0; i < PROFIL_UNWIND_FILE_TRIES; i++, at++) {
		const struct profil_unwind_file *f = &page->file[at % PROFIL_PAGE_UNWIND_FILES];

		if (f->ino == ino && (!f->dev || f->dev == dev)) {
			adopt(map, number, f);
			return 0;
		}
	}
	return 0;
}

#endif
