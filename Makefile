# The recipes of the repository. `make up` and `make test` work on a fresh machine with git and Python >= 3.11.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --require-virtualenv

# Without it a program of a hundred modules is compiled anew each time that it starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install up test gates test-real test-net faults check fix bench demo lock clean
.DEFAULT_GOAL := help

help: ## list the recipes
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Readyroom needs Python 3.11 or newer with its venv module (Debian: apt install python3-venv). Name another one with: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.txt pyproject.toml | $(BIN)/python
	$(PIP) --require-hashes -r requirements.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	$(PIP) --require-hashes -r requirements-dev.txt
	@touch $@

install: $(VENV)/.installed ## make the environment; the program is at .venv/bin/readyroom

up: install ## run everything on this machine (Ctrl-C stops it)
	$(BIN)/readyroom up

demo: install ## two agents on two boxes, one wakes the other
	$(BIN)/readyroom demo

test: $(VENV)/.installed-dev ## the tests that anyone can run (five minutes)
	$(BIN)/python -m pytest -n 6 -m "not real and not faults and not net and not long"

gates: $(VENV)/.installed-dev ## each gate of a wake, by the bytes that reach a program (a minute; wants tmux)
	$(BIN)/python -m pytest -q -n 2 tests/gates

test-real: $(VENV)/.installed-dev ## the real agent programs, from npm
	$(BIN)/python -m pytest -m real -n 2 tests/real

test-net: $(VENV)/.installed-dev ## partitions, in network namespaces (ten minutes; as root, or where users may make them)
	$(BIN)/python -m pytest -m net tests/net

faults: $(VENV)/.installed-dev ## what takes long: the kill suites, and many hostile or slow peers
	$(BIN)/python -m pytest -n 4 -m long
	$(BIN)/python -m pytest -m faults

bench: $(VENV)/.installed-dev ## the product beside pgbench, wakes and nudges; twelve minutes (wants wrk; WHAT=wakes: one alone)
	$(BIN)/python -m bench $(WHAT)

check: $(VENV)/.installed-dev ## format, lint, types, layers, compose, docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/hadolint deploy/Dockerfile
	$(BIN)/python -m pytest -q tests/docs

fix: $(VENV)/.installed-dev ## format and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## write the pinned, hashed dependency lists anew (wants uv)
	uv pip compile -q pyproject.toml --group build --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -o requirements.txt
	uv pip compile -q pyproject.toml --group dev -c requirements.txt --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate -o requirements-dev.txt

clean: ## remove the environment and caches (never data)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
