// cluster.js - uses SECONDS of CPU time in four worker processes: JavaScript, JSON, hashes and compression
'use strict';
const cluster = require('cluster'), crypto = require('crypto'), zlib = require('zlib');
const WORKERS = 4;
const seconds = Number(process.argv[2]);

function text() {
	const words = [];

	for (let i = 0; i < 20000; i++)
		words.push((i * 7919 % 10007).toString(36));
	return words.join(' ');
}

function objects() {
	const list = [];

	for (let i = 0; i < 2000; i++)
		list.push({ key: i * 7919 % 1999, name: 'x' + i, values: [i, i + 1, { a: i }] });
	return list;
}

// Compressions and key derivations run in threads of libuv's pool.
function work(data, list) {
	const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
	const step = () => {
		const { user, system } = process.cpuUsage();

		if (user + system > seconds * 1e6 / WORKERS)
			process.exit(0);
		fib(22);
		list.sort((a, b) => a.key - b.key || a.name.localeCompare(b.name)).reverse();
		JSON.parse(JSON.stringify(list));
		crypto.createHash('sha256').update(data).digest();
		zlib.deflateSync(data);
		data.replace(/[a-f]+/g, word => word.toUpperCase()).split(' ');
		crypto.pbkdf2('a', 'b', 200, 32, 'sha512', () => zlib.gzip(data, () => setImmediate(step)));
	};

	step();
}

if (cluster.isPrimary) {
	for (let i = 0; i < WORKERS; i++)
		cluster.fork();
} else {
	work(text(), objects());
}
