/* prototypes.c - a program that declares profil itself, in one of many ways (OWN), compiles */
#define _DEFAULT_SOURCE /* u_long */

#if defined AIX
#include <mon.h>
#elif defined IRIX
#include <sys/profil.h>
#else
#include <unistd.h>
#endif
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#if OWN == 1
extern int profil(unsigned short *, size_t, unsigned long, unsigned);
#elif OWN == 2
extern int profil(unsigned short *buf, size_t bufsiz, size_t offset, unsigned int scale);
#elif OWN == 3
void profil(unsigned short *buff, unsigned int bufsiz, unsigned int offset, unsigned int scale);
#elif OWN == 4
int profil(char *, size_t, u_long, u_int);
#elif OWN == 5
extern void profil(short *buff, int bufsiz, void (*offset)(void), int scale);
#elif OWN == 6 && !defined __cplusplus
int profil(void *, unsigned, unsigned long, register unsigned), unrelated(int);
#elif OWN == 7
extern int profil(short int buffer[], const int size, const long offset, const int scale);
#elif OWN == 8 /* OpenBSD's */
int profil(void *, size_t, size_t, unsigned long, unsigned int, int);
#elif OWN == 9
extern int profil();
#elif OWN == 10 /* the SVID's */
extern void profil();
#elif OWN == 11
char *unrelated(), *another();
int profil(), more();
#elif OWN == 12
extern int profil(void);
#endif

#if defined DARWIN && OWN < 9
extern int add_profil(char *, size_t, unsigned long, unsigned);
#elif defined DARWIN && OWN > 8
extern int add_profil();
#elif defined AIX && OWN == 1
int monitor(caddr_t, caddr_t, void *, int, int);
#elif defined AIX && OWN > 8 && OWN < 12
int monitor(), monstartup();
#endif
#ifdef __cplusplus
}
#endif

static unsigned short counters[32];
static short shorts[32];

static void function(void)
{
}

static void behind(void)
{
}

int main(void)
{
	int n = 0, scale = 0x4000;

#if OWN == 9 || OWN == 11
	int profil(); /* a second declaration, in the caller's scope */
#endif
	behind();
	profil(counters, sizeof(counters), (unsigned long)function, 0x8000);
	profil((char *)counters, 64, function, scale);
	profil(shorts, sizeof shorts, 0, scale);
	profil(&counters[1], 2 * sizeof(short), 0, sizeof(char) + 1);
	profil(counters, 0, 0, (-1));
	profil((short *)0, 0, 0, ~0);
	n += profil(0, 0, 0, 0);
	n += profil(NULL, 0, 0, 0);
#if defined DARWIN
	n += add_profil(shorts, 64, function, scale);
#elif defined AIX
	n += monitor(function, behind, shorts, 32, n);
	n += monitor(0);
	n += monstartup(function, behind);
#endif
	return n;
}
