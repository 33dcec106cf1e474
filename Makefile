# Everything runs from .venv, made here from nothing but Python 3.11+, make and pip.
PYTHON ?= python3
BIN := .venv/bin
# Compiled kernels; each file is valid for one state of all kernel sources, and replaced after a change.
export NUMBA_CACHE_DIR := $(CURDIR)/.venv/numba

# Processes that share the tests between them, one more than the cores of a small machine: some tests wait for a browser.
# Kernels that one has compiled the others read from the cache.
WORKERS ?= 3
XDIST := -n $(WORKERS) --dist worksteal
MINUTES ?= 10
# Tests of numbers, which depend on the processor
NUMERIC := $(addprefix tests/,laws mixture families kernels selection reference)

.PHONY: demo test test-as-laptop slow gpu-test fuzz peers check docs bench wheel wheel-test web clean

.venv/pip: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coterie needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

.venv/demo: .venv/pip
	$(BIN)/python -m pip install --quiet --editable '.[app]'
	touch $@

.venv/test: .venv/pip
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group test
	touch $@ .venv/demo

.venv/check: .venv/test
	$(BIN)/python -m pip install --quiet --group check
	touch $@

.venv/docs: .venv/pip
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group docs
	touch $@

.venv/bench: .venv/test
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

demo: .venv/demo  ## a small real table, its clusters, and a page about them
	@mkdir -p demo
	$(BIN)/coterie demo penguins -o demo/penguins.csv --force
	$(BIN)/coterie fit demo/penguins.csv -k 3 --missing drop --exclude year \
		--report demo/report.html -o demo/labelled.csv --force
	@echo; echo "Open file://$(CURDIR)/demo/report.html"
	@echo "Or explore the table in the browser: $(BIN)/coterie app demo/penguins.csv"

test: .venv/test  ## all tests but the slow ones
	$(BIN)/python -m pytest $(XDIST)

test-as-laptop: .venv/test  ## the tests as on a processor without AVX-512; TESTS=numeric: those of numbers only
	$(BIN)/python tests/processors.py laptop $(XDIST) $(if $(TESTS),$(NUMERIC))

.venv/slow: .venv/test
	$(BIN)/python -m pip install --quiet --group slow
	touch $@

# Tests that take minutes: long searches, large tables, every kernel for every width of registers, and those that need
# more packages and programs. Then all tests as on other processors, and those of numbers with NumPy kernels.
slow: .venv/slow
	.ci/install chromium ffmpeg postgresql
	$(BIN)/python -m pytest $(XDIST) -m slow
	$(BIN)/python tests/processors.py laptop $(XDIST)
	$(BIN)/python tests/processors.py nehalem $(XDIST)
	$(BIN)/python tests/processors.py skylakex $(XDIST)
	$(BIN)/python -m pytest $(XDIST) --numpy-kernels $(NUMERIC)

gpu-test: .venv/test  ## tests on an NVIDIA GPU: kernels, exact labels, the same bits in every run
	$(BIN)/python -m pip install --quiet --editable '.[gpu]'
	$(BIN)/python -m pytest -n 0 -m gpu tests/cuda

fuzz: .venv/test  ## random cases against laws, for MINUTES=10; SEED=7 repeats the cases of a run
	$(BIN)/python -m fuzz --minutes $(MINUTES) --workers $(WORKERS) $(if $(SEED),--seed $(SEED))

.venv/peers: .venv/test
	$(BIN)/python -m pip install --quiet --group peers
	touch $@

peers: .venv/peers  ## tests that the packages of scikit-learn, SciPy and hdbscan contain, against coterie
	$(BIN)/python -m peers

check: .venv/check  ## lint, types, import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	cd web && npm ci --silent
	touch $@

web: web/node_modules/.package-lock.json  ## scripts of pages, from web/ into the package: types, lint, bundles (needs Node 20+)
	cd web && npm run --silent check && npm run --silent build

docs: .venv/docs  ## the site, into docs/_build/html: every page, the gallery run, every warning an error
	$(BIN)/python -m sphinx -W --keep-going -q -j $(WORKERS) -d docs/_build/doctrees docs docs/_build/html
	@echo docs/_build/html/index.html

wheel: .venv/test  ## a wheel with compiled kernels, into dist/; LEVELS=host: for this machine only
	rm -rf dist .venv/kernels
	$(BIN)/python -m wheels.compile_kernels .venv/kernels $(LEVELS)
	COTERIE_COMPILED_KERNELS=$(CURDIR)/.venv/kernels $(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

wheel-test: wheel  ## installs that wheel into an empty environment: nothing is compiled there, results have the same bits
	$(BIN)/python -m wheels.check

bench: .venv/bench slow  ## after the slow tests, peers side by side; the machine should have nothing else to do
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.objective_against_time docs/_static/objective-against-time.png

clean:
	rm -rf .venv demo dist docs/_build docs/auto web/node_modules
