/* page_flame.c - the flame graph of a page: of one profile, or of two for comparison */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "page.h"
#include "page_flame.h"
#include "profile/flame_tree.h"
#include "profile/stack_ends.h"
#include "symbols/short_name.h"
#include "base/utf8.h"

#define FLAME_DEPTH 512
#define NAME_COLUMNS 300
#define LABEL_COLUMNS 80
#define NODE_BYTES 24 /* upper estimate of a node, unless counts are very large */

struct flame_writer {
	FILE *out;
	struct flame_tree tree;
	__u32 *order, *first; /* see flame_tree_order() */
	__u32 *depth;	      /* of each node */
	bool *drawn;	      /* likewise */
	__u32 *number;	      /* of each frame: its number in the page + 1; 0: not in the page */
	__u32 *at;   /* of each node: its number in the page, or that of the sum it is in */
	__u32 *rest; /* of each node: the number of the sum of its children */
	__u32 n;     /* numbers so far */
	int sides;
	size_t bytes; /* upper estimate of what is written */
};

static void writer_fini(struct flame_writer *w)
{
	flame_tree_fini(&w->tree);
	free(w->order);
	free(w->first);
	free(w->depth);
	free(w->drawn);
	free(w->number);
	free(w->at);
	free(w->rest);
}

void page_json_string(FILE *out, const char *s)
{
	fputc('"', out);
	while (*s) {
		size_t n = utf8_bytes(s);

		if (!n)
			fputs("\\ufffd", out);
		else if ((unsigned char)*s < ' ' || strchr("\"\\<>&", *s))
			fprintf(out, "\\u%04x", (unsigned char)*s);
		else
			fwrite(s, 1, n, out);
		s += n ? n : 1;
	}
	fputc('"', out);
}

/* The most bytes that page_json_string() writes for @s. */
static size_t string_bytes(const char *s)
{
	size_t n = 2;

	for (size_t columns = 0; *s && columns < NAME_COLUMNS; columns++) {
		size_t bytes = utf8_bytes(s);

		n += !bytes || (unsigned char)*s < ' ' || strchr("\"\\<>&", *s) ? 6 : bytes;
		s += bytes ? bytes : 1;
	}
	return n;
}

struct wide {
	double width;
	__u32 node;
};

