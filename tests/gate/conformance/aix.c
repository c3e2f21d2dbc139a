/* aix.c - profil, monitor, monstartup and moncontrol by AIX's manual */
#include <errno.h>
#include <mon.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "facts.h"

#define ALL_AT (TICKS_AT + TICKS_AT_1 + TICKS_AT_4 + TICKS_AT_8)

static HISTCOUNTER buf[32], other[32];
static struct prof end;

static struct prof range(unsigned long low, unsigned long high, void *counters, int bytes,
			 unsigned int scale)
{
	struct prof p;

	p.p_low = (caddr_t)low;
	p.p_high = (caddr_t)high;
	p.p_buff = counters;
	p.p_bufsize = bytes;
	p.p_scale = scale;
	return p;
}

static int rounds_up_to_the_next_short(void)
{
	errno = 77;
	WANT(profil(buf, sizeof(buf), AT, 0xffff) == 0);
	WANT(errno == 77);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[2] == TICKS_AT_4 && buf[4] == TICKS_AT_8);
	WANT(sum(buf, 32) == ALL_AT);
	return 1;
}

static int the_high_bits_of_scale_are_ignored(void)
{
	WANT(profil((char *)buf, sizeof(buf), AT, 0xabcd7fff) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[1] == TICKS_AT_4 && buf[2] == TICKS_AT_8);
	WANT(profil(buf, sizeof(buf), AT, 0x10000) == 0); /* the low 16 bits are 0: off */
	WANT(profil(other, sizeof(other), AT, 0xffff) == 0);
	WANT(sum(other, 32) == ALL_AT);
	return 1;
}

static int scale_2_is_one_counter(void)
{
	WANT(profil(buf, sizeof(buf), AT + 4, 2) == 0);
	WANT(buf[0] == 65535 && sum(buf + 1, 31) == 0);
	WANT(profil(buf, sizeof(buf), AT + 4, 0) == 0);
	buf[0] = 0;
	WANT(profil(buf, sizeof(buf), AFTER, 2) == 0);
	WANT(buf[0] == TICKS_AFTER);
	return 1;
}

static int scales_0_and_1_are_off(void)
{
	WANT(profil(buf, sizeof(buf), AT, 0) == 0);
	WANT(profil(buf, sizeof(buf), AT, 1) == 0);
	WANT(sum(buf, 32) == 0);
	return 1;
}

/* The profile is on, so another buffer is ignored. */
static int a_size_of_0_never_counts(void)
{
	WANT(profil(buf, 0, AT, 0xffff) == 0);
	WANT(profil(other, sizeof(other), AT, 0xffff) == 0);
	WANT(sum(buf, 32) == 0 && sum(other, 32) == 0);
	return 1;
}

static int a_full_counter_stays_full(void)
{
	buf[0] = 65534;
	WANT(profil(buf, sizeof(buf), AT, 0xffff) == 0);
	WANT(buf[0] == 65535);
	return 1;
}

static int on_when_on_has_no_effect(void)
{
	struct prof p[2];

	p[0] = range(AT, AT + 64, other, sizeof(other), 0xffff);
	p[1] = end;
	WANT(profil(buf, sizeof(buf), AT, 0xffff) == 0);
	errno = 77;
	WANT(profil(other, sizeof(other), AT, 0xffff) == 0);
	WANT(profil(page_gone(), 64, AT, 0xffff) == 0);
	WANT(profil(p, -1, 0, 0) == 0);
	WANT(errno == 77);
	WANT(sum(buf, 32) == ALL_AT && sum(other, 32) == 0);
	return 1;
}

static int off_when_off_has_no_effect(void)
{
	WANT(profil(page_gone(), 64, AT, 0) == 0);
	WANT(profil(&end, -1, 0, 0) == 0);
	return 1;
}

static int off_by_the_other_syntax_has_no_effect(void)
{
	struct prof p[2];

	p[0] = range(AT, AT + 64, buf, sizeof(buf), 0xffff);
	p[1] = end;
	WANT(profil(p, -1, 0, 0) == 0);
	WANT(profil(buf, sizeof(buf), AT, 0) == 0);
	WANT(profil(other, sizeof(other), AT, 0xffff) == 0);
	WANT(sum(other, 32) == 0);
	WANT(profil(&end, -1, 0, 0) == 0);
	WANT(profil(other, sizeof(other), AT, 0xffff) == 0);
	WANT(sum(other, 32) == ALL_AT);
	WANT(profil(&end, -1, 0, 0) == 0);
	WANT(profil(p, -1, 0, 0) == 0);
	WANT(sum(buf, 32) == ALL_AT);
	return 1;
}

