# Everything a newcomer types. Needs python3 (3.11 or newer), make and a package index; nothing else.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One stamp for each set of packages that has been installed.
BASE  := $(VENV)/.installed
TEST  := $(VENV)/.installed-test
DEV   := $(VENV)/.installed-dev
TORCH := $(VENV)/.installed-torch
SITE  := $(VENV)/.installed-site
# What only `test-all` wants: other engines and the site; a Vulkan driver that needs no GPU, browsers.
WHOLE  := $(VENV)/.installed-test-all
SYSTEM := $(VENV)/.system
# More workers than this cost more to start than they save. Byte code is kept whatever the environment
# says: every worker, and every process that a test starts, imports the package.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-exhaustive mutation test-torch lint format docs site ui native bench env \
	clean distclean

help:
	@echo 'make demo        train the GPT on the bundled names, print samples, draw its gradient'
	@echo 'make test        the tests in brief: a sample of each sweep, no slow ones'
	@echo 'make test-all    every test: whole sweeps, and the slow ones'
	@echo 'make test-exhaustive  what takes hours: more seeds, more sizes'
	@echo 'make mutation    change every derivative rule a little, report what no test notices'
	@echo 'make test-torch  install PyTorch (large), then the tests that compare with it'
	@echo 'make lint        ruff check, ruff format --check, mypy'
	@echo 'make format      mend what ruff can mend'
	@echo 'make docs        docs/operations.md, made anew from the operations'
	@echo 'make site        the documentation as a site, in site/'
	@echo 'make ui          the explorer, built anew from its TypeScript; needs Node'
	@echo 'make native      the native runtime and matrix products, compiled anew'
	@echo 'make bench       every workload beside the peers that are installed; BENCH="W1 --threads 1"'
	@echo 'make env         only the environment, with everything a developer needs'
	@echo 'make clean       remove caches, builds and the output of the demo'
	@echo 'make distclean   remove the environment as well'

demo: $(BASE)
	$(BIN)/retrograd train gpt --out demo/gpt --drawing demo/gradient.html

test: $(TEST)
	$(PYTEST) --sample -m 'not slow and not exhaustive and not torch' --durations=10

test-all: $(WHOLE) $(SYSTEM)
	$(PYTEST) -m 'not exhaustive' --durations=20

test-exhaustive: $(TEST)
	$(PYTEST) -m exhaustive --durations=20

mutation: $(TEST)
	PYTHONPATH=src $(BIN)/python -m scripts.mutation $(MUTATE)

test-torch: $(TORCH)
	$(PYTEST) -m torch

lint: $(DEV)
	$(BIN)/python -m ruff check
	$(BIN)/python -m ruff format --check
	$(BIN)/python -m mypy src tests $(sort $(dir $(wildcard benchmarks/*.py docs/*.py examples/*.py scripts/*.py)))

format: $(DEV)
	$(BIN)/python -m ruff check --fix
	$(BIN)/python -m ruff format

docs: $(TEST)
	$(BIN)/python -m scripts.operations
	$(BIN)/python -m scripts.coming_from
	$(BIN)/python -m scripts.backends
	$(BIN)/python -m scripts.certificates

site: $(SITE)
	$(BIN)/python -m scripts.site

ui:
	cd src/retrograd/viz/ui && npm ci --no-audit --no-fund && npm run build

native: $(DEV)
	$(BIN)/python -m scripts.native
	$(BIN)/python -m scripts.routines

bench: $(BASE)
	$(BIN)/python -m benchmarks $(BENCH)

env: $(DEV)

clean:
	rm -rf build dist demo site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks examples scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	rm -rf $(VENV) src/retrograd.egg-info

# The environment is made once; what is in it is brought up to date when one of these has changed.
# Installing a set renews the stamps of the sets within it.
SOURCES := pyproject.toml setup.py $(wildcard src/retrograd/accelerate/*.[ch])

$(BASE): $(SOURCES) | $(BIN)/pip
	$(call install,retrograd,,$(BASE))

$(TEST): $(SOURCES) | $(BIN)/pip
	$(call install,retrograd and its test tools,[test],$(BASE) $(TEST))

$(WHOLE): $(SOURCES) | $(BIN)/pip
	$(call install,retrograd and all that its tests can use,[test-all],$(BASE) $(TEST) $(WHOLE))

# Mesa's lavapipe. Where it cannot be had, the tests that need a Vulkan device say that they skip.
# Of Debian's packages, each by itself: tests that lack one say so and are skipped.
$(SYSTEM): | $(BIN)/pip
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	echo 'Installing a Vulkan driver and browsers, once ...'; apt-get -qq update >/dev/null 2>&1; \
	for package in mesa-vulkan-drivers chromium firefox-esr; do \
	apt-get -qq install -y --no-install-recommends $$package >/dev/null 2>&1 \
	|| echo "$$package could not be installed"; done; fi
	@touch $@

$(DEV): $(SOURCES) | $(BIN)/pip
	$(call install,retrograd and its developer tools,[dev],$(BASE) $(TEST) $(DEV))

$(TORCH): $(SOURCES) | $(BIN)/pip
	$(call install,retrograd with its test tools and PyTorch,[torch],$(BASE) $(TEST) $(TORCH))

$(SITE): $(SOURCES) | $(BIN)/pip
	$(call install,retrograd and what builds its site,[site],$(BASE) $(SITE))

is_new_enough = -c 'import sys; sys.exit(sys.version_info < (3, 11))'

# pip and not python: it is what is missing when making the environment was cut short.
$(BIN)/pip:
	@$(PYTHON) $(is_new_enough) 2>/dev/null || { echo "error: retrograd needs Python 3.11 or newer,\
	 but '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 | tail -n 1); try: make PYTHON=python3.11" >&2; exit 1; }
	@echo 'Creating $(VENV) ...'
	@$(PYTHON) -m venv $(VENV)

# install(what, extra, stamps)
define install
@$(BIN)/python $(is_new_enough) || { \
	echo 'error: $(VENV) was made by a Python older than 3.11; run: make distclean' >&2; exit 1; }
@echo 'Installing $(1) into $(VENV), once ...'
@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.$(2)'
@touch $(3)
endef
