/* kernel_near.c - a first region that begins above its own bin 0, which libprofil never asks for */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "core/scope.h"
#include "core/wire.h"
#include "kernel_ticks.h"

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_near, .init = start, .fini = stop);

/* One counter of @buf for each loop, but for those before loop @first. */
static struct profil_msg_start *loops_from(unsigned int first, const void *cookie,
					   unsigned short buf[LOOPS])
{
	struct profil_msg_start *m = calloc(1, sizeof(*m) + sizeof(m->region[0]));

	cr_assert(m);
	wire_header(&m->h, PROFIL_MSG_START, sizeof(*m), sizeof(m->region[0]), 1);
	m->cookie_addr = (unsigned long)cookie;
	m->width = 2;
	m->cap = 65535;
	m->nregions = 1;
	m->region[0] = (struct profil_msg_region){
		.lo = loop_at(first),
		.x = { .base = loop_at(0),
		       .span = LOOPS * LOOP_BYTES,
		       .mul = 1,
		       .shift = 6,
		       .nbins = LOOPS },
		.addr = (unsigned long)buf,
	};
	_Static_assert(LOOP_BYTES == 1 << 6, "so far is a pc shifted");
	return m;
}

Test(kernel_near, a_region_does_not_count_what_lies_before_it)
{
	static unsigned short buf[LOOPS];
	struct profil_msg_hello hello;
	__cleanup(closep) int sock = client_open(&d, &hello);
	__cleanup(freep) struct profil_msg_start *m = loops_from(8, hello.cookie, buf);
	struct profil_msg_self end = { .cookie_addr = (unsigned long)hello.cookie };
	struct loop_time time = { 0 };

	cr_assert_eq(client_ask(sock, &m->h, NULL), 0);
	loop_for(3, TICKS_SPELL_NS);
	loop_timed(&time, 12, TICKS_SPELL_NS);
	wire_header(&end.h, PROFIL_MSG_STOP, sizeof(end), 0, 0);
	cr_assert_eq(client_ask(sock, &end.h, NULL), 0);
	cr_expect_eq(buf[3], 0, "loop 3, before the region, has %u ticks", buf[3]);
	ticks_expect_spell(buf[12], &time, TICKS_PERIOD_NS);
}
