# `make demo` and `make test` each take a fresh clone to the finished result.
# They need Python 3.11 or newer and make; everything else comes from PyPI.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test torture docs check format clean

demo: $(VENV)/.demo
	$(BIN)/argnn demo

test: check
	# One thread for each of two processes, in the order of tests/conftest.py.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

torture: $(VENV)/.test
	# As root it also closes files to another user and fills disks.
	$(BIN)/python -m tests.adversarial --write docs/torture.md

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W -n docs build/site
	@echo "The site is in build/site/index.html"

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "argnn needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# torch first: the constraint pins a build that needs no CUDA packages.
$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) torch
	$(INSTALL) -e '.[plot]'
	touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) torch
	$(INSTALL) -e '.[dev]'
	touch $@

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) torch
	$(INSTALL) -e '.[docs]'
	touch $@
