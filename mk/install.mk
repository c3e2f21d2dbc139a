# install.mk - what is installed, below DESTDIR and PREFIX
BINDIR = $(PREFIX)/bin
SBINDIR = $(PREFIX)/sbin
LIBDIR = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
DATADIR = $(PREFIX)/share
MANDIR = $(DATADIR)/man
UNITDIR = $(PREFIX)/lib/systemd/system
SYSUSERSDIR = $(PREFIX)/lib/sysusers.d
SYSCONFDIR ?= /etc

INSTALL = install
PAGES = $(wildcard src/*/*.[1-8])
DIALECTS = $(patsubst include/profil/%/,%,$(wildcard include/profil/*/))
D = $(DESTDIR)
fill = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' \
	-e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' -e 's|@VERSION@|$(VERSION)|g'

install: all
	$(Q)$(INSTALL) -d $(D)$(BINDIR) $(D)$(SBINDIR) $(D)$(LIBDIR)/pkgconfig $(D)$(UNITDIR) $(D)$(SYSUSERSDIR)
	$(Q)$(INSTALL) -m 755 $(B)/profilctl $(D)$(BINDIR)
	$(Q)$(INSTALL) -m 755 $(B)/profild $(B)/profil-http $(D)$(SBINDIR)
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
	$(Q)for u in $(notdir $(wildcard systemd/*.service)); do $(fill) systemd/$$u > $(D)$(UNITDIR)/$$u || exit 1; done
	$(Q)$(INSTALL) -m 644 systemd/*.socket $(D)$(UNITDIR)
	$(Q)$(INSTALL) -D -m 644 systemd/perf-events.conf $(D)$(DATADIR)/profil/perf-events.conf
	$(Q)for u in profil profil-spool; do $(INSTALL) -m 644 systemd/$$u.sysusers $(D)$(SYSUSERSDIR)/$$u.conf || exit 1; done
	$(Q)test -e $(D)$(SYSCONFDIR)/profil/profild.conf || \
		$(INSTALL) -D -m 644 systemd/profild.conf $(D)$(SYSCONFDIR)/profil/profild.conf