static int bad_buffers_are_efault_and_leave_it_off(void)
{
	char *page = page_writable();

	WANT_ERRNO(profil((char *)0, 64, AT, 0xffff), EFAULT);
	WANT_ERRNO(profil(page_gone(), 64, AT, 0xffff), EFAULT);
	WANT_ERRNO(profil(page_read_only(), 64, AT, 0xffff), EFAULT);
	WANT_ERRNO(profil(page, PAGE + 2, AT, 0xffff), EFAULT);
	WANT_ERRNO(profil(page, PAGE + 2, AT, 2), EFAULT);
	WANT(profil(buf, sizeof(buf), AT, 0xffff) == 0);
	WANT(sum(buf, 32) == ALL_AT);
	return 1;
}

static int an_array_counts_in_several_ranges(void)
{
	struct prof p[4];

	p[0] = range(AT, AT + 4, buf, sizeof(buf), 0xffff);
	p[1] = range(AT + 4, AT + 16, other, 12, 0x7fff);
	p[2] = range(AFTER, AFTER + 1, other + 6, 2, 2);
	p[3] = range(~0ul, 0, page_gone(), -1, 7); /* only its p_high matters */
	errno = 77;
	WANT(profil(p, -1, 12345, 678) == 0);
	WANT(errno == 77);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && sum(buf, 32) == buf[0]);
	WANT(other[0] == TICKS_AT_4 && other[1] == TICKS_AT_8 && other[6] == TICKS_AFTER);
	WANT(sum(other, 32) == TICKS_AT_4 + TICKS_AT_8 + TICKS_AFTER);
	return 1;
}

static int the_first_range_whose_end_is_above_decides(void)
{
	struct prof p[3];

	p[0] = range(AT + 1, AT + 2, buf, sizeof(buf), 0xffff);
	p[1] = range(AT, AT + 8, other, sizeof(other), 0xffff);
	p[2] = end;
	WANT(profil(p, -1, 0, 0) == 0);
	WANT(buf[0] == TICKS_AT_1);
	WANT(other[0] == 0 && other[2] == TICKS_AT_4 && sum(other, 32) == TICKS_AT_4);
	return 1;
}

static int p_scale_of_minus_1_is_computed(void)
{
	struct prof p[2];

	p[0] = range(AT, AT + 0x200, buf, 64, (unsigned int)-1); /* 64 / 512: 0x2000 */
	p[1] = end;
	WANT(profil(p, -1, 0, 0) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 + TICKS_AT_4);
	WANT(buf[1] == TICKS_AT_8); /* 8 / 16, rounded up */
	WANT(buf[16] == TICKS_AT_100);
	WANT(profil(&end, -1, 0, 0) == 0);
	p[0] = range(AT, AT + 16, other, 64, (unsigned int)-1); /* at most 0xffff */
	WANT(profil(p, -1, 0, 0) == 0);
	WANT(other[2] == TICKS_AT_4 && other[4] == TICKS_AT_8);
	WANT(profil(&end, -1, 0, 0) == 0);
	memset(buf, 0, sizeof(buf));
	p[0] = range(AT + 1, MANY, buf, 2, (unsigned int)-1); /* at least 2 */
	WANT(profil(p, -1, 0, 0) == 0);
	WANT(buf[0] == ALL_AT - TICKS_AT + TICKS_AT_100);
	return 1;
}

static int p_high_must_ascend(void)
{
	struct prof p[3];

	p[0] = range(AT + 16, AT + 32, buf, sizeof(buf), 0xffff);
	p[1] = range(AT, AT + 16, other, sizeof(other), 0xffff);
	p[2] = end;
	WANT_ERRNO(profil(p, -1, 0, 0), EINVAL);
	p[1].p_high = p[0].p_high;
	WANT_ERRNO(profil(p, -1, 0, 0), EINVAL);
	WANT(sum(buf, 32) == 0 && sum(other, 32) == 0);
	return 1;
}

static int bad_pointers_of_an_array_are_efault(void)
{
	struct prof p[3], *last;
	char *page = page_writable();

	WANT_ERRNO(profil((char *)0, -1, 0, 0), EFAULT);
	WANT_ERRNO(profil(page_gone(), -1, 0, 0), EFAULT);
	p[0] = range(AT, AT + 16, buf, sizeof(buf), 0xffff);
	p[1] = range(AT + 16, AT + 32, page_read_only(), 64, 0xffff);
	p[2] = end;
	WANT_ERRNO(profil(p, -1, 0, 0), EFAULT);
	p[1].p_buff = NULL;
	WANT_ERRNO(profil(p, -1, 0, 0), EFAULT);
	WANT(sum(buf, 32) == 0);
	/* even if it would have no effect */
	WANT(profil(buf, sizeof(buf), AT, 0xffff) == 0);
	WANT_ERRNO(profil(page_gone(), -1, 0, 0), EFAULT);
	WANT(profil(buf, sizeof(buf), AT, 0) == 0);
	/* the last entry fills the page, nothing ends the array */
	last = (struct prof *)(page + PAGE - sizeof(*last));
	*last = p[0];
	WANT_ERRNO(profil(last, -1, 0, 0), EFAULT);
	return 1;
}

