# dist.mk - archives: the sources, and the programs built for this architecture
.PHONY: dist dist-run dist-source

dist: DEPS = demo build dist
dist: deps
	+$(Q)$(SUBMAKE) dist-run

dist-source:
	$(Q)VERSION='$(VERSION)' mk/dist.sh source

dist-run: dist-source
	+$(Q)VERSION='$(VERSION)' MAKE='$(SUBMAKE)' mk/dist.sh programs
