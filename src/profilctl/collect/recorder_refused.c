/* recorder_refused.c - why the daemon has refused an attachment */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#include "profilctl/util/exit_status.h"
#include "recorder.h"

int recorder_machine_denied(const struct options *o)
{
	log_err("the machine's profile: permission denied (%srun as root, or join group profil; "
		"'profilctl record -a' and 'top -a' profile your own processes)",
		o->rate_hz ? "take a lower rate, " : "");
	return CTL_DENIED;
}

int recorder_rate_refused(const struct options *o)
{
	double rate_hz = options_rate(o) ?: OPTIONS_RATE_DEFAULT;

	if (o->clock && !strcmp(o->clock, "tick"))
		log_err("the tick does not count at %.6g Hz: its rate is the kernel's CONFIG_HZ "
			"(leave out --clock tick, or -F)",
			rate_hz);
	else
		log_err("profild's clock does not count at %.6g Hz; take a lower rate", rate_hz);
	return CTL_USAGE;
}

int recorder_refused(const struct recorder *r, int err)
{
	const struct options *o = r->options;
	bool of_rate = o->rate_hz || o->clock_by_event;

	if (r->profile->event && (err == -EINVAL || err == -EOPNOTSUPP)) {
		log_err("profild cannot count event %s", o->event);
		return CTL_ERROR;
	}
	switch (err) {
	case -ENODATA:
		log_err("profild has ended");
		return CTL_ERROR;
	case -EACCES:
	case -EPERM:
		if (r->machine)
			return recorder_machine_denied(o);
		log_err("profild does not let you observe this%s: permission denied (%s)",
			of_rate ? " at that rate" : "",
			of_rate ? "take a lower rate, or run as root"
				: "run as root, or join group profil");
		return CTL_DENIED;
	case -ERANGE:
		return recorder_rate_refused(o);
	case -EINVAL:
		if (!options_rate(o))
			break;
		log_err("profild does not count at %.6g Hz; take a lower rate", options_rate(o));
		return CTL_USAGE;
	case -EOPNOTSUPP:
		log_err("profild's clock cannot do this; see 'profilctl doctor'");
		return CTL_ERROR;
	case -ENOMEM:
	case -EAGAIN:
	case -EDQUOT:
		log_err("profild has no room for another attachment now%s; see 'profilctl list'",
			r->asked.scope == PROFIL_SCOPE_PROCESSES
				? ""
				: ": each user but root may have two that select processes");
		return CTL_ERROR;
	}
	log_err("profild cannot observe: %s", strerror(-err));
	return CTL_ERROR;
}
