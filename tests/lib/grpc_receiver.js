#!/usr/bin/node
// grpc_receiver.js - a receiver of OTLP over gRPC by gRPC's own library, which decodes each request
//
// usage: grpc_receiver.js DIR [CODE...]
//
// The Nth call fails with the Nth CODE, later ones and those with code 0 are taken. DIR/port has the port, DIR/taken a
// line per call that was taken: the sum of its samples' values. @grpc/grpc-js and @grpc/proto-loader are found in NODE_PATH.
const fs = require("fs");
const path = require("path");
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");

const [dir, ...codes] = process.argv.slice(2);
const types = loader.loadSync(path.join(__dirname, "otlp.proto"), { keepCase: true, longs: Number, defaults: true });
const codec = (type) => [types[type].deserialize, types[type].serialize];
const [request] = codec("otlp.ExportProfilesServiceRequest");
const [, response] = codec("otlp.ExportProfilesServiceResponse");
let calls = 0;

function sum(message) {
	return message.resource_profiles.flatMap((r) => r.scope_profiles).flatMap((s) => s.profiles).flatMap((p) => p.samples)
		.flatMap((s) => s.values).reduce((a, b) => a + b, 0);
}

function take(call, answer) {
	const code = Number(codes[calls++] || 0);

	if (code)
		return answer({ code, details: "as told" });
	fs.appendFileSync(`${dir}/taken`, `${sum(call.request)}\n`);
	answer(null, {});
}

const server = new grpc.Server();
server.addService({ Export: { path: "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
	requestStream: false, responseStream: false, requestDeserialize: request, requestSerialize: (x) => x,
	responseSerialize: response, responseDeserialize: (x) => x } }, { Export: take });
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
	if (error)
		throw error;
	fs.writeFileSync(`${dir}/port.new`, String(port));
	fs.renameSync(`${dir}/port.new`, `${dir}/port`);
});
