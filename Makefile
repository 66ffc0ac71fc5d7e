# The front of the build: `make run` and `make check` do all the set-up on a fresh Debian 12, as
# root. Everything else is meson's (meson.build).
.PHONY: all run check build build-arm64 build-sanitize bench bench-vm format lint clean install

MESON_SETUP = $(shell [ -f $(1)/build.ninja ] || echo meson setup $(2) $(1) \&\&)

all: build

# Installs what is missing, builds, runs the main job on a sample workload.
run:
	@scripts/setup run
	@$(MAKE) --no-print-directory build
	@scripts/demo

# Installs what the tests need, builds, runs every test. Ends with `N passed, N failed, N skipped`.
check:
	@scripts/setup check
	@$(MAKE) --no-print-directory build build-sanitize build-arm64
	@tests/run

build:
	@$(call MESON_SETUP,build,) ninja --quiet -C build

build-sanitize:
	@$(call MESON_SETUP,build-sanitize,-Db_sanitize=address$(comma)undefined -Db_lundef=false -Doptimization=1 -Dwerror=false -Dtools=false) \
		ninja --quiet -C build-sanitize

build-arm64: build
	@scripts/build-arm64

bench:
	@scripts/setup bench
	@$(MAKE) --no-print-directory build build-arm64
	@bench/run

# The user half's virtual machine beside gcc -O2: one table of ratios. Two minutes; ABLATE=1: with
# each pass of the compiler off, too.
bench-vm:
	@scripts/setup bench
	@$(MAKE) --no-print-directory build build-arm64
	@bench/run $(if $(ABLATE),--ablate) vm

format:
	git ls-files '*.c' '*.h' | grep -Ev '^tests/(.*/bad|scripts)/' | xargs clang-format-14 -i

lint:
	@scripts/lint.t

install: build
	meson install -C build

clean:
	rm -rf build build-arm64 build-sanitize

comma := ,
