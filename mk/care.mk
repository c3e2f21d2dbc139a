# care.mk - formatting and static analysis
C_FILES = $(shell git ls-files -co --exclude-standard 'src/*.[ch]' 'bpf/*.[ch]' 'include/*.h' 'tests/*.[ch]')

.PHONY: format analyze

format:
	$(Q)clang-format -i $(C_FILES)

# gcc 12 does not follow memory that is kept as a part of what was allocated (&b->s), nor an err that
# -errno never makes positive: the sanitizers watch over leaks, clang's analyzer over the unset.
ANALYZER = -fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-use-of-uninitialized-value \
	-Wno-analyzer-possible-null-argument

# The build once more under gcc's analyzer, warnings being errors; then each tool over what it reads.
# cppcheck does not find the skeleton: its bytes take half a minute for each source that includes it.
analyze: all
	+$(Q)$(SUBMAKE) B=build/analyze WERROR=1 CFLAGS='-O1 -g $(ANALYZER)' all
	$(say) TIDY src
	$(Q)printf '%s\n' $(sort $(filter %.c,$(PROFILD) $(LIBRARY) $(PROFILCTL) $(PROFIL_HTTP) $(LIBPROFIL) $(CORE))) | \
		xargs -P $$(nproc) -n 20 sh -c \
		'clang-tidy --quiet --warnings-as-errors="*" "$$@" -- -std=gnu11 -D_GNU_SOURCE \
		-DPROFIL_VERSION="\"$(VERSION)\"" -Isrc -Iinclude -I$(B)' sh
	$(say) CPPCHECK src
	$(Q)cppcheck -j $$(nproc) --quiet --std=c11 --enable=warning,performance,portability --error-exitcode=1 \
		--inline-suppr --suppressions-list=.cppcheck -D_GNU_SOURCE -D__$(shell uname -m)__ \
		'-DLIBBPF_OPTS(t,n,...)=struct t n' '-Dbpf_object__for_each_program(p,o)=while (p)' -Isrc -Iinclude src
	$(say) SHELL scripts
	$(Q)shellcheck -x $(shell git ls-files -co --exclude-standard '*.sh' .ci/run)
