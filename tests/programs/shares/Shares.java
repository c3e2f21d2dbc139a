// Shares.java - methods with known shares of the CPU time, by the thread's own clock: SECONDS, lines to $TRUTH
// To be run with -XX:CompileCommand=dontinline,Shares::p_* and the same for Shape: an inlined method is part of its caller.
import java.io.FileWriter;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.Deflater;

public class Shares {
	static final Map<String, Long> truth = new LinkedHashMap<>();
	static final byte[] text = new byte[60000];
	static final java.lang.management.ThreadMXBean threads = ManagementFactory.getThreadMXBean();
	static long sink;

	static void p_loop() {
		long t = 0;
		for (int i = 0; i < 1000000; i++) t += i * (long)i % 7;
		sink += t;
	}

	static int p_recursion(int n) {
		return n < 2 ? n : p_recursion(n - 1) + p_recursion(n - 2);
	}

	static long p_depth(int n) {
		if (n > 0) return p_depth(n - 1) + 1;
		long t = 0;
		for (int i = 0; i < 1000000; i++) t += i % 5;
		return t;
	}

	static class Shape {
		int side = 3;
		long p_method(int n) {
			long t = 0;
			for (int i = 1; i < n; i++) t += (i + side) % 11;
			return t;
		}
	}

	static void p_closure() {
		Integer[] a = new Integer[20000];
		for (int i = 0; i < a.length; i++) a[i] = i * 7919 % 251;
		Arrays.sort(a, (x, y) -> x - y);
		sink += a[0];
	}

	static void p_exception() {
		for (int i = 0; i < 3000; i++) {
			try {
				throw new Exception("x");
			} catch (Exception e) {
				sink++;
			}
		}
	}

	static void p_extension() {
		Deflater d = new Deflater(6);
		d.setInput(text);
		d.finish();
		sink += d.deflate(new byte[70000]);
		d.end();
	}

	static void part(String name, Runnable f) {
		long before = threads.getCurrentThreadCpuTime();
		f.run();
		truth.merge(name, threads.getCurrentThreadCpuTime() - before, Long::sum);
	}

	public static void main(String[] arguments) throws Exception {
		long end = System.nanoTime() + (long)(Double.parseDouble(arguments[0]) * 1e9);
		for (int i = 0; i < text.length; i++) text[i] = (byte)(i * 7919 % 251);
		while (System.nanoTime() < end) {
			part("p_loop", () -> p_loop());
			part("p_recursion", () -> sink += p_recursion(24));
			part("p_depth", () -> sink += p_depth(60));
			part("p_method", () -> sink += new Shape().p_method(1000000));
			part("p_closure", () -> p_closure());
			part("p_exception", () -> p_exception());
			part("p_extension", () -> p_extension());
		}
		try (FileWriter out = new FileWriter(System.getenv("TRUTH"), true)) {
			for (Map.Entry<String, Long> e : truth.entrySet()) out.write(e.getKey() + " " + e.getValue() / 1e9 + "\n");
		}
	}
}
