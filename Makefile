# Targets for newcomers, contributors and CI. `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
UV_VERSION := 0.13.9

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test fuzz check check-generated check-layers check-mypy check-pyright check-style gateway gateway-chaos bench-gateway gateway-conformance gateway-cookbook generate help-text drift diff-public evidence exports publish-contract absorb-history bench bench-delays bench-embedded bench-make bench-transports chaos mutants scale dist release calibrate conformance conformance-mutations test-official test-torch test-cookbook test-recipes test-third-party probe-third-party conformance-third-party lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

setup: $(READY)  ## create the virtual environment with exact versions of all tools

$(READY): pyproject.toml dev.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

demo: $(READY)  ## train, sample and reinforce a small model on real text, offline, in under 3 minutes
	$(BIN)/tinkerwire demo $(if $(TEXT),--text $(TEXT))

docs: $(READY)  ## build the site of the documentation in build/site, offline and strict
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --config-file docs/site/mkdocs.yml

# Three processes for the two cores of CI, since tests often wait; each takes tests in a row, whose fixtures it shares.
test: $(READY) check  ## run everything that decides on a change
	$(BIN)/python -m pytest -n 3 --dist worksteal

fuzz: $(READY)  ## mutate responses and arguments for an hour, or FUZZ_SECONDS; keep failing seeds
	PYTHONPATH=tests $(BIN)/python -m rigs.fuzz.run

# The longest first. Older versions of make mix the outputs of the checks; all print the name of the one that failed.
check: $(READY)  ## check that generated code is current, layers hold, types and style are clean
	$(MAKE) --no-print-directory --keep-going --jobs 2 $(if $(findstring output-sync,$(.FEATURES)),--output-sync) \
		check-pyright check-mypy check-generated check-layers check-style

check-pyright: $(READY)
	$(BIN)/pyright --pythonpath $(BIN)/python

check-mypy: $(READY)
	$(BIN)/mypy

check-generated: $(READY)
	$(BIN)/python -m tinkerwire_codegen check

check-layers: $(READY)
	$(BIN)/lint-imports

check-style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

gateway: $(READY)  ## drive servers of all versions through the gateway with clients of all versions; GATEWAY has options
	$(BIN)/python -m tests.rigs.gateway.run $(GATEWAY)

gateway-chaos: $(READY)  ## train and sample through the gateway, with failures on both sides of it and kills of it
	$(BIN)/python -m tests.rigs.gateway.chaos

gateway-conformance: $(READY)  ## test servers of several versions through the gateway by the conformance kit
	$(BIN)/python -m tests.rigs.gateway.conformance $(GATEWAY)

gateway-cookbook: $(READY)  ## run recipes of the cookbook through the gateway on two third-party servers
	$(BIN)/python -m tests.rigs.gateway.cookbook $(GATEWAY)

generate: $(READY)  ## generate generated/ from schema/
	$(BIN)/python -m tinkerwire_codegen generate

help-text: $(READY)  ## write the text of `tinkerwire --help`, which is printed without loading the command line
	$(BIN)/python -m tinkerwire._cli.help_page

drift: $(READY)  ## compare real releases of the official SDK with the contract; needs the package index
	$(BIN)/python -m pytest -n 2 tests/rigs/drift/released_suite.py tests/rigs/drift/changes_suite.py
	$(BIN)/python -m tinkerwire_codegen upstream latest

evidence: $(READY)  ## collect the evidence of the contract from all releases of the official SDK; needs the package index
	$(BIN)/python -m tinkerwire_codegen evidence --write --captures tests/facts/captures.json --observed docs/compatibility.md

exports: $(READY)  ## generate clients from exported documents by nine generators, and run them; needs npm, Java and Debian's Go
	$(BIN)/python -m tests.rigs.exports.run $(EXPORTS)

publish-contract: $(READY)  ## write documents, reference and changes of all wire versions to build/contract; needs npm
	$(BIN)/python -m tinkerwire_codegen publish $(PUBLISH)

diff-public: $(READY)  ## compare four large public documents with edited copies; the first run downloads 30 MB
	$(BIN)/python -m pytest -s -n 0 --timeout 300 tests/rigs/public_documents/suite.py

absorb-history: $(READY)  ## replay the history of the contract from the wheels of the official SDK; needs the package index
	PYTHONPATH=tests $(BIN)/python -m tests.rigs.absorb.run

