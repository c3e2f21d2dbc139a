/* kallsyms.c - the functions of the running kernel and its modules */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "kallsyms.h"
#include "base/grow.h"

/*
 * "ADDRESS TYPE NAME", followed by "<tab>[MODULE]" in modules. Skips symbols that are not
 * functions.
 */
static int read_line(struct kallsyms *k, char *line)
{
	struct kernel_function f = { 0 }, *more;
	char *end, *tab;

	f.address = strtoull(line, &end, 16);
	if (end == line || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
		return 0;
	f.local = end[1] == 't';
	f.weak = end[1] == 'w' || end[1] == 'W';
	end[strcspn(end, "\n")] = '\0';
	/* Arm's mapping symbols $x and $d are not functions. */
	if (!f.address || !end[3] || end[3] == '$')
		return 0;
	tab = strchr(end + 3, '\t');
	if (tab)
		*tab = ' ';
	f.name = strdup(end + 3);
	more = f.name ? grow(k->function, k->n, sizeof(f)) : NULL;
	if (!more) {
		free(f.name);
		return -ENOMEM;
	}
	k->function = more;
	more[k->n++] = f;
	return 0;
}

int kallsyms_read(struct kallsyms *k, FILE *in)
{
	__cleanup(freep) char *line = NULL;
	size_t room = 0;
	int err = 0;

	*k = (struct kallsyms){ 0 };
	while (!err && getline(&line, &room, in) > 0)
		err = read_line(k, line);
	if (err < 0)
		return err;
	return k->n ? 0 : -EPERM;
}

void kallsyms_fini(struct kallsyms *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->function[i].name);
	free(k->function);
	*k = (struct kallsyms){ 0 };
}
