/* seeds.c - runs a fuzzer over seed files when it is built without libFuzzer
 *
 * usage: FUZZER FILE...
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fuzz.h"

static int run(const char *path)
{
	__cleanup(fclosep) FILE *f = fopen(path, "re");
	__cleanup(freep) uint8_t *bytes = malloc(1 << 20);
	size_t n;

	if (!f || !bytes) {
		perror(path);
		return 1;
	}
	n = fread(bytes, 1, 1 << 20, f);
	return LLVMFuzzerTestOneInput(bytes, n);
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= run(argv[i]);
	return failed;
}
