# Makefile - the build of profil; "make help" lists the targets
VERSION := $(shell sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
PREFIX ?= /usr/local
DESTDIR ?=
B = build
CLANG ?= clang
# clang compiles the BPF programs in any case, so where there is no gcc it compiles the rest as well.
CC := $(if $(shell command -v gcc 2>/dev/null),gcc,$(CLANG))
AR ?= ar
OBJCOPY ?= objcopy
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PKG_CONFIG ?= pkg-config
Q = $(if $(filter 1,$(V)),,@)
say = @$(if $(filter 1,$(V)),:,printf '  %-7s %s\n')

CFLAGS ?= -O2 -g
WERROR ?= 0
WERROR_FLAG = $(if $(filter 1,$(WERROR)),-Werror)
WARN = -Wall -Wextra -Wno-unused-parameter $(WERROR_FLAG) -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wundef \
	-Wpointer-arith -Wvla -Wwrite-strings -Wformat=2
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DPROFIL_VERSION='"$(VERSION)"' $(WARN) -Isrc -Iinclude -I$(B) \
	-MMD -MP $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(LDFLAGS)
SO_LDFLAGS = -Wl,-z,defs -Wl,-z,now
ifneq ($(SAN),)
comma = ,
B := build/san-$(subst $(comma),-,$(SAN))
ALL_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all \
	$(if $(findstring thread,$(SAN)),-Wno-tsan)
ALL_LDFLAGS += -fsanitize=$(SAN)
SO_LDFLAGS =
endif

# A folder is an artefact: all of its sources, and those of the folders in it.
sources = $(wildcard src/$(1)/*.c src/$(1)/*/*.c src/$(1)/*/*/*.c)
# What a program has in it as it stands: src/x/page.css is page_css[] there.
EMBEDDED = $(wildcard $(foreach x,css js json html,src/*/*.$(x) src/*/*/*.$(x) src/*/*/*/*.$(x)))
CORE = src/core/wire.c src/base/log.c
# The layers below profilctl and profil-http, from the lowest to the highest.
LAYERS = base profile symbols analysis table formats
LIBRARY = src/core/gmon_file.c $(foreach x,$(LAYERS),$(call sources,$x)) $(filter $(LAYERS:%=src/%/%),$(EMBEDDED))
PROFILD = $(call sources,profild) $(foreach x,config_file jobs membership subids,src/base/$(x).c)
PROFILCTL = $(call sources,profilctl)
PROFIL_HTTP = $(call sources,profil-http) $(filter src/profil-http/%,$(EMBEDDED))
LIBPROFIL = src/core/wire.c src/core/gmon_file.c $(call sources,libprofil)
PROFILD_PKGS = libbpf libsystemd
PROFILCTL_PKGS = libdw libelf zlib liblzma jansson ncursesw
PROFILCTL_LIBS = -liberty -lm
PROFIL_HTTP_PKGS = libsystemd libmicrohttpd $(PROFILCTL_PKGS)

objs = $(patsubst %,$(B)/%.o,$(patsubst %.c,%,$(1)))
pics = $(patsubst %.c,$(B)/%.pic.o,$(1))
cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
SUBMAKE = $(MAKE) --no-print-directory $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

## make            builds everything into build/
## make deps       installs the Debian packages that are missing
## make quick      before a commit: unit tests, what the change may break (no root; a minute)
## make test       packages, build, the gate (root; 7 minutes)
## make nightly    all other tests: statistics, perf, hostile users, guests, sanitizers (root; hours)
## make demo       packages, build, profile a real program (root)
## make bench      measures profil beside other profilers
## make fuzz       fuzzes every parser for FUZZ_S seconds, two at a time
## make coverage   lists the lines that the tests without root do not reach
## make install    installs below DESTDIR and PREFIX; make uninstall removes what it left
## make dist       leaves archives of the sources and of the built programs in build/dist/
## make deb        leaves Debian packages in build/deb/
## make image      leaves an OCI image of the packages in build/image/ (root)
## make format     formats the sources; make analyze runs the static analyzers
## V=1 shows commands, WERROR=1 makes warnings errors, SAN=address,undefined builds with sanitizers
.DEFAULT_GOAL = all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help deps clean FORCE

ifneq ($(if $(filter 0,$(MAKELEVEL)),$(shell mk/owner.sh)),)
include mk/owner.mk
else
all: $(addprefix $(B)/,profild profilctl libprofil.so.1 libprofil.so libprofil.a $(if $(PROFIL_HTTP),profil-http))

include mk/bpf.mk mk/c.mk mk/deb.mk mk/dist.mk mk/test.mk mk/install.mk mk/care.mk

help:
	@sed -n 's/^## //p' Makefile

deps:
	@$(if $(SAYS),echo 'make $(SAYS)';) $(FIND) $(or $(DEPS),demo build quick test)

clean:
	rm -rf build

# Not those of the roots of tests/night/releases.sh.
-include $(shell find $(B) -path $(B)/releases -prune -o -type f -name '*.d' -print 2>/dev/null)
endif
