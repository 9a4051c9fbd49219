# Each target makes and reuses its own environment under .venv: Python ≥ 3.11 and a C++ compiler are
# all it needs.
PYTHON ?= python3
# NATIVE=OFF goes without the compiled engine and without a compiler; the torch engine takes its place.
NATIVE ?= ON
ifeq ($(filter ON OFF,$(NATIVE)),)
$(error NATIVE=$(NATIVE) is neither ON nor OFF. Give one of them)
endif
BIN := .venv/bin
# Named after what was installed: with the engine where it was left out before, it is installed anew.
STAMP := .venv/.installed-native-$(NATIVE)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	--config-settings=cmake.define.PETRIDISH_NATIVE=$(NATIVE)

.PHONY: demo test test-long test-portable lint docs bench clean

demo: $(STAMP)
	$(BIN)/petridish demo

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

# Stress and comparisons that take many minutes each: before a release, or after a change to what they test.
test-long: $(STAMP)
	$(BIN)/python -m pytest -m long

# The same tests on machines that this one can pretend to be; ONLY=--quick for the tests of numbers.
test-portable: $(STAMP)
	$(BIN)/python -m tests.portable $(ONLY)

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Every page, the reference of the public names and a gallery as a site; a broken link fails.
docs: .venv/.installed-docs
	$(BIN)/sphinx-build -q -n -W --keep-going -c docs . build/site
	$(BIN)/python docs/dead_links.py build/site
	@echo "The site is in build/site/index.html."

bench: $(STAMP)
	$(BIN)/petridish bench

clean:
	rm -rf .venv build

$(STAMP): pyproject.toml constraints.txt CMakeLists.txt $(wildcard native/*)
	@command -v $(PYTHON) >/dev/null || \
		{ echo "petridish: there is no $(PYTHON). Give a Python of 3.11 or newer: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "petridish needs Python 3.11 or newer; $(PYTHON) is older. Give another: make PYTHON=python3.12"; exit 1; }
	@test $(NATIVE) = OFF || \
		{ command -v $${CXX:-c++} || command -v g++ || command -v clang++; } >/dev/null || \
		{ echo "petridish: no C++ compiler was found, and the native engine needs one. Install one" \
			"(Debian: apt install g++), or go on without that engine: make NATIVE=OFF demo"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e '.[dev]'
	rm -f .venv/.installed*
	touch $(STAMP)

.venv/.installed-docs: $(STAMP)
	$(INSTALL) -e '.[docs]'
	touch $@