bench: $(READY)  ## measure CPU, time and memory against the official SDK, in one run
	PYTHONPATH=tests $(BIN)/python -m tests.rigs.bench.run

bench-embedded: $(READY)  ## measure the embedded server: tokens a second beside torch, requests a second, memory
	$(BIN)/python -m tests.rigs.bench.embedded

bench-delays: $(READY)  ## measure delays with up to 100,000 samples that wait, beside the official SDK, in 30 minutes
	$(BIN)/python -m tests.rigs.bench.delays

bench-gateway: $(READY)  ## measure the CPU of the gateway for samples and batches, and its memory
	$(BIN)/python -m tests.rigs.bench.gateway

bench-make: $(READY)  ## time generate, check and the tests, and list the slowest tests
	$(BIN)/python -m tests.rigs.bench.make_times

bench-transports: $(READY)  ## compare HTTP clients for Python
	PYTHONPATH=tests $(BIN)/python -m tests.rigs.bench.transports

chaos: $(READY)  ## train and sample through faults of networks, servers and machines, in an hour; CHAOS names scenarios
	$(BIN)/python -m tests.rigs.chaos.run $(CHAOS)

mutants: $(READY)  ## check that each package's own tests notice small changes of its code; MUTANTS names packages
	$(BIN)/python -m tests.rigs.mutants.run $(MUTANTS)

scale: $(READY)  ## run rollouts in many processes, in Ray and in a DataLoader; the first run downloads 1 GB
	$(BIN)/python -m tests.rigs.scale.run

dist: $(READY)  ## build wheel, sdist and SBOM, and try them in empty environments of each Python
	$(BIN)/python -m tests.rigs.dist.run

release: $(READY)  ## set VERSION in the package, the contract and the changelog
	$(BIN)/python -m tests.rigs.dist.release $(VERSION)

calibrate: $(READY)  ## compare the predictions of the conformance kit with real runs; CALIBRATE has the arguments
	$(BIN)/python -m tests.rigs.conformance.calibration $(CALIBRATE)

conformance: $(READY)  ## run the conformance kit against the embedded server, at 14 wire versions and with all flags
	$(BIN)/python -m tests.rigs.conformance.run $(CONFORMANCE)

conformance-mutations: $(READY)  ## check that each mutation of the embedded server trips the requirements that are meant
	$(BIN)/python -m tests.rigs.conformance.run_mutations $(MUTATIONS)

test-official: $(READY)  ## drive the embedded server with the official SDK; compare models and protobuf with it
	$(BIN)/python -m tests.rigs.official.run
	$(BIN)/python -m tests.rigs.conformance.calibration
	$(BIN)/python -m pytest -n 2 tests/rigs/official/protobuf_suite.py tests/rigs/official/models_suite.py tests/rigs/official/values_suite.py tests/rigs/official/credentials_suite.py tests/rigs/official/images_suite.py tests/rigs/official/public_suite.py tests/rigs/official/cli_suite.py

test-torch: $(READY)  ## test custom losses with torch against the official SDK; the first run downloads 1 GB
	$(BIN)/python -m tests.rigs.official.torch_run

test-cookbook: $(READY)  ## run the cookbook's tests on both clients; the first run downloads 2 GB
	$(BIN)/python -m tests.rigs.cookbook.run

test-recipes: $(READY)  ## run the cookbook's recipes on both clients, against the embedded server
	$(BIN)/python -m tests.rigs.cookbook.recipes

test-third-party: $(READY)  ## drive two third-party servers with both clients
	$(BIN)/python -m tests.rigs.third_party.run
	$(BIN)/python -m tests.rigs.conformance.calibration --server skyrl-tx --server skyrl

probe-third-party: $(READY)  ## record the responses of those servers to about a hundred edge cases
	$(BIN)/python -m tests.rigs.third_party.probe

conformance-third-party: $(READY)  ## test two third-party servers with the conformance kit, and write docs/conformance
	$(BIN)/python -m tests.rigs.conformance.third_party

lock: $(READY)  ## resolve dev.lock again
	$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --group dev --group docs --upgrade \
		--extra httpx --extra otel --extra codegen --extra demo --extra images --extra server --extra gateway --extra conformance pyproject.toml -o dev.lock

clean:  ## remove virtual environments and caches
	rm -rf .venv* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
