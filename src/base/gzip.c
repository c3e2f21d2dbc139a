/* gzip.c - writes and reads gzip files */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "cleanup.h"

#include "gzip.h"

#define WINDOW_GZIP (15 + 16) /* + 16 selects gzip's header instead of zlib's */
#define ROOM_MIN (1u << 16)

int gzip_write(FILE *out, const char *bytes, size_t n)
{
	unsigned char buf[16384] = { 0 };
	z_stream z = { .next_in = (unsigned char *)bytes, .avail_in = (uInt)n };
	int ret, err = 0;

	if (n > UINT32_MAX || deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_GZIP, 8,
					   Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		ret = deflate(&z, Z_FINISH);
		if (fwrite(buf, 1, sizeof(buf) - z.avail_out, out) < sizeof(buf) - z.avail_out)
			err = errno ? -errno : -EIO;
	} while (ret == Z_OK && !err);
	deflateEnd(&z);
	return err || ret == Z_STREAM_END ? err : -EIO;
}

bool gzip_is(const char *bytes, size_t n)
{
	return n >= 2 && !memcmp(bytes, "\x1f\x8b", 2);
}

/* Decompresses @z into *@out, which grows up to @max bytes and a NUL. */
static int inflate_all(char **out, size_t *n, z_stream *z, size_t max)
{
	size_t room = 0;
	int ret = Z_OK;

	for (*n = 0; ret == Z_OK; *n = room - 1 - z->avail_out) {
		char *more;

		if (room > max)
			return -EFBIG;
		room = room ? 2 * room : ROOM_MIN;
		more = realloc(*out, room);
		if (!more)
			return -ENOMEM;
		*out = more;
		z->next_out = (unsigned char *)more + *n;
		z->avail_out = (uInt)(room - 1 - *n);
		ret = inflate(z, Z_NO_FLUSH);
	}
	if (ret != Z_STREAM_END)
		return ret == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
	(*out)[*n] = '\0';
	return 0;
}

int gzip_read(char **out, size_t *out_n, const char *bytes, size_t n, size_t max)
{
	__cleanup(freep) char *text = NULL;
	z_stream z = { .next_in = (unsigned char *)bytes, .avail_in = (uInt)n };
	int err;

	if (n > UINT32_MAX || max > UINT32_MAX / 2)
		return -EFBIG;
	if (inflateInit2(&z, WINDOW_GZIP) != Z_OK)
		return -ENOMEM;
	err = inflate_all(&text, out_n, &z, max);
	inflateEnd(&z);
	if (!err)
		*out = steal(text);
	return err;
}
