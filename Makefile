# Two commands on a fresh machine: `make demo` and `make test`. Both set up what they need in .venv first.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest

.PHONY: demo test test-full check bench requirements clean

demo: .venv/runtime  ## the whole story on this machine: data, a training run, a model, a service, predictions
	@$(BIN)/lapis adopt >/dev/null  # so that a notebook tried here may begin with `pip install azureml-core`
	@$(BIN)/python examples/demo.py

test: .venv/dev check  ## the tests that fit into minutes
	$(PYTEST) -m "not full" -n 2 --dist loadgroup

test-full: .venv/dev check  ## all tests, the slow and heavy ones too
	$(PYTEST) -n 2 --dist loadgroup

check: .venv/dev  ## style, types and layers
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/dev  ## measure, beside the bare operation and a peer
	$(BIN)/python benchmarks/run.py

COMPILE := uv pip compile --quiet --no-header --no-annotate --no-emit-index-url --python-version 3.11

requirements:  ## compile the pinned lists again, of development and of the server (needs uv)
	$(COMPILE) --upgrade --extra server pyproject.toml requirements/dev.in --output-file requirements/dev.txt
	$(COMPILE) --universal --extra server --constraint requirements/dev.txt pyproject.toml \
		--output-file src/lapis/client/server_requirements.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Lapis needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) -V). Say which: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up .venv with $$($(PYTHON) -V) ..."
	$(PYTHON) -m venv .venv
	@touch $@

.venv/runtime: .venv/python pyproject.toml
	$(BIN)/python -m pip install --disable-pip-version-check --constraint requirements/dev.txt --editable '.[server]'
	@touch $@

.venv/dev: .venv/runtime requirements/dev.txt
	$(BIN)/python -m pip install --disable-pip-version-check --requirement requirements/dev.txt
	@touch $@