static int by_width(const void *a, const void *b)
{
	const struct wide *x = a, *y = b;

	if (x->width != y->width)
		return x->width > y->width ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* A parent is at least as wide as its child and has the lower index, so it is chosen first. */
static int choose(struct flame_writer *w)
{
	const struct call_tree *t = &w->tree.tree;
	__cleanup(freep) struct wide *wide = calloc(t->n + 1, sizeof(*wide));
	size_t room = w->bytes, n = 0;

	if (!wide)
		return -ENOMEM;
	for (__u32 i = CALL_ROOTS; i < t->n; i++) {
		w->depth[i] = w->depth[t->node[i].parent] + 1;
		wide[n++] = (struct wide){ flame_tree_width(&w->tree, i), i };
	}
	if (n)
		qsort(wide, n, sizeof(*wide), by_width);
	for (size_t i = 0; i < n; i++) {
		__u32 frame = (__u32)t->node[wide[i].node].offset;
		const char *name = w->tree.frame[frame].name;
		size_t bytes = NODE_BYTES;

		if (w->depth[wide[i].node] > FLAME_DEPTH)
			continue;
		if (!w->number[frame])
			bytes += string_bytes(name) + 2 * LABEL_COLUMNS;
		if (bytes > room)
			break;
		room -= bytes;
		w->number[frame] = 1;
		w->drawn[wide[i].node] = true;
	}
	return 0;
}

/* Writes a frame: its name, its object and its short name, if any. */
static void frame_write(const struct flame_writer *w, const struct flame_frame *f)
{
	char name[4096], label[4096];

	snprintf(name, sizeof(name), "%s", f->name);
	fit_text(name, sizeof(name), NAME_COLUMNS);
	fit_name(label, sizeof(label), f->name, LABEL_COLUMNS);
	fputc('[', w->out);
	page_json_string(w->out, name);
	fputc(',', w->out);
	page_json_string(w->out, f->object);
	if (strcmp(label, name) != 0) {
		fputc(',', w->out);
		page_json_string(w->out, label);
	}
	fputs("],\n", w->out);
}

/* Adds a last frame for nodes that are too small to draw. */
static __u32 frames_write(struct flame_writer *w)
{
	__u32 n = 0;

	fputs("\"frames\":[", w->out);
	for (size_t i = 0; i < w->tree.nframes; i++) {
		if (!w->number[i])
			continue;
		frame_write(w, &w->tree.frame[i]);
		w->number[i] = ++n;
	}
	fputs("[\"(smaller calls)\",\"\"]],\n", w->out);
	return n;
}

static void node_write(struct flame_writer *w, __u32 depth, __u32 frame, const __u64 *self)
{
	fprintf(w->out, ",%u,%u,%llu", depth, frame, self[0]);
	if (w->sides > 1)
		fprintf(w->out, ",%llu", self[1]);
	w->n++;
}

/* Writes node @at, and the sum of its children that are not drawn. */
static void node_and_rest(struct flame_writer *w, __u32 at, __u32 rest)
{
	const struct flame_tree *t = &w->tree;
	__u64 self[] = { t->self[0][at], t->self[1][at] }, sum[] = { 0, 0 };

	for (__u32 i = w->first[at]; i < w->first[at + 1]; i++) {
		for (int side = 0; side < FLAME_SIDES && !w->drawn[w->order[i]]; side++)
			sum[side] += t->total[side][w->order[i]];
	}
	w->at[at] = w->n;
	if (at >= CALL_ROOTS)
		node_write(w, w->depth[at], w->number[t->tree.node[at].offset] - 1, self);
	w->rest[at] = w->n;
	if (sum[0] + sum[1])
		node_write(w, w->depth[at] + 1, rest, sum);
}

/* Writes callers before callees: the depth determines the caller. */
static int nodes_write(struct flame_writer *w, __u32 rest)
{
	size_t n = w->tree.tree.n, top = 0;
	__cleanup(freep) __u32 *left = calloc(n + 1, sizeof(*left));

	if (!left)
		return -ENOMEM;
	w->n = 1;
	fputs("\"nodes\":[0,0,0", w->out);
	if (w->sides > 1)
		fputs(",0", w->out);
	if (n)
		left[top++] = CALL_WHOLE;
	while (top) {
		__u32 at = left[--top];

		node_and_rest(w, at, rest);
		for (__u32 i = w->first[at + 1]; i-- > w->first[at];) {
			if (w->drawn[w->order[i]])
				left[top++] = w->order[i];
		}
	}
	fputs("]", w->out);
	return 0;
}

static int writer_init(struct flame_writer *w, const struct profile *a, const struct profile *b)
{
	int err = flame_tree_init(&w->tree, a, b);
	size_t n = w->tree.tree.n;

	if (!err)
		err = flame_tree_order(&w->tree, &w->order, &w->first);
	w->depth = calloc(n + 1, sizeof(*w->depth));
	w->drawn = calloc(n + 1, sizeof(*w->drawn));
	w->number = calloc(w->tree.nframes + 1, sizeof(*w->number));
	w->at = calloc(n + 1, sizeof(*w->at));
	w->rest = calloc(n + 1, sizeof(*w->rest));
	if (!w->depth || !w->drawn || !w->number || !w->at || !w->rest)
		return -ENOMEM;
	return err ? err : choose(w);
}

/* The objects whose functions are those of an interpreted language. */
static void languages_write(FILE *out, const struct profile *p)
{
	const char *comma = "";

	fputs(",\"languages\":[", out);
	for (size_t i = 0; i < p->nobjects; i++) {
		if (p->objects[i].kind != OBJECT_INTERPRETED)
			continue;
		fputs(comma, out);
		page_json_string(out, p->objects[i].path);
		comma = ",";
	}
	fputs("]", out);
}

/* Of nodes that are not drawn the numbers are those of sums. Callers come before callees. */
static void number_rest(struct flame_writer *w)
{
	const struct call_tree *t = &w->tree.tree;

	for (size_t i = CALL_ROOTS; i < t->n; i++) {
		__u32 parent = t->node[i].parent;

		if (!w->drawn[i])
			w->at[i] = parent < CALL_ROOTS || w->drawn[parent] ? w->rest[parent]
									   : w->at[parent];
	}
}

/* Writes what each slice has, of @by of the profile's: numbers of nodes and their samples. */
static void slices_write(FILE *out, const struct flame_writer *w, const struct profile *p,
			 size_t by, __u64 *sum)
{
	const struct call_tree *t = &p->calls;
	size_t at = 0;

	fprintf(out, ",\n\"slices\":{\"ns\":%llu,\"of\":[", p->slice_ns * by);
	for (size_t k = 0; k < p->nslices; k += by) {
		size_t first = at;
		const char *comma = "";

		for (; at < t->ntimes && t->time[at].slice < k + by; at++)
			sum[w->at[w->tree.of[t->time[at].node]]] += t->time[at].count;
		fputs(k ? ",\n[" : "[", out);
		for (size_t i = first; i < at; i++) {
			__u32 number = w->at[w->tree.of[t->time[i].node]];

			if (!sum[number])
				continue;
			fprintf(out, "%s%u,%llu", comma, number, sum[number]);
			comma = ",";
			sum[number] = 0;
		}
		fputc(']', out);
	}
	fputs("]}", out);
}

/* Writes the slices, merged until they fit into the page. */
static int times_write(struct flame_writer *w, const struct profile *p)
{
	__cleanup(freep) __u64 *sum = calloc(w->n + 1, sizeof(*sum));
	__cleanup(freep) char *text = NULL;
	size_t n = 0;

	if (!sum)
		return -ENOMEM;
	number_rest(w);
	for (size_t by = 1; !text || (n > PAGE_SLICES_BYTES && by < p->nslices); by *= 2) {
		FILE *out;

		free(steal(text));
		out = open_memstream(&text, &n);
		if (!out)
			return -ENOMEM;
		slices_write(out, w, p, by, sum);
		if (fclose(out))
			return -ENOMEM;
	}
	fwrite(text, 1, n, w->out);
	return 0;
}

static int data_write(struct flame_writer *w, const struct profile *a, const struct profile *b)
{
	__u32 program, rest;
	int err = profile_main_object(&program, a);

	if (err < 0)
		return err;
	fprintf(w->out, "<script type=\"application/json\" class=\"flame-data\">{\"sides\":%d,",
		w->sides);
	fprintf(w->out, "\"sampled\":%s,",
		profile_is_off_cpu(a) || (b && profile_is_off_cpu(b)) ? "false" : "true");
	fprintf(w->out, "\"tick_ns\":[%llu,%llu],\"program\":", a->tick_ns, b ? b->tick_ns : 0);
	page_json_string(w->out,
			 program < a->nobjects ? profile_base_name(a->objects[program].path) : "");
	languages_write(w->out, a);
	fputs(",\n", w->out);
	rest = frames_write(w);
	err = nodes_write(w, rest);
	if (!err && !b && a->calls.ntimes)
		err = times_write(w, a);
	fputs("}</script>\n", w->out);
	return err;
}

int page_flame(FILE *out, const struct profile *a, const struct profile *b, size_t bytes)
{
	struct flame_writer w = { .out = out, .sides = b ? 2 : 1, .bytes = bytes };
	int err = writer_init(&w, a, b);

	if (!err) {
		fputs("<section class=\"flame\"><h2>Flame graph</h2>\n"
		      "<noscript><p>Scripts draw it; 'profilctl report --tree' prints the same "
		      "calls as text.</p></noscript>\n",
		      out);
		err = data_write(&w, a, b);
		fputs("</section>\n", out);
	}
	writer_fini(&w);
	return err;
}

static void cut_write(FILE *out, const struct profile *p, const struct stack_ends *e,
		      const struct stack_cut *cut)
{
	const struct object *o = &p->objects[cut->object];
	const char *cure = stack_end_cure(cut->end, o);

	fprintf(out, "<li>%.2f %% cut in ", stack_ends_percent(e, cut->samples));
	page_text(out, profile_base_name(o->path));
	fprintf(out, ": %s%s%s</li>\n", stack_end_text(cut->end), cure ? "; " : "",
		cure ? cure : "");
}

void page_stack_ends(FILE *out, const struct profile *p, const char *what)
{
	struct stack_ends e;

	if (!stack_ends_init(&e, p)) {
		fprintf(out, "<p class=\"ends\">%s%.2f %% of the stacks %s</p>\n<ul>\n", what,
			stack_ends_percent(&e, e.ended[CALL_WHOLE]), stack_end_text(CALL_WHOLE));
		for (size_t i = 0; i < e.nshown; i++)
			cut_write(out, p, &e, &e.cut[i]);
		if (e.without)
			fprintf(out, "<li>%llu samples have no stack</li>\n", e.without);
		if (p->node_full)
			fprintf(out,
				"<li>%llu stacks lack their innermost frames: no room for more "
				"call paths</li>\n",
				p->node_full);
		fputs("</ul>\n", out);
	}
	stack_ends_fini(&e);
}
