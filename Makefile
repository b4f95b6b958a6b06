# On a fresh machine: `make demo`, `make notebooks` and `make test`.
# Everything is installed into VENV, which is made and kept up to date as needed.

VENV   ?= .venv
# The Python that makes VENV: the first of these that is 3.11 or newer. Say PYTHON=... to choose.
PYTHON ?=
# What JupyterLab is given besides: make notebooks LAB=--no-browser
LAB    ?=
# Processes that the tests run in, and what else pytest is given (TESTS="-k split").
JOBS   ?= 2
TESTS  ?=

BIN   := $(VENV)/bin
STAMP := $(VENV)/.installed
LAB_STAMP := $(VENV)/.installed-notebook

.PHONY: help demo notebooks test slow check docs format goldens install clean

help:
	@echo 'make demo       show a kernel from text to result'
	@echo 'make notebooks  open the notebooks in JupyterLab'
	@echo 'make test       run the tests, in less than ten minutes'
	@echo 'make slow       run those that take longer: long walks, all pairs, every architecture'
	@echo 'make check      formatting, lint, types and the lines of code'
	@echo 'make docs       build the documentation into build/docs'
	@echo 'make format     put the formatting right'
	@echo 'make goldens    write the expected texts of the tests anew'
	@echo 'make install    only make $(VENV) ready'
	@echo 'make clean      remove $(VENV) and what the tools left behind'

demo: $(STAMP)
	@$(BIN)/loopkit demo

# Jupyter runs notebooks in the Python that it is found beside, which is the one of VENV. It refuses
# to serve as root unless told to, and in a container nobody else is there.
notebooks: $(LAB_STAMP)
	JUPYTER_PREFER_ENV_PATH=1 $(BIN)/python -m jupyterlab \
	    --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks \
	    $(if $(filter 0,$(shell id -u)),--allow-root) $(LAB)

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) -m 'not slow' --durations=15 $(TESTS)

slow: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) -m slow --durations=15 $(TESTS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tests.lines

docs: $(STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -j $(JOBS) -b html docs build/docs
	@echo 'build/docs/index.html'

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

goldens: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --regenerate-goldens $(TESTS)

install: $(STAMP)

clean:
	rm -rf $(VENV) build dist loopkit.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(STAMP): pyproject.toml
	@set -e; \
	good() { "$$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }; \
	python='$(PYTHON)'; \
	if [ -z "$$python" ]; then \
	    for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	        if good $$p; then python=$$p; break; fi; \
	    done; \
	fi; \
	if [ -z "$$python" ]; then \
	    echo 'loopkit needs Python 3.11 or newer, and none is on the PATH.' >&2; \
	    echo 'Install one, or name it: make PYTHON=/path/to/python3.12 ...' >&2; exit 1; \
	fi; \
	if ! good "$$python"; then \
	    echo "loopkit needs Python 3.11 or newer; PYTHON=$$python is not one." >&2; exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	    echo "$$python has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
	fi; \
	if ! good $(BIN)/python; then \
	    echo "making $(VENV) with $$("$$python" --version)"; \
	    "$$python" -m venv --clear $(VENV); \
	fi; \
	echo 'installing loopkit into $(VENV)'; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cuda,dev,docs]'; \
	touch $@

$(LAB_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cuda,notebook]'
	touch $@
