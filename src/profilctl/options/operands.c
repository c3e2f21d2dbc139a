/* operands.c - the operands of a command line */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "options.h"
#include "base/grow.h"

int options_add(struct options *o, char *operand)
{
	/* With room for a NULL at the end. */
	char **argv = grow(o->argv, (size_t)o->argc + 1, sizeof(*argv));

	if (!argv)
		return -ENOMEM;
	o->argv = argv;
	o->argv[o->argc++] = operand;
	o->argv[o->argc] = NULL;
	return 0;
}

void options_fini(struct options *o)
{
	free(o->argv);
	free(o->config);
	o->argv = NULL;
	o->config = NULL;
}

const char *options_stack_mode(const struct options *o, const char *operand)
{
	static const struct {
		const char *mode, *option;
	} modes[] = { { "auto", "--call-graph=auto" },
		      { "cfi", "--call-graph=cfi" },
		      { "fp", "--call-graph=fp" },
		      { "dwarf", "--call-graph=cfi, or just -g" },
		      { "lbr", "just -g" } };
	size_t n = strcspn(operand, ",");

	for (size_t i = 0; o->stack_mode && i < sizeof(modes) / sizeof(*modes); i++) {
		if (strlen(modes[i].mode) == n && !strncmp(operand, modes[i].mode, n))
			return modes[i].option;
	}
	return NULL;
}

int options_pid(pid_t *out, const char *arg)
{
	unsigned long pid;
	char *end;

	errno = 0;
	pid = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || *arg < '0' || *arg > '9' || !pid || pid > INT32_MAX) {
		if (isalpha((unsigned char)*arg))
			log_err("'%s' is not a process id; --comm %s selects processes by name",
				arg, arg);
		else if (*arg == '/')
			log_err("'%s' is not a process id; --exe %s selects processes by program",
				arg, arg);
		else
			log_err("'%s' is not a process id", arg);
		return -EINVAL;
	}
	*out = (pid_t)pid;
	return 0;
}
