# Everything people and CI do. Each target installs what it needs; a second call starts at once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HARNESS := $(BIN)/python -m tests.cluster.harness
PYTEST_FLAGS ?=
# One computes, the others wait for clusters (tests/side_by_side.py): for two cores, and enough for more.
WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help test test-unit test-sim test-chart test-all test-newer-python conformance lint format bench cluster cluster-down run image e2e sim crds chart clean

help: ## this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  \1\t/' | expand -t 22

$(VENV)/ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "evenkeel: Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "evenkeel: $(PYTHON) has no venv module; on Debian: apt-get install python3-venv" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check $$(grep -oE '^uv==[0-9.]+' requirements.txt)
	$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes requirements.txt
	$(BIN)/uv pip install -q --no-deps --no-build-isolation --python $(BIN)/python -e .
	@touch $@

requirements.txt: pyproject.toml
	@test -x $(BIN)/uv || { touch $@; exit 0; }; \
	  $(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	    --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links -q -o $@

lint: $(VENV)/ready ## formatting, rules, types, and who may import whom
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/ready ## let ruff format and mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: lint ## what CI runs: lint and every suite but its long forms
	$(HARNESS) build
	$(BIN)/python -m pytest -n $(WORKERS) -m "not long" $(PYTEST_FLAGS)

test-unit: $(VENV)/ready ## the pure packages
	$(BIN)/python -m pytest -n $(WORKERS) -m "not long" tests/unit $(PYTEST_FLAGS)

test-sim: $(VENV)/ready ## the whole operator on a virtual clock
	$(BIN)/python -m pytest -n $(WORKERS) -m "not long" tests/sim $(PYTEST_FLAGS)

test-all: lint ## lint and every suite, the long forms too
	$(HARNESS) build
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_FLAGS)

bench: $(VENV)/ready ## figures as JSON, compared with tests/bench/range.toml
	@$(BIN)/python -m tests.bench $(BENCH_FLAGS)

cluster: $(VENV)/ready ## a Kubernetes with fake Pods, without the operator: eval "$(make -s cluster)"
	@$(HARNESS) up --name dev --pods kwok

cluster-down: $(VENV)/ready ## stop every cluster that make started for you, that of a `make run` too
	@$(HARNESS) down

# Only a KUBECONFIG on make's own command line is meant for us: the exported one is somebody's cluster.
run: $(VENV)/ready ## start here: a cluster, the operator and examples; KUBECONFIG=path for a cluster of yours
	@$(BIN)/python -m tests.cluster.harness.run $(if $(findstring command,$(origin KUBECONFIG)),--kubeconfig $(KUBECONFIG))

image: $(VENV)/ready ## the operator's image, into build/
	@$(BIN)/python -m tests.cluster.harness.image

test-newer-python: $(VENV)/ready ## units and the simulator on Python 3.13, from Debian 13 if need be
	$(BIN)/python -m tests.newer_python -m "not long" tests/unit tests/sim $(PYTEST_FLAGS)

e2e: $(VENV)/ready ## real Pods on a real node
	$(BIN)/python -m pytest -m "not long" tests/e2e $(PYTEST_FLAGS)

conformance: $(VENV)/ready ## Kubernetes' own CronJob specs against ScheduledJobs; STOCK=1 against CronJobs
	@$(BIN)/python -m tests.e2e.cronjob_specs $(if $(STOCK),--stock)

sim: $(VENV)/ready ## simulate: SEEDS=5000 FIRST=20000 many, SEED=123 one again
	$(BIN)/python -m tests.sim $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST))

crds: $(VENV)/ready ## write crds/ and the chart's part of it from the models
	@$(BIN)/python -m evenkeel.resource.crd scheduledjobs > crds/scheduledjobs.evenkeel.dev.yaml
	@$(BIN)/python -m evenkeel.resource.crd runrequests > crds/runrequests.evenkeel.dev.yaml
	@$(BIN)/python -m evenkeel.resource.crd hash > operator/evenkeel/resource/schema_hash.py
	@$(BIN)/python -m tests.chart.generate

chart: crds ## write all that is generated in charts/evenkeel
	@$(BIN)/python -m tests.chart.generate --readme

test-chart: $(VENV)/ready ## what the chart renders and refuses
	$(BIN)/python -m pytest tests/chart $(PYTEST_FLAGS)

clean: ## remove what make made in this folder
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
