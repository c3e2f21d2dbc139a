# Makefile - the whole build of profil; "make help" says what there is
VERSION = 0.1.0
PREFIX ?= /usr/local
DESTDIR ?=
BINDIR = $(PREFIX)/bin
SBINDIR = $(PREFIX)/sbin
LIBDIR = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
MANDIR = $(PREFIX)/share/man
UNITDIR = $(PREFIX)/lib/systemd/system

B = build
CC = gcc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config

ifeq ($(V),1)
Q =
say =
else
Q = @
say = @printf '  %-7s %s\n'
endif

# What a Debian machine needs: to build, and to test as well.
DEPS_BUILD = gcc make pkg-config clang llvm bpftool libbpf-dev libelf-dev zlib1g-dev libdw-dev \
	libsystemd-dev libjansson-dev
DEPS_TEST = libcriterion-dev linux-perf xz-utils python3 openssl jq binutils mandoc \
	shellcheck clang-format clang-tidy cppcheck g++ procps util-linux

CFLAGS ?= -O2 -g
WARN = -Wall -Wextra -Werror -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wundef \
	-Wpointer-arith -Wvla -Wwrite-strings -Wformat=2
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DPROFIL_VERSION='"$(VERSION)"' $(WARN) -Isrc -I$(B) -MMD -MP $(CFLAGS)
ALL_LDFLAGS = $(LDFLAGS)
SO_LDFLAGS = -Wl,-z,defs
ifneq ($(SAN),)
B := build/san-$(subst $(comma),-,$(SAN))
ALL_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
ALL_LDFLAGS += -fsanitize=$(SAN)
SO_LDFLAGS =
endif
comma = ,

ARCH := $(shell uname -m | sed -e 's/x86_64/x86/' -e 's/aarch64/arm64/')
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g -std=gnu11 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra -Werror \
	-Isrc -I/usr/include/$(shell $(CC) -print-multiarch 2>/dev/null) -MMD -MP

# --- what there is to build -------------------------------------------------------------------

CORE = src/core/wire.c src/core/log.c

PROFILD = src/profild/main.c

PROFILCTL = src/profilctl/main.c

LIBPROFIL = src/libprofil/profil.c

UNIT = $(wildcard tests/unit/*.c)
SYSTEM = $(wildcard tests/system/*.c)

PROFILD_PKGS = libbpf libsystemd
PROFILCTL_PKGS = libdw libelf jansson

objs = $(patsubst %.c,$(B)/%.o,$(1))
pics = $(patsubst %.c,$(B)/%.pic.o,$(1))
cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)

all: $(B)/profild $(B)/profilctl $(B)/libprofil.so.1 $(B)/libprofil.so $(B)/libprofil.a

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help tools deps check test demo bench install format analyze clean style

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

## make            builds everything into build/
## make deps       installs the Debian packages that are missing, and nothing else
## make check      unit and replay tests: quick, no root
## make test       packages, build, every test that this machine can run (root)
## make demo       packages, build, profile a real program (root)
## make bench      measures against the other profilers
## make install    installs below DESTDIR and PREFIX
## make format     lays the sources out; make analyze looks for bugs in them
## V=1 shows commands, SAN=address,undefined builds with sanitizers

# Names what is missing, and the package that has it, before a compiler says it worse.
$(B)/tools.ok: Makefile
	@miss=; need() { command -v "$$1" >/dev/null 2>&1 || test -x "$$1" || { echo "make: $$1 is missing; 'make deps' (Debian: apt-get install $$2) cures it" >&2; miss=1; }; }; \
	lib() { $(PKG_CONFIG) --exists "$$1" 2>/dev/null || { echo "make: library $$1 is missing; 'make deps' (Debian: apt-get install $$2) cures it" >&2; miss=1; }; }; \
	need $(CC) gcc; need $(CLANG) clang; need $(BPFTOOL) bpftool; need $(PKG_CONFIG) pkg-config; \
	lib libbpf libbpf-dev; lib libsystemd libsystemd-dev; lib libdw libdw-dev; lib libelf libelf-dev; lib jansson libjansson-dev; \
	test -z "$$miss"
	@mkdir -p $(@D) && touch $@

# --- BPF: object by clang, skeleton by bpftool ------------------------------------------------

$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) BPF $@
	$(Q)$(CLANG) $(BPF_CFLAGS) -MF $(@:.o=.d) -MT $@ -c $< -o $@

$(B)/bpf/%.skel.h: $(B)/bpf/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst .,_,$*)_bpf > $@

$(B)/src/profild/sampler_bpf.o: $(B)/bpf/profil.skel.h

# --- C ------------------------------------------------------------------------------------------

$(B)/src/profild/%.o: PKGS = $(PROFILD_PKGS)
$(B)/src/profilctl/%.o: PKGS = $(PROFILCTL_PKGS)
$(B)/tests/%.o: PKGS = $(PROFILD_PKGS) $(PROFILCTL_PKGS) criterion

$(B)/%.o: %.c $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) $(call cflags,$(PKGS)) -c $< -o $@

$(B)/%.pic.o: %.c $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -Iinclude -fPIC -fvisibility=hidden -c $< -o $@

$(B)/profild: $(call objs,$(PROFILD) $(CORE))
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(call libs,$(PROFILD_PKGS)) -pthread

$(B)/profilctl: $(call objs,$(PROFILCTL) $(CORE))
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(call libs,$(PROFILCTL_PKGS))

$(B)/libprofil.so.1: $(call pics,$(LIBPROFIL) src/core/wire.c) src/libprofil/libprofil.map
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared $(SO_LDFLAGS) -Wl,-soname,libprofil.so.1 \
		-Wl,--version-script,src/libprofil/libprofil.map -o $@ $(filter %.o,$^)

$(B)/libprofil.so: $(B)/libprofil.so.1
	$(Q)ln -sf libprofil.so.1 $@

$(B)/libprofil.a: $(call pics,$(LIBPROFIL) src/core/wire.c)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

# --- tests --------------------------------------------------------------------------------------

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
