/* hex.c - bytes as hexadecimal digits */
#include <criterion/criterion.h>

#include "base/hex.h"

Test(ctl_hex, writes_two_digits_for_each_byte)
{
	char out[9];

	hex_write(out, sizeof(out), "\x00\x9a\xff\x10", 4);
	cr_assert_str_eq(out, "009aff10");
	hex_write(out, sizeof(out), "", 0);
	cr_assert_str_eq(out, "");
}

Test(ctl_hex, leaves_out_bytes_without_room)
{
	char out[6] = "xxxxx";

	hex_write(out, 4, "\x12\x34\x56", 3);
	cr_assert_str_eq(out, "12");
	cr_assert_eq(out[4], 'x');
}
