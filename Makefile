# `make demo` and `make test` each take a fresh clone to the finished result.
# They need Python 3.11 or newer and make; everything else comes from PyPI.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The packages of constraints.txt, each file compared with its hash.
HASHED := $(INSTALL) --require-hashes --no-deps -r
# This version installs as a CPU build with pip; other versions may pull CUDA packages.
TORCH ?= torch==2.13.0

.PHONY: demo quick test tests slowest torture wheel-test docs check format constraints clean

demo: $(VENV)/.demo
	$(BIN)/argnn demo

# In the order of tests/conftest.py. Threads of the few tests that have several sleep while they wait.
# Python may store what it compiles, also where the environment forbids it: else every process
# compiles all files again.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE \
	$(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder

# For every day: ruff, mypy with what it knows already, and one fast case of every test.
quick: check
	$(PYTEST) -n 2 --quick

# mypy takes half a minute of one core in a fresh clone, beside the tests.
test: $(VENV)/.test
	$(MAKE) --no-print-directory -j 2 check tests

# Tests often wait (for a browser, for Ray, for a process that starts): three keep two cores busy.
tests: $(VENV)/.test
	$(PYTEST) -n 3 --junitxml=build/tests.xml

# After `make test` on a quiet machine.
slowest: $(VENV)/.test
	$(BIN)/python scripts/slowest_tests.py

torture: $(VENV)/.test
	# As root it also closes files to another user and fills disks.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m torture
	$(BIN)/python -m tests.adversarial --write docs/torture.md

# The wheel in an empty environment outside the repository: demo, train, predict, analyze.
wheel-test: $(VENV)/.demo
	scripts/try_wheel.sh $(CURDIR)/$(BIN)/python $(CURDIR)/$(VENV)/demo.txt $(TORCH)

docs: $(VENV)/.test
	$(BIN)/sphinx-build -W -n docs build/site
	@echo "The site is in build/site/index.html"

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# UPGRADE=--upgrade takes the newest versions instead of the present ones.
constraints: $(VENV)/.test
	$(BIN)/python scripts/renew_constraints.py $(TORCH) $(UPGRADE)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "argnn needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# Torch, whose files differ between machines, and what it needs on this one come without hashes.
$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	sed '/^# for make test/q' constraints.txt > $(VENV)/demo.txt
	$(HASHED) $(VENV)/demo.txt
	$(INSTALL) --no-build-isolation $(TORCH) -e '.[plot]'
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(HASHED) constraints.txt
	$(INSTALL) --no-build-isolation $(TORCH) -e '.[dev]'
	touch $@
