# The same verbs for everyone. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
READY := $(VENV)/.ready
COMPILE := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" -q

.PHONY: setup up test quick soak check sim mutants stories bench lock
.DEFAULT_GOAL := setup

setup: $(READY)
	@command -v java >/dev/null 2>&1 || echo "note: Java 17 or newer is missing; the Java judges in 'make test', 'make bench' and Spark need it (Debian: apt-get install openjdk-17-jre-headless)"
	@command -v mvn >/dev/null 2>&1 || echo "note: Maven is missing; it fetches Apache Kafka's jars for the Java judges and 'make bench' (Debian: apt-get install maven)"

# What the commands need, and no more: half a minute, where everything (Spark is 400 MB) takes two.
$(CORE): requirements-core.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "setting up $(VENV): once, about half a minute"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-core.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src  # so that the first start is as quick as the others
	@touch $@

$(READY): $(CORE) requirements.lock
	@echo "adding Spark, the judges and the checks to $(VENV): once, one to two minutes"
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@touch $@

up: $(CORE)
	@$(BIN)/strandline up

# Everything that a landing must pass, in 15 minutes on two cores.
test: setup check
	$(BIN)/python -m tests

# The developer's loop: what needs no process but its own.
quick: check
	$(BIN)/python -m pytest -n 2 -q tests/unit tests/worlds tests/fuzz

# What takes too long for every change: many more histories, from a range of their own, every mutant, and tests that repeat
# themselves more often (tests/soak.py).
soak: $(READY)
	$(BIN)/strandline sim $(if $(TIME),--time $(TIME),--seeds $(or $(SEEDS),2000)) --first $(or $(FIRST),100000) --require 50
	$(BIN)/python -m tests.mutants
	STRANDLINE_SOAK=1 $(BIN)/python -m pytest -q $(shell grep -rlE "import (times|soak_only)" tests --include="test_*.py")

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m strandline.wire.stubs --check
	$(BIN)/python -m tests.rulebook

# As many histories as one gives it: SEEDS=5000, or TIME=10m; FIRST=1000 begins elsewhere.
sim: $(READY)
	$(BIN)/strandline sim $(if $(TIME),--time $(TIME),--seeds $(or $(SEEDS),1000)) --first $(or $(FIRST),0) --coverage

# The code broken on purpose, one rule at a time: who notices? FRESH=1 searches the seeds again.
mutants: $(READY)
	$(BIN)/python -m tests.mutants $(if $(FRESH),--fresh --unseen --update)

# The pages and pictures of docs/stories, told anew.
stories: $(READY)
	$(BIN)/python -m strandline.stories --write docs/stories

bench: setup
	$(BIN)/python -m bench

# Pin every package by version and hash; the file names no index host.
lock:
	uv pip compile pyproject.toml --group dev --extra spark $(COMPILE) -o requirements.lock
	uv pip compile pyproject.toml --group build --constraint requirements.lock $(COMPILE) -o requirements-core.lock
