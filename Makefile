# Two commands need only Python 3.11 or later, git and make:
#   make run    set up, start the development service, show the main job on a real report
#   make test   set up, run every test
#   make quick  every test that takes less than a tenth of a second, on LMDB alone
# PYTHON=python3.13 takes another Python than `python3.11`; SVC_BIND=127.0.0.1:8081 runs at another port than 8080.

SHELL := /bin/bash
PYTHON ?= python3.11
BIN := .venv/bin
# More processes than the two cores of a small machine: many tests wait for programs that they start.
PARALLEL := -n 4 --dist worksteal
# Quick tests wait for nothing, and each process imports and collects all of them.
QUICK_PARALLEL := -n 2 --dist worksteal
# Without compiled modules, as in images of Python, each of them would take twice as long to begin.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-long quick venv web docs check format bench bench-stages bench-pages sim fuzz accuracy detection reference screenshots browsers wheel executable deb version release clients android lock clean

run: venv
	$(BIN)/svc dev

test: venv
	$(BIN)/pytest $(PARALLEL)

# As `test`, with every example, seed and case of which that takes a share.
test-long: venv
	EFFORT=long $(BIN)/pytest $(PARALLEL)

quick: venv
	$(BIN)/pytest $(QUICK_PARALLEL) -m "not slow"

venv: .venv/ready web docs

# The web SDK and the pages, into svc/web_static: needs node from version 20 on, or takes that of the virtual environment.
# Where there is no npm it says so, and everything else goes on.
web: .venv/ready
	@$(BIN)/python -m tools.web

# The documentation as a site, into svc/docs_site: its links are checked. Diagrams need what `make web` installs.
docs: .venv/ready web
	@$(BIN)/python -m tools.docs

.venv/ready: requirements.lock pyproject.toml
	@echo "Setting up .venv with $(PYTHON), once; it takes from half a minute to some minutes."
	@$(PYTHON) -m venv .venv
	@echo "Installing the $$(grep -c == requirements.lock) libraries of requirements.lock; a dot is a download:"
	@set -o pipefail; PYTHONUNBUFFERED=1 $(BIN)/pip install --disable-pip-version-check --no-deps --require-hashes -r requirements.lock \
	  2> .venv/pip.log \
	  | while read -r word _; do case $$word in Collecting|Processing) printf .;; Installing) printf ' unpacking';; esac; done \
	  || { echo; cat .venv/pip.log; exit 1; }
	@echo
	@echo "Installing svc from this checkout."
	@PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# What must be green before a commit.
check: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(MAKE) test

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: venv
	$(BIN)/python -m bench.identify

# CPU of an identification by stage, with small and large reports of the web SDK (bench/reports.py says which).
bench-stages: venv
	$(BIN)/python -m bench.stages --report small
	$(BIN)/python -m bench.stages --report large

# What an identification writes to the disk, in stores of up to a million visitors and ten million events: some minutes, and
# 10 GB of the folder SCRATCH or the temporary directory, given back. VISITORS="0 100000" for other sizes.
bench-pages: venv
	$(BIN)/python -m bench.pages $(if $(VISITORS),--visitors $(VISITORS)) $(if $(SCRATCH),--scratch $(SCRATCH))

# The whole service under faults, on virtual time: a seed is 24 hours, 10 organizations and 40 endpoints. SEEDS=n for so
# many, SEED=k for the first of them (that one alone without SEEDS), JOBS=n processes, SCALE=short for 3 hours of 3,
# WORKERS=2 for a service of two workers, of which one, the leader or the parent is killed now and then.
sim: venv
	$(BIN)/python -m tests.sim --seeds $(or $(SEEDS),$(if $(SEED),1,20)) --first $(or $(SEED),0) --jobs $(or $(JOBS),2) \
	  --scale $(or $(SCALE),full) --workers $(or $(WORKERS),1)

# What comes from outside, made up for as long as is wanted. SECONDS=n for all targets together, TARGET=name for one.
fuzz: venv
	$(BIN)/python -m tests.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(TARGET),--target $(TARGET))

