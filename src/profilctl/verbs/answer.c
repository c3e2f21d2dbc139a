/* answer.c - requests of list and status to the daemon, and their answers */
#include <errno.h>
#include <string.h>

#include "base/log.h"

#include "answer.h"
#include "profilctl/collect/daemon_spawn.h"
#include "verb.h"

int answer_get(struct client **c, const struct options *o, unsigned int type,
	       const struct profil_header **answer)
{
	int status, err;

	*c = NULL;
	if (o->argc) {
		log_err("%s: takes no arguments", o->verb);
		return CTL_USAGE;
	}
	status = daemon_connect(c, o);
	if (status)
		return status;
	err = client_ask(*c, type, answer);
	if (!err)
		return CTL_OK;
	log_err("profild does not answer %s: %s", o->verb, strerror(-err));
	return CTL_ERROR;
}

int answer_misunderstood(const struct options *o)
{
	log_err("unexpected reply to %s: profild and profilctl are of different versions", o->verb);
	return CTL_ERROR;
}

int answer_json(json_t *root)
{
	int err = root ? json_dumpf(root, stdout, JSON_COMPACT) : -1;

	json_decref(root);
	if (err < 0) {
		log_err("cannot write JSON: %s", root ? "is stdout full?" : strerror(ENOMEM));
		return CTL_ERROR;
	}
	putchar('\n');
	return CTL_OK;
}
