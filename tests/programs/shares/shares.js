// shares.js - functions with known shares of the CPU time, by the process's own clock: SECONDS, lines to $TRUTH
// To be run with --single-threaded, so that the clock is the thread's.
const fs = require("fs"), zlib = require("zlib");

const truth = new Map();
const text = Buffer.from(Array.from({ length: 60000 }, (_, i) => i * 7919 % 251));
const rows = Array.from({ length: 600 }, (_, i) => ({ a: i, b: Array(5).fill(i), c: String(i) }));

function p_loop() {
	let t = 0;
	for (let i = 0; i < 600000; i++) t += i * i % 7;
	return t;
}

function p_recursion(n) {
	return n < 2 ? n : p_recursion(n - 1) + p_recursion(n - 2);
}

function p_depth(n) {
	if (n) return p_depth(n - 1) + 1;
	let t = 0;
	for (let i = 0; i < 600000; i++) t += i & 3;
	return t;
}

class Shape {
	p_method(n) {
		let t = 0;
		for (let i = 0; i < n; i++) t += Math.sqrt(i + this.side);
		return t;
	}
	side = 3;
}

function p_closure() {
	return Array.from({ length: 20000 }, (_, i) => i * 7919 % 251).sort((a, b) => a - b);
}

function p_generator() {
	function* numbers(n) {
		for (let i = 0; i < n; i++) yield i & 3;
	}
	let t = 0;
	for (const i of numbers(60000)) t += i;
	return t;
}

function p_exception() {
	for (let i = 0; i < 2000; i++) {
		try {
			throw new Error("x");
		} catch (e) {
		}
	}
}

function p_extension() {
	return zlib.deflateSync(text, { level: 6 });
}

function p_json() {
	return JSON.parse(JSON.stringify(rows));
}

function clock() {
	const used = process.cpuUsage();
	return used.user + used.system;
}

function part(name, f) {
	const before = clock();
	f();
	truth.set(name, (truth.get(name) || 0) + clock() - before);
}

for (const end = Date.now() + 1000 * process.argv[2]; Date.now() < end;) {
	part("p_loop", () => p_loop());
	part("p_recursion", () => p_recursion(23));
	part("p_depth", () => p_depth(60));
	part("p_method", () => new Shape().p_method(500000));
	part("p_closure", () => p_closure());
	part("p_generator", () => p_generator());
	part("p_exception", () => p_exception());
	part("p_extension", () => p_extension());
	part("p_json", () => p_json());
}
fs.appendFileSync(process.env.TRUTH, [...truth].map(([name, us]) => `${name} ${us / 1e6}\n`).join(""));
