# `make demo` and `make test` need nothing but Python 3.11+ and a C++ compiler: the rest comes into .venv.
#
#   make demo        a tour of Rushlight                make dev     in-place build, seconds after an edit
#   make test        the test suite                     make lint    ruff, mypy, clang-format
#   make test-torch  the suite's comparisons with torch make format  rewrite in the project's style
#   make bench       ratios against torch 2.13          make clean   remove what the build made
#   make bench-calls the same of everyday calls
#   make asan        the suite under ASan and UBSan     make coverage  rewrite docs/coverage.md, the stubs, the pictures
#   make tsan        tests with threads under TSan
#
# VENV=path uses (or makes) another virtual environment; TESTS=... and ARGS=... select tests and pass options.

PYTHON ?= python3
VENV   ?= .venv
TESTS  ?= tests
ARGS   ?=
THREADED ?= tests/test_threads.py

# Relative on the command line, absolute where a tool is told about it.
BIN    := $(abspath $(VENV))/bin
PY     := $(BIN)/python
PIP    := $(PY) -m pip --quiet --disable-pip-version-check

BUILD_TOOLS := scikit-build-core cmake ninja scipy-openblas32
TEST_TOOLS  := pytest hypothesis numpy safetensors tensorboardX
LINT_TOOLS  := ruff mypy clang-format==14.0.6
TORCH       := torch==2.13.0 numpy expecttest hypothesis

SOURCES := CMakeLists.txt pyproject.toml README.md LICENSE \
           $(shell find cmake native rushlight -type f \
                   -not -path '*/__pycache__/*' -not -path 'rushlight/_lib/*' -not -name '*.so')
CXX_SOURCES = $(shell find native -path native/third_party -prune -o \( -name '*.cpp' -o -name '*.h' \) -print)
# Run outside the source tree's rushlight/, which has no extension module unless `make dev` built one.
PYTEST := $(BIN)/pytest
INSTALLED := $(VENV)/.rushlight-installed

.PHONY: demo test test-torch bench bench-calls asan tsan coverage lint format dev clean

demo: $(INSTALLED)
	@$(PY) examples/tour.py

test: $(INSTALLED)
	$(PYTEST) $(TESTS) --ignore=tests/torch -m "not torch" $(ARGS)

test-torch: $(INSTALLED) $(VENV)/.rushlight-torch
	$(PYTEST) $(TESTS) -m torch $(ARGS)

bench: $(INSTALLED) $(VENV)/.rushlight-torch
	$(PY) benchmarks/run.py $(ARGS)

bench-calls: $(INSTALLED) $(VENV)/.rushlight-torch
	$(PY) benchmarks/calls.py $(ARGS)

coverage: $(INSTALLED)
	$(PY) tools/coverage.py
	$(PY) tools/pictures.py

# Python itself is not built with ASan, so its run time is loaded first; libstdc++ comes with it because ASan
# looks for __cxa_throw when it starts. PYTHONMALLOC=malloc lets ASan see every Python object.
asan: $(VENV)/.rushlight-tools
	$(PIP) install --no-build-isolation --no-deps --upgrade --target build/asan/site . \
		--config-settings=build-dir=build/asan/cmake \
		--config-settings=cmake.define.RUSHLIGHT_ASAN=ON \
		--config-settings=install.strip=false
	PYTHONPATH=$(abspath build/asan/site) PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so.6)" \
		$(PYTEST) $(TESTS) --ignore=tests/torch -m "not torch" -p no:cacheprovider $(ARGS)

# Python's lock is a mutex, which TSan sees although Python is built without it: what the lock protects is in
# order. OpenBLAS and NumPy are not looked into, nor are our loops over elements.
# Tests that race on elements on purpose are left out.
tsan: $(VENV)/.rushlight-tools
	$(PIP) install --no-build-isolation --no-deps --upgrade --target build/tsan/site . \
		--config-settings=build-dir=build/tsan/cmake \
		--config-settings=cmake.define.RUSHLIGHT_TSAN=ON \
		--config-settings=install.strip=false
	PYTHONPATH=$(abspath build/tsan/site) PYTHONMALLOC=malloc \
	TSAN_OPTIONS=exitcode=66 \
	LD_PRELOAD="$$($(CXX) -print-file-name=libtsan.so) $$($(CXX) -print-file-name=libstdc++.so.6)" \
		$(PYTEST) $(THREADED) -k "not overwrites" -p no:cacheprovider $(ARGS)

lint: $(VENV)/.rushlight-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=. $(BIN)/mypy --strict-equality --follow-imports=silent tests/typed_program.py
	@echo "clang-format --dry-run -Werror, of all in native/"
	@$(if $(CXX_SOURCES),$(BIN)/clang-format --dry-run -Werror $(CXX_SOURCES))

format: $(VENV)/.rushlight-lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(if $(CXX_SOURCES),$(BIN)/clang-format -i $(CXX_SOURCES))

# The extension module and OpenBLAS land in rushlight/, so that PYTHONPATH=. runs the source tree.
dev: $(VENV)/.rushlight-tools
	@test -f build/dev/build.ninja || PATH="$(BIN):$$PATH" cmake -S . -B build/dev -G Ninja \
		-DCMAKE_BUILD_TYPE=Release -DRUSHLIGHT_INPLACE=ON -DPython_EXECUTABLE=$(PY)
	PATH="$(BIN):$$PATH" cmake --build build/dev

clean:
	rm -rf build dist rushlight/_lib rushlight/_C*.so
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Rushlight needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.rushlight-tools: | $(VENV)/bin/python
	$(PIP) install $(BUILD_TOOLS) $(TEST_TOOLS)
	@touch $@

$(VENV)/.rushlight-lint: $(VENV)/.rushlight-tools
	$(PIP) install $(LINT_TOOLS)
	@touch $@

$(VENV)/.rushlight-torch: $(VENV)/.rushlight-tools
	$(PIP) install $(TORCH)
	@touch $@

# The build requirements live in the environment (no isolation), so that the build directory stays valid and a
# second install compiles only what changed.
$(INSTALLED): $(VENV)/.rushlight-tools $(SOURCES)
	@echo "Compiling Rushlight: some minutes the first time, then only what has changed."
	$(PIP) install --no-build-isolation --no-deps --force-reinstall .
	@touch $@
