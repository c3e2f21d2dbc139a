/* calls.c - the arguments that historical programs pass compile in every C and C++ */
#if defined AIX
#include <mon.h>
#elif defined IRIX
#include <sys/profil.h>
#else
#include <unistd.h>
#endif

/* Including the headers again, in either order, declares nothing a second time. */
#include <sys/time.h>
#include <unistd.h>

static char chars[64];
static short shorts[32];
static unsigned short counters[32];

static int function(void)
{
	return 0;
}

/* A program's own K&R declaration, which C++ and C23 do not have. */
#if !defined __cplusplus && !(defined __STDC_VERSION__ && __STDC_VERSION__ > 201710L)
extern int profil();
#endif

static int buffers_and_offsets(void)
{
	int n = 0;

	n += profil(chars, sizeof(chars), 0, 0x8000);
	n += profil((char *)shorts, sizeof(shorts), function, 0177777);
	n += profil(shorts, 64, (unsigned long)function, 0x8000);
	n += profil(counters, sizeof counters, chars, 0xffff);
	n += profil((char *)0, 0, (char *)0, 0);
	n += profil(0, 0, 0, 0);
	return n;
}

/* A pointer to the function points to the dialect's function. */
static int called_by_pointer(void)
{
	return sizeof(profil(counters, 0, 0, 0)) == sizeof(int) && &profil != 0;
}

static int others(void)
{
	int n = 0;
#if defined AIX
	static struct prof ranges[2];

	n += profil(ranges, -1, 0, 0);
	n += monitor(function, others, counters, 32, 0);
	n += monitor((int (*)(void))2, (caddr_t)(unsigned long)function, shorts, 32, 10);
	n += monitor((caddr_t)1, (caddr_t)0, ranges, -1, 0);
	n += monitor((caddr_t)0);
	n += monitor(0);
	n += monstartup((caddr_t)-1, (caddr_t)0);
	n += monstartup(function, others);
	n += moncontrol(0);
	_mondata.prof_type = _PROF_TYPE_IS_P;
#elif defined IRIX
	static struct prof region;
	struct timeval tick;

	region.pr_base = counters;
	region.pr_off = (__psunsigned_t)function;
	n += sprofil(&region, 1, &tick, PROF_UINT | PROF_FAST);
	n += sprofil(&region, PROFIL_MAX, 0, PROF_USHORT);
#elif defined DARWIN
	n += add_profil(chars, sizeof(chars), function, 0x10000);
	n += add_profil(shorts, 64, 0, 0);
#elif defined SOLARIS
	uintptr_t pcs[4];

	n += (int)pcsample(pcs, 4);
#endif
	return n;
}

int main(void)
{
	return buffers_and_offsets() + called_by_pointer() + others();
}