/* --- monitor(), monstartup(), moncontrol() ---------------------------------------------------- */

static struct {
	caddr_t low;
	caddr_t high;
	size_t functions;
	HISTCOUNTER counter[70000];
} out;

/* Reads a mon.out; returns the number of its counters, or -1. */
static long read_out(const char *path)
{
	FILE *f = fopen(path, "r");
	long n = -1;

	if (!f)
		return -1;
	if (fread(&out, offsetof(__typeof__(out), counter), 1, f) == 1)
		n = (long)fread(out.counter, sizeof(out.counter[0]), 70000, f);
	fclose(f);
	return n;
}

/* Makes a directory for the files of one fact. */
static int in_new_directory(void)
{
	char name[] = "facts.XXXXXX";

	return mkdtemp(name) && chdir(name) == 0;
}

static int monitor_writes_mon_out(void)
{
	WANT(in_new_directory() && unsetenv("PROFDIR") == 0);
	WANT(monitor((caddr_t)AT, (caddr_t)(AT + 16), buf, 32, 0) == 0);
	WANT(buf[2] == TICKS_AT_4);
	WANT(monitor((caddr_t)0) == 0);
	WANT(read_out("mon.out") == 8); /* two bytes each: there is no finer scale */
	WANT(out.low == (caddr_t)AT && out.high == (caddr_t)(AT + 16) && out.functions == 0);
	WANT(!memcmp(out.counter, buf, 16) && sum(out.counter, 8) == ALL_AT);
	return 1;
}

static int monitor_counts_as_coarse_as_its_buffer(void)
{
	WANT(in_new_directory() && unsetenv("PROFDIR") == 0);
	WANT(monitor((caddr_t)AT, (caddr_t)(AT + 0x200), buf, 32, 0) == 0);
	WANT(monitor(0) == 0);
	WANT(read_out(MON_OUT) == 32);
	WANT(out.counter[0] == TICKS_AT + TICKS_AT_1 + TICKS_AT_4);
	WANT(out.counter[16] == TICKS_AT_100);
	return 1;
}

static int profdir_names_the_file(void)
{
	char path[64];

	WANT(in_new_directory() && setenv("PROFDIR", ".", 1) == 0);
	WANT(monitor((caddr_t)AT, (caddr_t)(AT + 16), buf, 32, 0) == 0 && monitor(0) == 0);
	snprintf(path, sizeof(path), "%d.%s", getpid(), program_invocation_short_name);
	WANT(read_out(path) == 8 && access(MON_OUT, F_OK) < 0);
	return 1;
}

static int an_empty_profdir_means_no_profile(void)
{
	WANT(in_new_directory() && setenv("PROFDIR", "", 1) == 0);
	WANT(monitor((caddr_t)AT, (caddr_t)(AT + 16), buf, 32, 0) == 0 && monitor(0) == 0);
	WANT(sum(buf, 32) == 0 && access(MON_OUT, F_OK) < 0);
	return 1;
}

static int monitor_takes_an_array(void)
{
	struct prof p[3];

	p[0] = range(AT, AT + 16, buf, 32, (unsigned int)-1);
	p[1] = range(AFTER, AFTER + 16, other, 32, (unsigned int)-1);
	p[2] = end;
	WANT(in_new_directory() && unsetenv("PROFDIR") == 0);
	WANT(monitor((caddr_t)1, (caddr_t)0, p, -1, 0) == 0);
	WANT(monitor((caddr_t)0) == 0);
	WANT(read_out("mon.out") == 8 && sum(out.counter, 8) == ALL_AT);
	WANT(read_out("mon.out.1") == 8 && out.low == (caddr_t)AFTER);
	WANT(out.counter[0] == TICKS_AFTER);
	return 1;
}

static int monitor_refuses_what_is_no_range(void)
{
	WANT(in_new_directory());
	WANT(monitor((caddr_t)AT, (caddr_t)AT, buf, 32, 0) == -1);
	WANT(monitor((caddr_t)AT, (caddr_t)(AT + 16), page_gone(), 32, 0) == -1);
	WANT(monitor((caddr_t)AT, (caddr_t)(AT + 16), buf, -2, 0) == -1);
	WANT(monitor((caddr_t)0) == 0 && access(MON_OUT, F_OK) < 0);
	return 1;
}

