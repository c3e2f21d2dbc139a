#!/usr/bin/node
// otlp_receiver.js - a receiver of OTLP over HTTP that does as it is told
//
// usage: otlp_receiver.js DIR [BEHAVIOUR...]
//
// Listens on a free port, or the one in DIR/port, and writes its number there. The Nth request gets the Nth
// behaviour, every later one 200. What was taken is in DIR/N.otlp; DIR/log has a line per request. With
// DIR/server.key and DIR/server.pem it speaks HTTPS.
//
//	200       takes it
//	partial   takes it, but rejects one profile of it
//	half      takes it, and closes the connection within the answer
//	close     closes the connection without an answer
//	hang      never answers
//	big       answers with 5 MiB
//	wait      429, Retry-After: 1
//	CODE      that status
const fs = require("fs");
const http = require("http");
const https = require("https");
const zlib = require("zlib");

const [dir, ...behaviours] = process.argv.slice(2);
const partial = Buffer.from("\x0a\x0b\x08\x01\x12\x07too old", "latin1");
let requests = 0;

function answer(res, status, body, headers = {}) {
	res.writeHead(status, { "Content-Type": "application/x-protobuf", ...headers });
	res.end(body);
}

function take(req, res, body) {
	const n = ++requests, what = behaviours[n - 1] || "200";
	const raw = req.headers["content-encoding"] === "gzip" ? zlib.gunzipSync(body) : body;

	fs.appendFileSync(`${dir}/log`, `${n} ${what} ${req.method} ${req.url} ${req.headers["content-type"]} ` +
		`${req.headers["content-encoding"]} ${req.headers["user-agent"]} ${req.headers.tenant || ""}\n`);
	if (["200", "partial", "half"].includes(what))
		fs.writeFileSync(`${dir}/${String(n).padStart(4, "0")}.otlp`, raw);
	switch (what) {
	case "200":
		return answer(res, 200, Buffer.alloc(0));
	case "partial":
		return answer(res, 200, partial);
	case "half":
		res.writeHead(200, { "Content-Length": 100 });
		return res.write("half", () => req.socket.destroy());
	case "close":
		return req.socket.destroy();
	case "hang":
		return;
	case "big":
		return answer(res, 200, Buffer.alloc(5 << 20));
	case "wait":
		return answer(res, 429, "too many\n", { "Retry-After": "1" });
	default:
		return answer(res, Number(what), "no \u001b[31mthanks\n");
	}
}

function receive(req, res) {
	const parts = [];

	req.on("data", (part) => parts.push(part));
	req.on("end", () => take(req, res, Buffer.concat(parts)));
}

const server = fs.existsSync(`${dir}/server.key`)
	? https.createServer({ key: fs.readFileSync(`${dir}/server.key`), cert: fs.readFileSync(`${dir}/server.pem`) }, receive)
	: http.createServer(receive);
const port = fs.existsSync(`${dir}/port`) ? Number(fs.readFileSync(`${dir}/port`)) : 0;
server.listen(port, "127.0.0.1", () => {
	fs.writeFileSync(`${dir}/port.new`, String(server.address().port));
	fs.renameSync(`${dir}/port.new`, `${dir}/port`);
	fs.writeFileSync(`${dir}/ready`, "");
});
