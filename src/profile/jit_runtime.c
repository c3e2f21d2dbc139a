/* jit_runtime.c - runtimes that compile code at run time, and how each is made to describe it */
#include <string.h>

#include "jit_runtime.h"

const struct jit_runtime jit_runtimes[] = {
	{ .name = "node",
	  .names_cure = "node --perf-basic-prof, or NODE_OPTIONS=--perf-basic-prof",
	  .words = { "--perf-basic-prof", "--perf-prof" },
	  .libraries = { "libnode.so" } },
	{ .name = "java",
	  .names_cure = "'jcmd PID Compiler.perfmap' while it runs, or java -XX:+DumpPerfMapAtExit",
	  .stacks_cure = "java -XX:+PreserveFramePointer",
	  .words = { "DumpPerfMapAtExit", "perf-map-agent", "perfasync" },
	  .libraries = { "libjvm.so" } },
	{ .name = "python",
	  .names_cure = "python3 -X perf, or PYTHONPERFSUPPORT=1",
	  .stacks_cure = "a Python that was built with CFLAGS=-fno-omit-frame-pointer",
	  .words = { "PYTHONPERFSUPPORT=1", "-Xperf", "-X perf" },
	  .libraries = { "libpython3.1" } },
	{ .name = "dotnet",
	  .names_cure = "DOTNET_PerfMapEnabled=1",
	  .words = { "PerfMapEnabled=" },
	  .libraries = { "libcoreclr.so" } },
	{ .name = "erlang",
	  .names_cure = "erl +JPperf true, or ERL_FLAGS='+JPperf true'",
	  .words = { "JPperf true", "JPperf map" } },
};

const size_t jit_nruntimes = sizeof(jit_runtimes) / sizeof(*jit_runtimes);

const struct jit_runtime *jit_runtime_find(const char *name)
{
	for (size_t i = 0; i < jit_nruntimes; i++) {
		if (!strcmp(name, jit_runtimes[i].name))
			return &jit_runtimes[i];
	}
	return NULL;
}
