PYTHON ?= python3
JOBS ?= 2
ARGS ?=
BIN := .venv/bin
PIP := -m pip install -qq --disable-pip-version-check

.PHONY: help setup test check format coverage bench demo docs lock clean

help:  ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: .venv/.installed  ## Make .venv with all extras, from the lock, by hash

.venv/.locked: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit("Headway needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python $(PIP) --require-hashes -r requirements.lock
	@touch $@

.venv/.installed: .venv/.locked pyproject.toml tools/native.py src/headway/_bulk.c
	$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

test: setup  ## Run every test (JOBS=2, ARGS=)
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

check: setup  ## Format, lint, types, tests and docs
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(MAKE) test docs

format: setup  ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

coverage: setup  ## Run every test and show what none of them reached
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(JOBS) $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: setup  ## Run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

demo: setup  ## Show the product at work
	$(BIN)/headway demo

docs: setup  ## Check that the generated pages are current
	$(BIN)/python tools/docs.py --check

lock:  ## Resolve requirements.lock again (ARGS=--upgrade for newer versions)
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/python $(PIP) uv
	.venv-lock/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-emit-index-url --custom-compile-command 'make lock' --quiet -o requirements.lock $(ARGS)
	rm -rf .venv-lock

clean:  ## Remove what the commands above made
	rm -rf .venv .venv-lock build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
