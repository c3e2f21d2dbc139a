/* kinds.c - lines that are executed a known number of times */
/* clang-format off */
__attribute__((noinline)) int kind(int x)
{
	if (x % 16 == 0)
		return 3;
	if (x % 2)
		return 1;
	return 2;
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 100; i++)
		sum += kind(i);
	return sum != 7 * 3 + 50 + 43 * 2;
}
