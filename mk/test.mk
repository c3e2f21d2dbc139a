# test.mk - tests, fuzzers, demonstration and benchmark
UNIT = $(wildcard tests/gate/unit/*/*.c tests/gate/unit/*/*/*.c) tests/vectors/vectors.c
GATE = $(wildcard tests/gate/system/*/*.c)
NIGHT = $(wildcard tests/night/system/*/*.c)
# What the hostile programs share; the rest of tests/lib is what the Criterion suites share.
HOSTILE_LIB = tests/lib/hostile.c tests/lib/fuse.c
SYSTEM_LIB = $(filter-out $(HOSTILE_LIB),$(wildcard tests/lib/*.c)) tests/vectors/vectors.c tests/vectors/ways.c \
	src/symbols/proc/mounts.c $(CORE)
# Make builds these; the others in the folder are compiled by the tests, each with its own options.
PROGRAMS = $(patsubst %,tests/programs/%.c,cost crowd forkstorm image served split threads)
PORTED = tests/programs/crowd.c tests/programs/served.c # linked with libprofil only
RUN = BUILD=$(B) SAN=$(SAN) CC="$(filter-out ccache,$(CC))" tests/run.sh

.PHONY: tests fuzzers quick style test test-run nightly nightly-run demo demo-run bench fuzz fuzz-build coverage

# The unit tests are linked with everything but the main()s, as archives, so that only what a test
# refers to is linked in.
$(B)/tests/%.a:
	@mkdir -p $(@D)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/tests/profild.a: $(call objs,$(filter-out %/main.c,$(PROFILD)) $(CORE))
$(B)/tests/profilctl.a: $(call objs,$(filter-out %/main.c,$(PROFILCTL)))
$(B)/tests/profil-http.a: $(call objs,$(filter-out %/main.c,$(PROFIL_HTTP)))
$(B)/tests/libprofil.a: $(call pics,$(LIBPROFIL))

UNIT_PARTS = $(B)/tests/profild.a $(B)/tests/profilctl.a $(B)/tests/profil-http.a $(B)/library.a $(B)/tests/libprofil.a

$(call objs,$(filter tests/%,$(UNIT) $(GATE) $(NIGHT) $(SYSTEM_LIB))): | $(B)/tests.ok

$(B)/tests/unit-tests: $(call objs,$(UNIT)) $(UNIT_PARTS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(UNIT_PARTS) -Wl,--end-group \
		$(call libs,$(PROFILD_PKGS) $(PROFILCTL_PKGS) criterion) $(PROFILCTL_LIBS) -pthread

# Synthetic samples: the tests of the kernel's counting code, on the maps of a running daemon.
SYNTHETIC = $(filter-out %.bpf.c,$(wildcard tests/gate/kernel/*.c))

$(call objs,$(SYNTHETIC)): $(B)/tests/gate/kernel/synth.skel.h | $(B)/tests.ok

$(B)/tests/kernel-tests: $(call objs,$(SYNTHETIC))
$(B)/tests/gate-tests: $(call objs,$(GATE))
$(B)/tests/night-tests: $(call objs,$(NIGHT))
$(B)/tests/kernel-tests $(B)/tests/gate-tests $(B)/tests/night-tests: $(call objs,$(SYSTEM_LIB)) $(B)/tests/libprofil.a
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(call libs,criterion libbpf) -pthread

# Programs to be profiled: X calls libc's profil, or libprofil's by LD_PRELOAD; X.linked is linked with libprofil.
$(B)/tests/programs/%: tests/programs/%.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ -o $@ $< $(ALL_LDFLAGS) -pthread

$(B)/tests/programs/%.linked: tests/programs/%.c $(B)/libprofil.so $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ -o $@ $< $(ALL_LDFLAGS) -pthread \
		-L$(B) -lprofil -Wl,-rpath,$(abspath $(B))

# For LD_PRELOAD.
PRELOADED = failing no_load timeshift

$(B)/tests/programs/%.so: tests/programs/%.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -shared -MF $@.d -MT $@ -o $@ $<

# Hostile programs, each with what they share.
HOSTILE = $(patsubst %.c,$(B)/%,$(wildcard tests/night/hostile/*.c))

$(HOSTILE): %: %.o $(call objs,$(HOSTILE_LIB) $(CORE)) $(B)/libprofil.a
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) -pthread

programs = $(patsubst %.c,$(B)/%,$(filter-out $(PORTED),$(PROGRAMS))) $(patsubst %.c,$(B)/%.linked,$(PROGRAMS))

# Each folder of seeds has a fuzzer. It is linked with libFuzzer or, without clang, with a main() that
# runs it over the seeds.
FUZZERS = $(patsubst tests/night/fuzz/corpus/%,$(B)/tests/night/fuzz/%,$(wildcard tests/night/fuzz/corpus/*))
FUZZ_MAIN = $(B)/tests/night/fuzz/seeds.o

# profil-http's names are also the daemon's.
FUZZ_PARTS = $(UNIT_PARTS)
$(B)/tests/night/fuzz/http: FUZZ_PARTS = $(filter-out %/profild.a,$(UNIT_PARTS))

$(FUZZERS): %: %.o $(B)/tests/night/fuzz/fuzz.o $(FUZZ_MAIN) $(UNIT_PARTS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(FUZZ_LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(FUZZ_PARTS) -Wl,--end-group \
		$(call libs,$(PROFILD_PKGS) $(PROFILCTL_PKGS) $(PROFIL_HTTP_PKGS)) $(PROFILCTL_LIBS) -pthread

fuzzers: $(FUZZERS)

# The same by clang, with libFuzzer and sanitizers. gcc's build gives the warnings.
FUZZ_S ?= 60
FUZZ_SAN = address,undefined
FUZZ_CFLAGS = -w -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all \
	-fsanitize=fuzzer-no-link,$(FUZZ_SAN)

fuzz-build:
	+$(Q)$(SUBMAKE) B=build/fuzz CC=$(CLANG) SAN= FUZZ_MAIN= FUZZ_LDFLAGS=-fsanitize=fuzzer \
		CFLAGS='$(FUZZ_CFLAGS)' LDFLAGS=-fsanitize=$(FUZZ_SAN) fuzzers

fuzz:
	$(Q)FUZZ_S=$(FUZZ_S) tests/run.sh tests/night/fuzz/run.sh

coverage:
	$(Q)tests/run.sh replay:tests/night/care/coverage.sh

tests: $(addprefix $(B)/tests/,unit-tests gate-tests kernel-tests night-tests) $(programs) $(FUZZERS) $(HOSTILE) \
	$(PRELOADED:%=$(B)/tests/programs/%.so)

quick: all tests
	$(Q)$(RUN) quick

style:
	$(Q)tests/gate/style.sh

# Make looks for the tools when it starts, so what needs those that "deps" installs runs in a make
# of its own.
test: DEPS = demo build quick test
nightly: DEPS = demo build quick test night deb vm vm-arm64
test: SAYS = test: installs the packages that are missing, builds, and runs the gate for about 7 minutes on two CPUs
nightly: SAYS = nightly: installs the packages that are missing, builds, and runs for hours
test nightly: deps
	+$(Q)$(SUBMAKE) $@-run

test-run: all tests
	$(Q)$(RUN) gate

# SUITES="SUITE...": a part of the night, as tests/run.sh --where names it. Some take the packages.
OF_PACKAGES = tests/night/packages.sh tests/night/vm/run.sh
nightly-run: all tests $(if $(SAN),,$(if $(filter $(OF_PACKAGES),$(or $(SUITES),$(OF_PACKAGES))),$(DEB)/.built $(DEB_NEXT)/.built))
	$(Q)$(RUN) night $(SUITES)

demo: DEPS = demo
demo: deps
	+$(Q)$(SUBMAKE) demo-run

# Without profil-http, whose library brings forty packages.
demo-run: $(addprefix $(B)/,profild profilctl libprofil.so libprofil.a)
	$(Q)BUILD=$(B) tests/demo.sh

BENCH = $(addprefix $(B)/tests/night/bench/,work work.gprof connect floor passes)

$(B)/tests/night/bench/floor: LIBS = $(call libs,libbpf)
$(B)/tests/night/bench/passes: $(B)/src/profild/worker/process_memory.o
$(B)/tests/night/bench/%: tests/night/bench/%.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ -o $@ $(filter %.c %.o,$^) $(ALL_LDFLAGS) $(LIBS) -pthread

$(B)/tests/night/bench/%.gprof: tests/night/bench/%.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -pg -MF $@.d -MT $@ -o $@ $< $(ALL_LDFLAGS) -pthread

bench: all $(BENCH)
	$(Q)BUILD=$(B) tests/night/bench/run.sh
