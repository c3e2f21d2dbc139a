# install.mk - what is installed below DESTDIR and PREFIX, and removed from there
WHERE = PREFIX DESTDIR BINDIR SBINDIR LIBDIR INCLUDEDIR DATADIR MANDIR UNITDIR SYSUSERSDIR SYSCONFDIR MANIFEST
INSTALLER = B='$(B)' VERSION='$(VERSION)' $(foreach v,$(WHERE),$(if $(filter-out undefined,$(origin $v)),$v='$($v)')) mk/install.sh

.PHONY: install uninstall

install: all
	$(Q)$(INSTALLER)

uninstall:
	$(Q)$(INSTALLER) --uninstall