# Replays the streams of the shared data beside the project, and rewrites the figures in docs. STREAMS="small dev" for
# some of them; VISITORS=100000 to measure cost among so many at most; SEEDS=1 for fewer runs of "one browser, one visitor";
# JSON=file for every figure.
accuracy: venv
	$(BIN)/python -m bench.linkage.accuracy $(if $(STREAMS),--streams $(STREAMS)) $(if $(VISITORS),--visitors $(VISITORS)) \
	  $(if $(SEEDS),--seeds $(SEEDS)) $(if $(JSON),--json $(JSON))

# Looks at the user agents and addresses of the shared data beside the project. NETWORK=DIR to measure the databases in a
# folder, too.
detection: venv
	$(BIN)/python -m bench.detection $(if $(NETWORK),--network $(NETWORK))

# What of the documentation is generated from the program. A test tells when it is out of date.
reference: web
	$(BIN)/svc openapi > docs/openapi.json
	set -e; for page in api commands configuration metrics report-fields signals; do $(BIN)/python -m tools.reference $$page > .venv/page; cp .venv/page docs/$$page.md; done
	$(BIN)/python -m tools.reference settings > .venv/page
	cp .venv/page ops/svc.toml.example
	$(BIN)/python -m tools.chart
	$(BIN)/python -m tools.client_code

# Pictures of the pages for the documentation, into docs/images. Needs npm.
screenshots: venv
	$(BIN)/python -m tools.screenshots

# The web SDK in browsers of this machine, opened as a person opens them. Needs Xvfb and the browsers of Debian 12.
browsers: venv
	$(BIN)/python -m bench.browsers.sdk

# dist/svc_visitor_id-VERSION-py3-none-any.whl, built with what is in .venv and without the network.
wheel: venv
	rm -rf build/lib build/bdist.*
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -w dist .

# dist/svc, the service as one executable that needs no Python (docs/adr/0210): needs gcc and the static zlib.
executable: venv
	$(BIN)/python -m tools.executable dist

# dist/svc-visitor-id_VERSION_ARCHITECTURE.deb, of the folder that `make executable` leaves: needs dpkg-deb and objdump as well.
deb: executable
	$(BIN)/python -m tools.debian build/executable dist

# The version of everything: V=1.2.3 is written into all places; without it, those that differ are listed.
version: venv
	$(BIN)/python -m tools.versions $(V)

# Everything that a release is made of, into dist/release, with SHA256SUMS: docs/internals/releasing.md. TAG=v1.2.3 has it compared.
release: venv
	$(BIN)/python -m tools.release dist/release $(TAG)

# The client libraries for servers: dist/svc_client-VERSION-py3-none-any.whl, and dist/svc-client-VERSION.tgz where npm is;
# and there the packages of the web SDK, dist/svc-web-VERSION.tgz and
# dist/svc-{react,vue,svelte}-VERSION.tgz, the bridge, dist/svc-react-native-VERSION.tgz, and what takes code over from
# Fingerprint, dist/svc-fingerprint-compat-VERSION.tgz. `make android` builds the Android SDK.
# For Go a module proxy, dist/go; for Java a repository, dist/maven. tools/packages.py has the names.
clients: venv
	rm -rf clients/python/build clients/node/dist clients/fingerprint-compat/dist
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -w dist ./clients/python
	$(BIN)/python -m tools.node_client dist
	$(BIN)/python -m tools.go_library dist
	$(BIN)/python -m tools.java_library dist

# The Android SDK, all of its tests, into dist/maven: needs Maven and Java 17, and fetches its libraries the first time (0.9 GB,
# most of it Android's own code for the tests). `make test` compiles it from what was fetched, or says that it was not.
android: venv
	$(BIN)/python -m tools.android dist

# Raise the pinned versions within the bounds of pyproject.toml: those of development, of these the ones that run, and the
# tools that build the image.
lock: venv
	$(BIN)/pip-compile --quiet --upgrade --extra dev --extra parquet --extra postgresql --generate-hashes \
	  --allow-unsafe --strip-extras --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-annotate -o requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet -c requirements.lock --extra postgresql --generate-hashes --allow-unsafe \
	  --strip-extras --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-annotate -o ops/requirements.lock pyproject.toml

clean:
	rm -rf svc/web_static svc/docs_site web/node_modules web/*/dist clients/node/dist clients/fingerprint-compat/dist clients/android/target clients/android/*/target clients/python/build clients/python/*.egg-info web/browsers/node_modules
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
