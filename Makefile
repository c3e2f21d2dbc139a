# Makefile - the whole build of profil; "make help" says what there is
VERSION := $(shell sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
PREFIX ?= /usr/local
DESTDIR ?=
BINDIR = $(PREFIX)/bin
SBINDIR = $(PREFIX)/sbin
LIBDIR = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
DATADIR = $(PREFIX)/share
MANDIR = $(DATADIR)/man
UNITDIR = $(PREFIX)/lib/systemd/system
SYSUSERSDIR = $(PREFIX)/lib/sysusers.d
SYSCONFDIR ?= /etc

B = build
CC = gcc
AR ?= ar
OBJCOPY ?= objcopy
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config

ifeq ($(V),1)
Q =
say = @:
else
Q = @
say = @printf '  %-7s %s\n'
endif

# What a Debian machine needs: to build, and to test as well.
DEPS_BUILD = gcc make pkg-config clang llvm bpftool libbpf-dev libelf-dev zlib1g-dev libdw-dev \
	libsystemd-dev libjansson-dev libiberty-dev libdebuginfod-dev libncurses-dev
DEPS_TEST = libcriterion-dev linux-perf xz-utils python3 openssl jq binutils mandoc \
	shellcheck clang-format clang-tidy cppcheck libclang-rt-dev g++ procps util-linux \
	valgrind strace google-perftools golang-go tmux python3-jsonschema zsh fish
DEPS_DEB = build-essential debhelper dpkg-dev fakeroot
DEPS = $(DEPS_BUILD) $(DEPS_TEST)
DEPS_VM = qemu-system-$(if $(filter aarch64,$(shell uname -m)),arm,x86) busybox-static udev kmod \
	zstd cpio debootstrap e2fsprogs bsdutils python3-argcomplete python3-requests \
	python3-pkg-resources
DEPS_ARM64 = qemu-system-arm gcc-aarch64-linux-gnu

CFLAGS ?= -O2 -g
WARN = -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wundef \
	-Wpointer-arith -Wvla -Wwrite-strings -Wformat=2
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DPROFIL_VERSION='"$(VERSION)"' $(WARN) -Isrc -Iinclude -I$(B) \
	-MMD -MP $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(LDFLAGS)
SO_LDFLAGS = -Wl,-z,defs
ifneq ($(SAN),)
comma = ,
B := build/san-$(subst $(comma),-,$(SAN))
ALL_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all \
	$(if $(findstring thread,$(SAN)),-Wno-tsan)
ALL_LDFLAGS += -fsanitize=$(SAN)
SO_LDFLAGS =
endif

# What is built for, which the compiler knows, as the kernel's own names have it.
ARCH := $(shell $(CC) -dumpmachine 2>/dev/null | sed -e 's/-.*//' -e 's/x86_64/x86/' -e 's/aarch64/arm64/')
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g -std=gnu11 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra -Werror \
	-ffile-prefix-map=$(CURDIR)=. -Isrc -Ibpf -I$(shell $(CC) -print-sysroot 2>/dev/null)/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null) -MMD -MP

# --- what there is to build -------------------------------------------------------------------

CORE = src/core/wire.c src/core/log.c

PROFILD = src/profild/main.c src/profild/chunks.c src/profild/client.c src/profild/clock.c \
	src/profild/clock_event.c src/profild/clock_tick.c src/profild/hotplug.c \
	src/profild/config.c src/profild/grace.c src/profild/holding.c src/profild/lifetimes.c src/profild/listen.c src/profild/maps.c src/profild/memory.c \
	src/profild/mirror.c src/profild/policy.c src/profild/processes.c src/profild/range.c \
	src/profild/request.c src/profild/sampler_bpf.c src/profild/sampler_recover.c \
	src/profild/sampler_replay.c src/profild/session.c src/profild/store.c src/profild/target.c src/profild/window.c