static int moncontrol_returns_what_was(void)
{
	WANT(in_new_directory() && unsetenv("PROFDIR") == 0);
	WANT(moncontrol(0) == 0);
	WANT(moncontrol(1) == -1); /* without a profile to control */
	WANT(monitor((caddr_t)AT, (caddr_t)(AT + 16), buf, 32, 0) == 0);
	WANT(moncontrol(0) == 1 && moncontrol(0) == 0);
	WANT(moncontrol(1) == 0 && moncontrol(1) == 1);
	WANT(sum(buf, 32) == 2 * ALL_AT);
	WANT(access(MON_OUT, F_OK) < 0);
	WANT(moncontrol(0) == 1);
	WANT(monitor(0) == 0 && read_out(MON_OUT) == 8);
	return 1;
}

static int monstartup_takes_a_range_or_several(void)
{
	struct frag frags[3];

	memset(frags, 0, sizeof(frags));
	frags[0].p_low = (caddr_t)AT;
	frags[0].p_high = (caddr_t)(AT + 16);
	frags[1].p_low = (caddr_t)AFTER;
	frags[1].p_high = (caddr_t)(AFTER + 1);
	WANT(in_new_directory() && unsetenv("PROFDIR") == 0);
	WANT(monstartup((caddr_t)AT, (caddr_t)(AT + 0x101)) == 0 && monitor(0) == 0);
	WANT(read_out(MON_OUT) == 129 && sum(out.counter, 129) == ALL_AT + TICKS_AT_100);
	WANT(monstartup((caddr_t)-1, (caddr_t)frags) == 0 && monitor(0) == 0);
	WANT(read_out(MON_OUT) == 8 && sum(out.counter, 8) == ALL_AT);
	WANT(read_out("mon.out.1") == 1 && out.counter[0] == TICKS_AFTER);
	WANT(monstartup((caddr_t)AT, (caddr_t)AT) == -1);
	return 1;
}

static int monstartup_takes_the_whole_program(void)
{
	long n;

	WANT(in_new_directory() && unsetenv("PROFDIR") == 0);
	WANT(monstartup((caddr_t)-1, (caddr_t)0) == 0);
	burn();
	WANT(monitor(0) == 0);
	n = read_out(MON_OUT);
	WANT(n > 0 && out.low <= (caddr_t)(unsigned long)hot);
	WANT(out.high > (caddr_t)(unsigned long)hot);
	WANT(sum(out.counter, (size_t)n) > 0);
	if (!facts_live())
		WANT(out.counter[((unsigned long)hot - (unsigned long)out.low) / 2] ==
		     TICKS_AT_HOT);
	return 1;
}

static const struct fact facts[] = {
	{ "rounds up to the next short", rounds_up_to_the_next_short },
	{ "the high bits of Scale are ignored", the_high_bits_of_scale_are_ignored },
	{ "Scale 2 is one counter", scale_2_is_one_counter },
	{ "Scales 0 and 1 are off", scales_0_and_1_are_off },
	{ "a BufferSize of 0 never counts", a_size_of_0_never_counts },
	{ "a full counter stays full", a_full_counter_stays_full },
	{ "on when on has no effect", on_when_on_has_no_effect },
	{ "off when off has no effect", off_when_off_has_no_effect },
	{ "off by the other syntax has no effect", off_by_the_other_syntax_has_no_effect },
	{ "bad buffers are EFAULT, and leave it off", bad_buffers_are_efault_and_leave_it_off },
	{ "an array counts in several ranges", an_array_counts_in_several_ranges },
	{ "the first range whose end is above decides",
	  the_first_range_whose_end_is_above_decides },
	{ "a p_scale of -1 is computed", p_scale_of_minus_1_is_computed },
	{ "p_high must ascend", p_high_must_ascend },
	{ "bad pointers of an array are EFAULT", bad_pointers_of_an_array_are_efault },
	{ "monitor writes mon.out", monitor_writes_mon_out },
	{ "monitor counts as coarse as its buffer", monitor_counts_as_coarse_as_its_buffer },
	{ "PROFDIR names the file", profdir_names_the_file },
	{ "an empty PROFDIR means no profile", an_empty_profdir_means_no_profile },
	{ "monitor takes an array", monitor_takes_an_array },
	{ "monitor refuses what is no range", monitor_refuses_what_is_no_range },
	{ "moncontrol returns what was", moncontrol_returns_what_was },
	{ "monstartup takes a range, or several", monstartup_takes_a_range_or_several },
	{ "monstartup takes the whole program", monstartup_takes_the_whole_program },
	{ NULL, NULL },
};

int main(void)
{
	return facts_try(facts);
}
