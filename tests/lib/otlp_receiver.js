#!/usr/bin/node
// otlp_receiver.js - a receiver of OTLP over HTTP or gRPC that does as it is told
//
// usage: otlp_receiver.js DIR [BEHAVIOUR...]
//
// Listens on a free port, or the one in DIR/port, and writes its number there. The Nth request gets the Nth
// behaviour, every later one 200. What was taken is in DIR/N.otlp; DIR/log has a line per request. With
// DIR/server.key and DIR/server.pem it speaks HTTPS; with DIR/grpc it speaks gRPC.
//
//	200       takes it
//	partial   takes it, but rejects one profile of it
//	half      takes it, and closes the connection within the answer
//	close     closes the connection without an answer
//	hang      never answers
//	big       answers with 5 MiB
//	wait      429, Retry-After: 1; gRPC: RESOURCE_EXHAUSTED with RetryInfo of 1 s
//	busy      503, with a date 2 s from now in Retry-After; of HTTP only
//	CODE      that status, of HTTP or gRPC
const fs = require("fs");
const http = require("http");
const http2 = require("http2");
const https = require("https");
const zlib = require("zlib");

const [dir, ...behaviours] = process.argv.slice(2);
const partial = Buffer.from("\x0a\x0b\x08\x01\x12\x07too old", "latin1");
let requests = 0;

function answer(res, status, body, headers = {}) {
	res.writeHead(status, { "Content-Type": "application/x-protobuf", ...headers });
	res.end(body);
}

// Notes a request with these headers, and its message if it is taken. Returns what to do.
function note(method, url, headers, encoding, message) {
	const n = ++requests, what = behaviours[n - 1] || "200";

	fs.appendFileSync(`${dir}/log`, `${n} ${what} ${method} ${url} ${headers["content-type"]} ` +
		`${encoding} ${headers["user-agent"]} ${headers.tenant || ""}\n`);
	if (["200", "partial", "half"].includes(what))
		fs.writeFileSync(`${dir}/${String(n).padStart(4, "0")}.otlp`, message);
	return what;
}

function take(req, res, body) {
	const encoding = req.headers["content-encoding"];
	const what = note(req.method, req.url, req.headers, encoding, encoding === "gzip" ? zlib.gunzipSync(body) : body);

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
	case "busy":
		return answer(res, 503, "busy\n", { "Retry-After": new Date(Date.now() + 2000).toUTCString() });
	default:
		return answer(res, Number(what), "no \u001b[31mthanks\n");
	}
}

function frame(message) {
	const head = Buffer.alloc(5);

	head.writeUInt32BE(message.length, 1);
	return Buffer.concat([head, message]);
}

// google.rpc.Status with a RetryInfo of a second
const retry = Buffer.from("\x1a\x2e\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x01", "latin1");

function call(stream, headers, body) {
	const packed = body[0] === 1, message = body.subarray(5), answered = { ":status": 200, "content-type": "application/grpc" };

	if (headers.te !== "trailers" || body.readUInt32BE(1) !== message.length)
		return stream.close(http2.constants.NGHTTP2_PROTOCOL_ERROR);
	const what = note(headers[":method"], headers[":path"], headers, `${headers["grpc-encoding"]}/${packed}`,
		packed ? zlib.gunzipSync(message) : message);
	switch (what) {
	case "200":
	case "partial":
		stream.respond(answered, { waitForTrailers: true });
		stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
		return stream.end(frame(what === "200" ? Buffer.alloc(0) : partial));
	case "half":
		stream.respond(answered);
		return stream.write(frame(Buffer.alloc(0)), () => stream.session.destroy());
	case "close":
		return stream.session.destroy();
	case "hang":
		return;
	case "wait":
		return stream.respond({ ...answered, "grpc-status": "8", "grpc-status-details-bin": retry.toString("base64") },
			{ endStream: true });
	default:
		return stream.respond({ ...answered, "grpc-status": what, "grpc-message": "no thanks" }, { endStream: true });
	}
}

function listen_grpc() {
	const server = http2.createServer();

	server.on("stream", (stream, headers) => {
		const parts = [];

		stream.on("error", () => {});
		stream.on("data", (part) => parts.push(part));
		stream.on("end", () => call(stream, headers, Buffer.concat(parts)));
	});
	return server;
}

function receive(req, res) {
	const parts = [];

	req.on("data", (part) => parts.push(part));
	req.on("end", () => take(req, res, Buffer.concat(parts)));
}

const server = fs.existsSync(`${dir}/grpc`)
	? listen_grpc()
	: fs.existsSync(`${dir}/server.key`)
	? https.createServer({ key: fs.readFileSync(`${dir}/server.key`), cert: fs.readFileSync(`${dir}/server.pem`) }, receive)
	: http.createServer(receive);
const port = fs.existsSync(`${dir}/port`) ? Number(fs.readFileSync(`${dir}/port`)) : 0;
server.listen(port, "127.0.0.1", () => {
	fs.writeFileSync(`${dir}/port.new`, String(server.address().port));
	fs.renameSync(`${dir}/port.new`, `${dir}/port`);
	fs.writeFileSync(`${dir}/ready`, "");
});