PROFILCTL = src/core/graph.c \
	src/profilctl/annotate.c src/profilctl/attach.c src/profilctl/bands.c src/profilctl/beside.c \
	src/profilctl/callgrind.c \
	src/profilctl/clean.c src/profilctl/compare.c src/profilctl/daemon.c \
	src/profilctl/debugfile.c src/profilctl/demangle.c src/profilctl/diff.c \
	src/profilctl/doctor.c src/profilctl/extents.c src/profilctl/fetch.c src/profilctl/folded.c \
	src/profilctl/follow.c src/profilctl/format.c src/profilctl/frames.c src/profilctl/gmon.c \
	src/profilctl/gperftools.c src/profilctl/graphs.c src/profilctl/html.c src/profilctl/image.c \
	src/profilctl/interval.c src/profilctl/json.c src/profilctl/jsonname.c src/profilctl/lines.c \
	src/profilctl/list.c src/profilctl/listing.c src/profilctl/load.c src/profilctl/main.c \
	src/profilctl/mapped.c src/profilctl/maps.c src/profilctl/named.c src/profilctl/newcomers.c src/profilctl/objectfile.c \
	src/profilctl/options.c src/profilctl/output.c src/profilctl/perfmap.c src/profilctl/plt.c \
	src/profilctl/pprof.c src/profilctl/procfs.c src/profilctl/profile.c src/profilctl/progress.c \
	src/profilctl/protobuf.c src/profilctl/reader.c src/profilctl/record.c src/profilctl/report.c \
	src/profilctl/rows.c src/profilctl/run.c src/profilctl/schema.c src/profilctl/screen.c src/profilctl/self.c \
	src/profilctl/session.c src/profilctl/slices.c src/profilctl/source.c \
	src/profilctl/speedscope.c src/profilctl/split.c src/profilctl/spots.c \
	src/profilctl/symbolize.c src/profilctl/symbols.c src/profilctl/tally.c src/profilctl/text.c \
	src/profilctl/threads.c src/profilctl/top.c src/profilctl/watch.c src/profilctl/watch_report.c

LIBPROFIL = src/core/wire.c src/core/graph.c \
	src/libprofil/profil.c \
	src/libprofil/aix.c \
	src/libprofil/call.c \
	src/libprofil/darwin.c \
	src/libprofil/dialect.c \
	src/libprofil/gmon.c \
	src/libprofil/irix.c \
	src/libprofil/mcount.c \
	src/libprofil/monitor.c \
	src/libprofil/plain.c \
	src/libprofil/regions.c \
	src/libprofil/request.c \
	src/libprofil/run.c \
	src/libprofil/solaris.c \
	src/libprofil/sprofil.c \
	src/libprofil/v7.c \
	src/libprofil/xform.c

DEB = $(B)/deb
DEB_NEXT = $(B)/deb-next
DEB_SOURCES = $(shell find bpf debian include src systemd -type f) Makefile LICENSE

