# Every target creates what it needs. `make` alone lists the targets.
VENV := .venv
INTEGRATIONS := integrations/.venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
CONFIG ?= broker.xml
ARGS ?=
ROUNDS ?=
EXCHANGE ?= publish
COMPILED_TESTS := tests/way tests/testing tests/unit/test_compile.py tests/unit/test_tls_records.py tests/unit/core tests/unit/stomp tests/unit/storage tests/queues tests/wire tests/model tests/sim tests/e2e
# What end to end proves of pages, commands, clients and documents alone, it proves on the sources.
NOT_COMPILED := console commands test_client_examples.py test_clients_of_other_languages.py test_container.py test_examples_to_copy.py \
	test_how_do_i.py test_readme.py test_shipped_configuration.py test_systemd.py test_user_commands.py test_websocket_in_a_browser.py

# Where it is set, each of the hundreds of processes that tests start would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install compile interpreted fresh run test test-fast test-compiled check bench way soak explore flaky oracle integrations docs site dashboards locked lock release clean

help: ## list the targets
	@echo "artemis_py: a message broker in Python. Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo "Variables: PYTHON=python3.12 (else the fastest on the path), CONFIG=broker.xml (make run), ROUNDS=3 (make explore, flaky),"
	@echo "           ARGS='…' (make run, test, bench, soak, explore), such as ARGS='--seed 1' to repeat a run of tests"
	@echo "           VERSION=0.2.0 (make release)"
	@echo "           OLD=commit or directory of an older version to measure beside this one (make bench)"

install: $(VENV)/.installed ## create .venv with the command artemis-py
	@echo "Ready: $(VENV)/bin/artemis-py"

compile: $(VENV)/.installed ## compile what runs per message (needs a C compiler; minutes, later seconds)
	@$(PY) tools/compile.py

interpreted: ## go back from compiled modules to the sources
	@$(PY) tools/compile.py --remove

fresh: | $(PY) ## go back to the sources if they are newer than what was compiled (others do this first)
	@$(PY) tools/compile.py --stale

run: $(VENV)/.installed ## start the broker on broker.xml, in the foreground, and compile it for the next start (COMPILE=no: not)
	@exec $(PY) tools/compile.py --run $(VENV)/bin/artemis-py run $(CONFIG) $(ARGS)

test: $(VENV)/.installed-test fresh ## run the tests; of parts that take long and did not change, a third; prints its seed and the slowest
	$(PY) -m pytest --numprocesses 4 --no-loadscope-reorder $(ARGS)

test-fast: $(VENV)/.installed-test-fast fresh ## run what takes less than a minute and needs neither Spark nor Java; says what it left out
	$(PY) -m pytest --fast --numprocesses 2 --no-loadscope-reorder $(ARGS)

test-compiled: $(VENV)/.installed-dev ## run the tests of compiled modules, and end to end what depends on them
	@if ! command -v cc >/dev/null && ! command -v gcc >/dev/null; then \
		echo "SKIPPED make test-compiled: there is no C compiler on this machine"; exit 0; fi; \
	export MYPYC_OPT_LEVEL=0; $(PY) tools/compile.py || exit 1; \
	$(PY) -m pytest --numprocesses 3 --no-loadscope-reorder $(COMPILED_TESTS) $(NOT_COMPILED:%=--ignore=tests/e2e/%) $(ARGS); result=$$?; \
	$(PY) tools/compile.py --remove; exit $$result

check: $(VENV)/.installed-dev ## ruff, mypy --strict and the tidy tests
	@failed=0; \
	$(PY) -m ruff check --output-format=concise . || failed=1; \
	$(PY) -m ruff format --check --quiet . || { echo "run: $(PY) -m ruff format ."; failed=1; }; \
	$(PY) -m mypy || failed=1; \
	$(PY) -m pytest -q --durations=0 tests/tidy || failed=1; \
	exit $$failed

bench: $(VENV)/.installed-dev ## start the broker (compiled, where that can be) and the peers found here, measure them, print one table
	-@$(PY) tools/compile.py
	$(PY) -m bench $(ARGS)

way: $(VENV)/.installed fresh ## print the way of a message, file by file (EXCHANGE=publish, durable, deliver, work, hundred, tls or secured)
	@$(PY) tools/way.py --guide $(EXCHANGE)

soak: $(VENV)/.installed-test fresh ## run the model and slow tests with many more examples, and a new seed
	$(PY) -m pytest -m "model or slow or takes_turns or thirds" --hypothesis-profile=soak --timeout=3600 --seed new $(ARGS)
	$(PY) -m pytest tests/spark --spark-cluster -m "not slow" --timeout=600 --seed new

explore: $(VENV)/.installed-test fresh ## run the model, simulation and fuzz tests with ROUNDS new seeds; prints how to repeat what fails
	$(PY) tools/explore.py --rounds $(or $(ROUNDS),3) $(ARGS)

