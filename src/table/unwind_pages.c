/* unwind_pages.c - the map of unwind rules: writing rows into it */
#include <string.h>

#include "base/grow.h"
#include "core/unwind_maps.h"
#include "symbols/proc/file_account.h"

#include "unwind_pages.h"

void *unwind_page_at(const struct unwind_feeder *f, size_t page)
{
	return f->map + page * PROFIL_UNWIND_PAGE;
}

struct profil_unwind_image *unwind_entry_of(const struct unwind_feeder *f, __u32 image)
{
	struct profil_unwind_image *first = unwind_page_at(f, PROFIL_UNWIND_IMAGE_PAGE);

	return first + (image - 1);
}

struct unwind_share *unwind_share_of(struct unwind_feeder *f, int fd)
{
	const struct file_account *account = f->shared && fd >= 0 ? file_account_of(fd) : NULL;
	struct unwind_share *grown;

	if (!account)
		return NULL;
	for (size_t i = 0; i < f->nshares; i++) {
		if (f->shares[i].account == account)
			return &f->shares[i];
	}
	grown = grow(f->shares, f->nshares, sizeof(*grown));
	if (!grown)
		return NULL;
	f->shares = grown;
	f->shares[f->nshares] = (struct unwind_share){ .account = account };
	return &f->shares[f->nshares++];
}

bool unwind_is_fair(size_t all, size_t used, size_t own, size_t more)
{
	return own + more <= (all - (used - own)) / 2;
}

static size_t pages_of(const struct unwind_table *t)
{
	return (t->n + PROFIL_PAGE_ROWS - 1) / PROFIL_PAGE_ROWS;
}

bool unwind_area_take(struct unwind_feeder *f, struct unwind_area *a, size_t pages,
		      struct unwind_share *share)
{
	size_t firsts = (pages + PROFIL_PAGE_FIRSTS - 1) / PROFIL_PAGE_FIRSTS;

	if (firsts > PROFIL_FIRST_PAGES_MAX || f->used + firsts + pages > f->pages ||
	    (share && !unwind_is_fair(f->pages, f->used, share->pages, firsts + pages)))
		return false;
	*a = (struct unwind_area){ (__u32)f->used, (__u32)(f->used + firsts), (__u32)pages };
	f->used += firsts + pages;
	if (share)
		share->pages += firsts + pages;
	return true;
}

bool unwind_area_fill(struct unwind_feeder *f, const struct unwind_area *a,
		      struct profil_unwind_image *at, const struct unwind_table *t)
{
	__u32 *first = unwind_page_at(f, a->first_page);
	size_t pages = pages_of(t);

	if (!pages || pages > a->pages)
		return false;
	*at = (struct profil_unwind_image){ .looked = PROFIL_LOOKED };
	at->first_page = a->first_page;
	at->row_page = a->row_page;
	memset(unwind_page_at(f, at->row_page + pages - 1), 0xff, PROFIL_UNWIND_PAGE);
	memcpy(unwind_page_at(f, at->row_page), t->row, t->n * sizeof(*t->row));
	for (size_t i = 0; i < pages; i++)
		first[i] = t->row[i * PROFIL_PAGE_ROWS].offset;
	at->pages = (__u32)pages;
	return true;
}

bool unwind_put_rows(struct unwind_feeder *f, struct profil_unwind_image *at,
		     const struct unwind_table *t, struct unwind_share *share)
{
	size_t pages = pages_of(t);
	struct unwind_area a;

	*at = (struct profil_unwind_image){ .looked = PROFIL_LOOKED };
	if (!pages || !f->rows)
		return false;
	if (!unwind_area_take(f, &a, pages, share)) {
		at->looked = PROFIL_LOOKED_NO_ROOM;
		f->full = true;
		return false;
	}
	return unwind_area_fill(f, &a, at, t);
}