UNIT = $(wildcard tests/unit/*.c) tests/vectors/vectors.c
SYSTEM = $(wildcard tests/system/*.c) tests/vectors/vectors.c
PROGRAMS = $(wildcard tests/programs/*.c)
PORTED = tests/programs/crowd.c tests/programs/served.c # only ever linked with libprofil

PROFILD_PKGS = libbpf libsystemd
PROFILCTL_PKGS = libdw libelf zlib jansson ncursesw
PROFILCTL_LIBS = -liberty -lm

objs = $(patsubst %.c,$(B)/%.o,$(1))
pics = $(patsubst %.c,$(B)/%.pic.o,$(1))
cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)

all: $(B)/profild $(B)/profilctl $(B)/libprofil.so.1 $(B)/libprofil.so $(B)/libprofil.a

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help deps tests check test test-run test-vm test-vm-run test-nightly test-nightly-run demo demo-run bench fuzz fuzz-build fuzzers coverage install deb deb-run format analyze style clean FORCE

help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))

## make            builds everything into build/
## make deps       installs the Debian packages that are missing, and nothing else
## make check      unit and replay tests: quick, no root
## make test       packages, build, every test that this machine can run (root)
## make test-vm    the same in guests: Debian's other kernels, a real systemd, arm64 (root; an hour)
## make test-nightly  both
## make demo       packages, build, profile a real program (root)
## make bench      measures against the other profilers
## make fuzz       fuzzes every parser for FUZZ_S seconds, two at a time
## make coverage   says which lines the tests that need no root reach
## make install    installs below DESTDIR and PREFIX
## make deb        leaves Debian packages in build/deb/
## make format     lays the sources out; make analyze looks for bugs in them
## V=1 shows commands, SAN=address,undefined builds with sanitizers

# The tools that a bare machine lacks are looked up when make starts, so what needs them after
# "deps" runs in a make of its own.
SUBMAKE = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

deps:
	@lacking() { for p; do \
		dpkg-query -W -f '$${db:Status-Status}\n' $$p 2>/dev/null | grep -qx installed || echo $$p; \
	done; }; \
	set -- $$(lacking $(DEPS)); \
	test $$# -gt 0 || exit 0; \
	if test $$(id -u) -ne 0; then \
		echo "make deps: these packages are missing, and only root can install them: $$*" >&2; exit 1; \
	fi; \
	echo "make deps: installing $$*"; export DEBIAN_FRONTEND=noninteractive; \
	apt-get install -s --no-install-recommends "$$@" >/dev/null 2>&1 || apt-get update || exit 1; \
	apt-get install -y --no-install-recommends "$$@"

# Names what is missing, and the package that has it, before a compiler says it worse.
NEED = miss=; \
	lack() { echo "make: $$1 is missing: 'sudo make deps' or 'apt-get install $$2' cures it" >&2; miss=1; }; \
	need() { command -v "$$1" >/dev/null 2>&1 || lack "$$1" "$$2"; }; \
	lib() { $(PKG_CONFIG) --exists "$$1" 2>/dev/null || lack "library $$1" "$$2"; }; \
	have() { echo "\#include <$$1>" | $(CC) -fsyntax-only -x c - 2>/dev/null || lack "header $$1" "$$2"; };

$(B)/tools.ok:
	@$(NEED) need $(CC) gcc; need $(CLANG) clang; need $(BPFTOOL) bpftool; need $(PKG_CONFIG) pkg-config; \
	lib libbpf libbpf-dev; lib libsystemd libsystemd-dev; lib libdw libdw-dev; \
	lib libelf libelf-dev; lib zlib zlib1g-dev; lib jansson libjansson-dev; \
	lib libdebuginfod libdebuginfod-dev; lib ncursesw libncurses-dev; \
	have libiberty/demangle.h libiberty-dev; test -z "$$miss"
	@mkdir -p $(@D) && touch $@

$(B)/tests.ok:
	@$(NEED) lib criterion libcriterion-dev; test -z "$$miss"
	@mkdir -p $(@D) && touch $@

# Changes when the flags do: what was compiled with others is stale.
$(B)/flags: export FLAGS = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(CLANG) $(BPF_CFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(@D); echo "$$FLAGS" | cmp -s - $@ || echo "$$FLAGS" > $@

# --- BPF: object by clang, skeleton by bpftool ------------------------------------------------

$(B)/%.bpf.o: %.bpf.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) BPF $@
	$(Q)$(CLANG) $(BPF_CFLAGS) -MF $(@:.o=.d) -MT $@ -c $< -o $@

$(B)/%.skel.h: $(B)/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst .,_,$(notdir $*))_bpf > $@

$(B)/tests/system/kernel_vectors.o: $(B)/tests/vectors/vectors.skel.h
$(B)/src/profild/clock_event.o $(B)/src/profild/clock_tick.o $(B)/src/profild/sampler_bpf.o $(B)/src/profild/lifetimes.o $(B)/src/profild/maps.o $(B)/src/profild/holding.o: $(B)/bpf/profil.skel.h

# --- C ------------------------------------------------------------------------------------------

$(B)/src/profild/%.o: PKGS = $(PROFILD_PKGS)
$(B)/src/profilctl/%.o: PKGS = $(PROFILCTL_PKGS)
$(B)/tests/%.o: PKGS = $(PROFILD_PKGS) $(PROFILCTL_PKGS) criterion

$(B)/%.o: %.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) $(call cflags,$(PKGS)) -c $< -o $@

# It is called where arguments are still in registers, of which it keeps the general ones only.
$(B)/src/libprofil/mcount.pic.o: ALL_CFLAGS += -mgeneral-regs-only

$(B)/%.pic.o: %.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@

$(B)/profild: $(call objs,$(PROFILD) $(CORE))
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(call libs,$(PROFILD_PKGS)) -pthread

$(B)/profilctl: $(call objs,$(PROFILCTL) $(CORE))
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(call libs,$(PROFILCTL_PKGS)) $(PROFILCTL_LIBS)

$(B)/libprofil.so.1: $(call pics,$(LIBPROFIL)) src/libprofil/libprofil.map
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared $(SO_LDFLAGS) -Wl,-soname,libprofil.so.1 \
		-Wl,--version-script,src/libprofil/libprofil.map -o $@ $(filter %.o,$^)

$(B)/libprofil.so: $(B)/libprofil.so.1
	$(Q)ln -sf libprofil.so.1 $@

# One object, in which only the public names are left.
$(B)/libprofil.a: $(call pics,$(LIBPROFIL))
	$(say) AR $@
	$(Q)$(CC) -nostdlib -r -o $(@:.a=.whole.o) $^ && $(OBJCOPY) --localize-hidden $(@:.a=.whole.o)
	$(Q)rm -f $@ && $(AR) rcs $@ $(@:.a=.whole.o)

# --- tests --------------------------------------------------------------------------------------

# What the unit tests are linked with: all but the main()s. Archives, so that only what a test asks
# for comes in.
$(B)/tests/%.a:
	@mkdir -p $(@D)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/tests/profild.a: $(call objs,$(filter-out %/main.c,$(PROFILD)) $(CORE))
$(B)/tests/profilctl.a: $(call objs,$(filter-out %/main.c,$(PROFILCTL)) $(CORE))
$(B)/tests/libprofil.a: $(call pics,$(LIBPROFIL)) # with its inner names

UNIT_PARTS = $(B)/tests/profild.a $(B)/tests/profilctl.a $(B)/tests/libprofil.a

$(call objs,$(UNIT) $(SYSTEM)): | $(B)/tests.ok

$(B)/tests/unit-tests: $(call objs,$(UNIT)) $(UNIT_PARTS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(UNIT_PARTS) -Wl,--end-group \
		$(call libs,$(PROFILD_PKGS) $(PROFILCTL_PKGS) criterion) $(PROFILCTL_LIBS) -pthread

$(B)/tests/system-tests: $(call objs,$(SYSTEM) $(CORE)) $(B)/tests/libprofil.a
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(call libs,criterion libbpf) -pthread

# Programs to be profiled: X calls libc's profil, or ours by LD_PRELOAD; X.linked is linked with ours.
$(B)/tests/programs/%: tests/programs/%.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ -o $@ $< $(ALL_LDFLAGS) -pthread

$(B)/tests/programs/%.linked: tests/programs/%.c $(B)/libprofil.so $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ -o $@ $< $(ALL_LDFLAGS) -pthread \
		-L$(B) -lprofil -Wl,-rpath,$(abspath $(B))

# For LD_PRELOAD: lets one allocation fail.
$(B)/tests/hostile/failing.so: tests/hostile/failing.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -shared -MF $@.d -MT $@ -o $@ $<

programs = $(patsubst %.c,$(B)/%,$(filter-out $(PORTED),$(PROGRAMS))) $(patsubst %.c,$(B)/%.linked,$(PROGRAMS))

# A fuzzer is what has seeds. It is linked with libFuzzer, or where there is none, with what runs it
# over these.
FUZZERS = $(patsubst tests/fuzz/corpus/%,$(B)/tests/fuzz/%,$(wildcard tests/fuzz/corpus/*))
FUZZ_MAIN = $(B)/tests/fuzz/seeds.o

$(B)/tests/fuzz/state.o: $(B)/bpf/profil.skel.h

$(FUZZERS): %: %.o $(B)/tests/fuzz/fuzz.o $(FUZZ_MAIN) $(UNIT_PARTS)
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(FUZZ_LDFLAGS) -o $@ $(filter %.o,$^) \
		-Wl,--start-group $(UNIT_PARTS) -Wl,--end-group \
		$(call libs,$(PROFILD_PKGS) $(PROFILCTL_PKGS)) $(PROFILCTL_LIBS) -pthread

fuzzers: $(FUZZERS)

# The same, by clang, with libFuzzer and sanitizers.
FUZZ_S ?= 60
FUZZ_SAN = address,undefined
# Warnings are the other compiler's to give.
FUZZ_CFLAGS = -w -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all \
	-fsanitize=fuzzer-no-link,$(FUZZ_SAN)

fuzz-build:
	+$(Q)$(SUBMAKE) B=build/fuzz CC=$(CLANG) SAN= FUZZ_MAIN= FUZZ_LDFLAGS=-fsanitize=fuzzer \
		CFLAGS='$(FUZZ_CFLAGS)' LDFLAGS=-fsanitize=$(FUZZ_SAN) fuzzers

fuzz:
	$(Q)FUZZ_S=$(FUZZ_S) tests/run.sh tests/fuzz/run.sh

coverage:
	$(Q)tests/run.sh replay:tests/care/coverage.sh

tests: $(B)/tests/unit-tests $(B)/tests/system-tests $(programs) $(FUZZERS) $(B)/tests/hostile/failing.so

RUN = BUILD=$(B) SAN=$(SAN) CC="$(CC)" tests/run.sh

check: all tests
	$(Q)$(RUN) check

style:
	$(Q)tests/style.sh

packages = $(if $(SAN),,$(DEB)/.built $(DEB_NEXT)/.built)

test test-vm test-nightly: DEPS += $(DEPS_DEB) lintian $(DEPS_VM)
test-vm test-nightly: DEPS += $(DEPS_ARM64)
test test-vm test-nightly: deps
	+$(Q)$(SUBMAKE) $@-run

test-run: all tests $(packages)
	$(Q)$(RUN) all

test-nightly-run: all tests $(packages)
	$(Q)$(RUN) nightly

test-vm-run: all tests $(packages)
	$(Q)BUILD=$(B) tests/vm/run.sh

demo: DEPS = $(DEPS_BUILD)
demo: deps
	+$(Q)$(SUBMAKE) demo-run

demo-run: all
	$(Q)BUILD=$(B) tests/demo.sh

BENCH = $(addprefix $(B)/tests/bench/,work work.gprof floor passes)

$(B)/tests/bench/floor: LIBS = $(call libs,libbpf)
$(B)/tests/bench/passes: $(B)/src/profild/memory.o
$(B)/tests/bench/%: tests/bench/%.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -MF $@.d -MT $@ -o $@ $(filter %.c %.o,$^) $(ALL_LDFLAGS) $(LIBS) -pthread

$(B)/tests/bench/%.gprof: tests/bench/%.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -pg -MF $@.d -MT $@ -o $@ $< $(ALL_LDFLAGS) -pthread

bench: all $(BENCH)
	$(Q)BUILD=$(B) tests/bench/run.sh

# --- install ------------------------------------------------------------------------------------

INSTALL = install
PAGES = $(wildcard src/*/*.[1-8])
DIALECTS = $(patsubst include/profil/%/,%,$(wildcard include/profil/*/))
D = $(DESTDIR)
fill = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' \
	-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|@VERSION@|$(VERSION)|g'

install: all
	$(Q)$(INSTALL) -d $(D)$(BINDIR) $(D)$(SBINDIR) $(D)$(LIBDIR)/pkgconfig $(D)$(UNITDIR) $(D)$(SYSUSERSDIR)
	$(Q)$(INSTALL) -m 755 $(B)/profilctl $(D)$(BINDIR)
	$(Q)$(INSTALL) -m 755 $(B)/profild $(D)$(SBINDIR)
	$(Q)$(INSTALL) -m 644 $(B)/libprofil.so.1 $(B)/libprofil.a $(D)$(LIBDIR)
	$(Q)ln -sf libprofil.so.1 $(D)$(LIBDIR)/libprofil.so
	$(Q)cd include && find . -name '*.h' -exec $(INSTALL) -D -m 644 {} $(abspath $(D)$(INCLUDEDIR))/{} \;
	$(Q)for p in $(PAGES); do $(INSTALL) -D -m 644 $$p $(D)$(MANDIR)/man$${p##*.}/$${p##*/} || exit 1; done
	$(Q)$(INSTALL) -D -m 644 src/profilctl/completion/profilctl.bash $(D)$(DATADIR)/bash-completion/completions/profilctl
	$(Q)$(INSTALL) -D -m 644 src/profilctl/completion/_profilctl $(D)$(DATADIR)/zsh/site-functions/_profilctl
	$(Q)$(INSTALL) -D -m 644 src/profilctl/completion/profilctl.fish $(D)$(DATADIR)/fish/vendor_completions.d/profilctl.fish
	$(Q)$(fill) src/libprofil/libprofil.pc.in > $(D)$(LIBDIR)/pkgconfig/libprofil.pc
	$(Q)for d in $(DIALECTS); do $(fill) -e "s|@DIALECT@|$$d|g" src/libprofil/dialect.pc.in \
		> $(D)$(LIBDIR)/pkgconfig/libprofil-$$d.pc || exit 1; done
	$(Q)$(fill) systemd/profild.service > $(D)$(UNITDIR)/profild.service
	$(Q)$(INSTALL) -m 644 systemd/profild.socket $(D)$(UNITDIR)
	$(Q)$(INSTALL) -m 644 systemd/profil.sysusers $(D)$(SYSUSERSDIR)/profil.conf
	$(Q)test -e $(D)$(SYSCONFDIR)/profil/profild.conf || \
		$(INSTALL) -D -m 644 systemd/profild.conf $(D)$(SYSCONFDIR)/profil/profild.conf

# --- packages -----------------------------------------------------------------------------------

deb: DEPS = $(DEPS_BUILD) $(DEPS_DEB)
deb: deps
	+$(Q)$(SUBMAKE) deb-run

deb-run: $(DEB)/.built

# A later version of the same, for the tests: what profild is upgraded to.
$(DEB_NEXT)/.built: VERSION := $(VERSION)+next

# From a copy of the tree: debhelper works below debian/, and build/ has this machine's own flags.
$(DEB)/.built $(DEB_NEXT)/.built: $(DEB_SOURCES)
	$(say) DEB $(@D)
	$(Q)rm -rf $(@D) && mkdir -p $(@D)/profil
	$(Q)cp -a --parents $(sort $(DEB_SOURCES)) $(@D)/profil
	$(Q)cd $(@D)/profil && sed -i '1s/(.*)/($(VERSION))/' debian/changelog && \
		env -u MAKEFLAGS -u MAKELEVEL -u SAN dpkg-buildpackage -b -us -uc -j2 >../build.log 2>&1 || \
		{ tail -n 30 ../build.log; echo "make deb: no packages: what failed is above" >&2; exit 1; }
	$(Q)rm -r $(@D)/profil && touch $@

# --- care of the sources ------------------------------------------------------------------------

C_FILES = $(shell git ls-files -co --exclude-standard 'src/*.[ch]' 'bpf/*.[ch]' 'include/*.h' 'tests/*.[ch]')

format:
	$(Q)clang-format -i $(C_FILES)

# gcc 12 does not follow memory that is kept as a part of what was allocated (&b->s), nor an err that
# -errno never makes positive: the sanitizers watch over leaks, clang's analyzer over the unset.
ANALYZER = -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-use-of-uninitialized-value \
	-Wno-analyzer-possible-null-argument

# The build once more under gcc's analyzer, warnings being errors; then each tool over what it reads.
analyze: all
	+$(Q)$(SUBMAKE) B=build/analyze CFLAGS='-O1 -g $(ANALYZER)' all
	$(say) TIDY src
	$(Q)clang-tidy --quiet --warnings-as-errors='*' $(PROFILD) $(PROFILCTL) $(LIBPROFIL) $(CORE) -- \
		-std=gnu11 -D_GNU_SOURCE -DPROFIL_VERSION='"$(VERSION)"' -Isrc -Iinclude -I$(B)
	$(say) CPPCHECK src
	$(Q)cppcheck --quiet --std=c11 --enable=warning,performance,portability --error-exitcode=1 \
		--inline-suppr --suppressions-list=.cppcheck -D_GNU_SOURCE -D__$(shell uname -m)__ \
		'-DLIBBPF_OPTS(t,n,...)=struct t n' -Isrc -Iinclude -I$(B) src
	$(say) SHELL tests
	$(Q)shellcheck -x $(shell git ls-files -co --exclude-standard '*.sh' .ci/run)

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
