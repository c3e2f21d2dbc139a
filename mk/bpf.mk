# bpf.mk - BPF programs: an object by clang, a skeleton by bpftool

# The architecture for which the compiler builds, by the kernel's name.
ARCH := $(shell $(CC) -dumpmachine 2>/dev/null | sed -e 's/-.*//' -e 's/x86_64/x86/' -e 's/aarch64/arm64/')
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g -std=gnu11 -D__TARGET_ARCH_$(ARCH) -Wall -Wextra -Wno-unused-parameter $(WERROR_FLAG) \
	-ffile-prefix-map=$(CURDIR)=. -Isrc -Ibpf -MMD -MP $(SYSTEM_INCLUDES)

# Where the C compiler finds the headers of this architecture: a compiler for BPF does not look there.
SYSTEM_INCLUDES := $(shell LC_ALL=C $(CC) -E -v -x c /dev/null 2>&1 >/dev/null | \
	sed -n '/^.include <...> search/,/^End/s|^ \(/.*\)|-idirafter \1|p')

$(B)/%.bpf.o: %.bpf.c $(B)/flags | $(B)/tools.ok
	@mkdir -p $(@D)
	$(say) BPF $@
	$(Q)$(CLANG) $(BPF_CFLAGS) -MF $(@:.o=.d) -MT $@ -c $< -o $@

$(B)/%.skel.h: $(B)/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst .,_,$(notdir $*))_bpf > $@

$(call objs,$(wildcard src/profild/bpf/*.c src/profild/bpf/*/*.c src/profild/clock/*.c)): $(B)/bpf/profil.skel.h
$(B)/tests/gate/system/profil/kernel_vectors.o: $(B)/tests/vectors/vectors.skel.h
$(B)/tests/night/fuzz/state.o: $(B)/bpf/profil.skel.h
