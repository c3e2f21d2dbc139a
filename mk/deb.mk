# deb.mk - the Debian packages, and an image of them for containers
DEB = $(B)/deb
DEB_NEXT = $(B)/deb-next
DEB_SOURCES = $(shell find $(wildcard bpf debian deploy include mk src systemd vendor) -type f) Makefile LICENSE

.PHONY: deb deb-run image image-run

deb: DEPS = demo build deb
deb: deps
	+$(Q)$(SUBMAKE) deb-run

deb-run: $(DEB)/.built

# The same with a later version, for the tests of profild's upgrade.
$(DEB_NEXT)/.built: VERSION := $(VERSION)+next

# From a copy of the tree: debhelper writes below debian/, and build/ has other flags. What dpkg-buildpackage
# leaves is in built/; the packages that users install, without those of debugging symbols, are links above.
$(DEB)/.built $(DEB_NEXT)/.built: $(DEB_SOURCES)
	$(say) DEB $(@D)
	$(Q)rm -rf $(@D) && mkdir -p $(@D)/built/profil
	$(Q)cp -a --parents $(sort $(DEB_SOURCES)) $(@D)/built/profil
	$(Q)cd $(@D)/built/profil && sed -i '1s/(.*)/($(VERSION))/' debian/changelog && \
		env -u MAKEFLAGS -u MAKELEVEL -u SAN dpkg-buildpackage -b -us -uc -j2 >../build.log 2>&1 || \
		{ tail -n 30 ../build.log; echo "make deb: building the packages failed: see above" >&2; exit 1; }
	$(Q)rm -r $(@D)/built/profil && ln $(@D)/built/*.deb $(@D) && rm -f $(@D)/*-dbgsym_*.deb && touch $@

IMAGE = $(B)/image/profil-$(VERSION).tar

image: DEPS = demo build deb image
image: deps
	+$(Q)$(SUBMAKE) image-run

image-run: $(IMAGE)

$(IMAGE): $(DEB)/.built mk/image.sh
	$(say) IMAGE $@
	$(Q)mkdir -p $(@D)
	$(Q)mk/image.sh $(DEB) $@ $(VERSION) >$(@D)/build.log 2>&1 || \
		{ tail -n 30 $(@D)/build.log; echo "make image: building the image failed: see above" >&2; exit 1; }
