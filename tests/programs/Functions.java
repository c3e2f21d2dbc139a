// Functions.java - a Java program whose outer() calls method(), recursive(), inner()
public class Functions {
	static long inner(int n) {
		long total = 0;
		for (int i = 0; i < n; i++)
			total += (long)i * i % 7;
		return total;
	}

	static long recursive(int depth) {
		return depth > 0 ? recursive(depth - 1) + 1 : inner(20000);
	}

	long method() {
		return recursive(5);
	}

	static void outer() {
		long end = System.nanoTime() + 2000000000L;
		Functions functions = new Functions();

		while (System.nanoTime() < end)
			functions.method();
	}

	public static void main(String[] arguments) {
		outer();
	}
}