flaky: $(VENV)/.installed-test fresh ## run all tests five times with new seeds (ROUNDS=N); prints each that failed, and with which seeds
	$(PY) tools/explore.py --rounds $(or $(ROUNDS),5) tests $(ARGS)

oracle: $(VENV)/.installed-test fresh ## record anew what every real Artemis at hand (ARTEMIS_HOME, .cache/*/apache-artemis-*) answers, and say what changed
	$(PY) -m tests.oracle.record

integrations: $(INTEGRATIONS)/.installed ## install the packages of integrations/ into an environment of their own, and run their tests and mypy
	@$(INTEGRATIONS)/bin/python integrations/packages.py test

docs: $(VENV)/.installed ## regenerate the pages that are made of code: configuration, operations, reload, why, differences
	$(PY) -m tools.docs
	$(PY) -m tests.oracle.differences.document

site: $(VENV)/.installed-site ## make the pages of docs/ into a site with search (build/site); a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict
	@echo "Ready: $(PY) -m http.server --directory build/site"

dashboards: $(VENV)/.installed-dev ## write the Grafana dashboards again (monitoring/grafana/dashboards)
	$(PY) -m monitoring.dashboards

locked: | $(PY) ## install exactly what requirements-dev.txt has, for tests, checks and the site (others then install nothing)
	@echo "Installing what requirements-dev.txt has …"
	@$(PIP) --require-hashes --requirement requirements-dev.txt
	@ARTEMIS_PY_MYPYC=0 $(PIP) --no-deps --no-build-isolation --editable .
	@touch $(VENV)/.installed $(VENV)/.installed-test-fast $(VENV)/.installed-test $(VENV)/.installed-dev $(VENV)/.installed-site

lock: $(VENV)/.installed-dev ## write requirements-dev.txt anew: the newest packages that pyproject.toml allows, with hashes
	@$(PY) -m uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
		--no-header --upgrade --extra test --extra dev --extra docs --output-file requirements-dev.txt pyproject.toml

release: $(VENV)/.installed-dev ## build sdist and wheel of VERSION, try them, date the changelog, commit and tag (ARGS=--dry-run: only try)
	@$(PY) tools/release.py "$(VERSION)" $(ARGS)

clean: ## remove .venv, caches and build results (never the broker's data)
	rm -f *__mypyc.*.so && find artemis_py -name '*.so' -delete
	rm -rf $(VENV) $(INTEGRATIONS) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find artemis_py tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

# Until its name was found to be somebody else's the distribution was called artemis_py; a checkout of then has it still.
# ARTEMIS_PY_MYPYC=0: an editable install compiles nothing, so it need not fetch mypy. Stamps: a second `make run` is
# instant, and a changed pyproject.toml installs again.
$(PY):
	@sh tools/venv.sh $(VENV)

$(VENV)/.installed: pyproject.toml | $(PY)
	@echo "Installing artemis_py into $(VENV) …"
	@$(PY) -m pip uninstall --quiet --yes --disable-pip-version-check artemis_py 2>/dev/null
	@ARTEMIS_PY_MYPYC=0 $(PIP) --editable .
	@touch $@

$(VENV)/.installed-test-fast: $(VENV)/.installed
	@echo "Installing what the fast tests need …"
	@ARTEMIS_PY_MYPYC=0 $(PIP) --editable '.[test-fast]'
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed-test-fast
	@echo "Installing what the tests need …"
	@ARTEMIS_PY_MYPYC=0 $(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.installed-site: $(VENV)/.installed
	@echo "Installing MkDocs …"
	@ARTEMIS_PY_MYPYC=0 $(PIP) --editable '.[docs]'
	@touch $@

# Django 6 needs Python 3.12; pyenv's shims may hide one.
$(INTEGRATIONS)/bin/python:
	@PYTHON="$(or $(PYTHON),python3.14 python3.13 python3.12 $(wildcard $(HOME)/.pyenv/versions/3.1[2-9].*/bin/python) python3 python)" \
		sh tools/venv.sh $(INTEGRATIONS)

# The packages as their users have them: wheels, not editable, beside the broker of this checkout.
$(INTEGRATIONS)/.installed: pyproject.toml $(wildcard integrations/*/pyproject.toml integrations/*/*/*.py integrations/*/*/*/*/*.py) | $(INTEGRATIONS)/bin/python
	@echo "Installing the packages of integrations/ into $(INTEGRATIONS) …"
	@$(INTEGRATIONS)/bin/python -m pip install --quiet --disable-pip-version-check 'hatchling>=1.26,<2'
	@packages=$$($(INTEGRATIONS)/bin/python integrations/packages.py list) || exit 1; \
	pip="$(INTEGRATIONS)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation"; \
	$$pip --force-reinstall --no-deps $$packages && \
	ARTEMIS_PY_MYPYC=0 $$pip --editable . $$(for package in $$packages; do echo "$$package[test]"; done)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed-test
	@echo "Installing ruff and mypy …"
	@ARTEMIS_PY_MYPYC=0 $(PIP) --editable '.[test,dev]'
	@touch $@
