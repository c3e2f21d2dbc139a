# c.mk - what is written in C: the daemon, the tools and the library

# Looks for the tools and libraries of a list in vendor/packages/, and names those that are missing.
FIND = CC='$(CC)' CLANG='$(CLANG)' BPFTOOL='$(BPFTOOL)' PKG_CONFIG='$(PKG_CONFIG)' mk/deps.sh

$(B)/tools.ok $(B)/http.ok $(B)/tests.ok: $(B)/%.ok: mk/deps.sh mk/missing.sh
	@$(FIND) --check $(LISTS)
	@mkdir -p $(@D) && touch $@

$(B)/tools.ok: LISTS = demo
$(B)/http.ok: LISTS = build
$(B)/tests.ok: LISTS = quick

$(call objs,$(PROFIL_HTTP)): | $(B)/http.ok

# Changes with the flags, so that what was compiled with others is compiled again.
$(B)/flags: export FLAGS = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(CLANG) $(BPF_CFLAGS)
$(B)/flags: FORCE
	@mkdir -p $(@D); echo "$$FLAGS" | cmp -s - $@ || echo "$$FLAGS" > $@

$(B)/src/profild/%.o: PKGS = $(PROFILD_PKGS)
$(LAYERS:%=$(B)/src/%/%.o) $(B)/src/profilctl/%.o: PKGS = $(PROFILCTL_PKGS)
$(B)/src/profil-http/%.o: PKGS = $(PROFIL_HTTP_PKGS)
$(B)/tests/%.o: PKGS = $(PROFILD_PKGS) $(PROFILCTL_PKGS) criterion
$(B)/tests/%.o: INCLUDES = -I.

$(B)/%.o: %.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) $(INCLUDES) $(call cflags,$(PKGS)) -c $< -o $@

# mcount() is called where arguments are still in registers; it saves the general ones only.
$(B)/src/libprofil/gprof/mcount.pic.o: ALL_CFLAGS += -mgeneral-regs-only

$(B)/%.pic.o: %.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -c $< -o $@

# The bytes of a file, and a NUL behind them.
$(patsubst %,$(B)/%.o,$(EMBEDDED)): $(B)/%.o: % $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) EMBED $@
	$(Q)printf '.section .rodata\n.globl %s\n%s: .incbin "%s"\n.byte 0\n.section .note.GNU-stack,"",%%progbits\n' \
		$(subst .,_,$(notdir $<)) $(subst .,_,$(notdir $<)) $< | $(CC) -c -x assembler - -o $@

$(B)/profild: $(call objs,$(PROFILD) $(CORE))
$(B)/profild: LIBS = $(call libs,$(PROFILD_PKGS)) -pthread
$(B)/profilctl: $(call objs,$(PROFILCTL)) $(B)/library.a
$(B)/profilctl: LIBS = $(call libs,$(PROFILCTL_PKGS)) $(PROFILCTL_LIBS)
$(B)/profil-http: $(call objs,$(PROFIL_HTTP)) $(B)/library.a
$(B)/profil-http: LIBS = $(call libs,$(PROFIL_HTTP_PKGS)) $(PROFILCTL_LIBS) -pthread

$(B)/profild $(B)/profilctl $(B)/profil-http:
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) $(if $(filter %/profilctl,$@),,$(RPATH)) -o $@ $(filter %.o,$^) $(filter %.a,$^) -Wl,--as-needed $(LIBS) $(MORE_LIBS)

$(B)/library.a: $(call objs,$(LIBRARY) src/core/wire.c)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/libprofil.so.1: $(call pics,$(LIBPROFIL)) src/libprofil/libprofil.map
	$(say) LD $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared $(SO_LDFLAGS) -Wl,-soname,libprofil.so.1 \
		-Wl,--version-script,src/libprofil/libprofil.map -o $@ $(filter %.o,$^)

$(B)/libprofil.so: $(B)/libprofil.so.1
	$(Q)ln -sf libprofil.so.1 $@

# One object with the public symbols only.
$(B)/libprofil.a: $(call pics,$(LIBPROFIL))
	$(say) AR $@
	$(Q)$(CC) -nostdlib -r -o $(@:.a=.whole.o) $^ && $(OBJCOPY) --localize-hidden $(@:.a=.whole.o)
	$(Q)rm -f $@ && $(AR) rcs $@ $(@:.a=.whole.o)
