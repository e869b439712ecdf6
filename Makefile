# Every target prepares what it needs by itself; a second run starts at once.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
READY  := $(VENV)/.ready
DEMO   := $(VENV)/.demo
BENCH  := $(VENV)/.bench
FUZZ   := $(VENV)/.fuzz
DOCS   := $(VENV)/.docs
PEER   := $(VENV)/pyiceberg-tests
EXTRAS := dev,delta,encryption,java,postgres,s3,serve,spark

# Iceberg Java, which tests plan the same tables with. No part of icetree, so kept elsewhere.
ICEBERG_JAVA := org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0
JARS         := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/icetree/jars
ICEBERG_JAR  := $(JARS)/iceberg-spark-runtime-4.1_2.13-1.11.0.jar

# What Iceberg Java needs to reach S3 by itself, which tests have the server sign for.
ICEBERG_AWS     := org.apache.iceberg:iceberg-aws-bundle:1.11.0
ICEBERG_AWS_JAR := $(JARS)/iceberg-aws-bundle-1.11.0.jar

# SQLite for Java, on which Iceberg Java keeps its own JDBC catalog in tests.
SQLITE_JDBC     := org.xerial:sqlite-jdbc:3.50.3.0
SQLITE_JDBC_JAR := $(JARS)/sqlite-jdbc-3.50.3.0.jar

# What PyIceberg needs to have the server sign. It wants other versions of packages than ours, so it has a folder of its own.
S3FS         := $(VENV)/s3fs

# Hadoop's S3A, through which Spark reaches tables in S3, with the parts of AWS's SDK that it uses.
S3A          := $(JARS)/s3a

# Delta's Spark connector and what it needs, which benchmarks are measured beside.
DELTA        := 4.4.0
DELTA_PARTS  := delta-spark_4.1_2.13 delta-storage delta-kernel-api delta-kernel-defaults delta-kernel-unitycatalog
DELTA_JARS   := $(DELTA_PARTS:%=$(JARS)/%-$(DELTA).jar)

# The explorer's page, bundled from `page`. Wheels have it, so that nobody else needs Node.
PAGE         := icetree/explore/page/explorer.js

# What others need who take part in tests.
OTHERS       := $(ICEBERG_JAR) $(ICEBERG_AWS_JAR) $(SQLITE_JDBC_JAR) $(S3A) $(S3FS) $(PAGE) chromium
TESTS        := $(PY) -m pytest --numprocesses auto --no-loadscope-reorder --durations 15

# Install a command by the machine's own packages, where that is allowed; else say which to install.
# $(1) is the command, $(2) Debian's packages, $(3) what it is for.
define installed
	@command -v $(1) > /dev/null \
		|| { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get install --yes --quiet $(2) > /dev/null; } \
		|| { echo "$(3): install it (Debian: apt install $(2))."; test -z "$$CI"; }
endef

comma := ,

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where Python may not keep what it compiled, each of the many processes of tests compiles icetree again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup page chromium demo docs screens iceberg-java iceberg-java-path iceberg-aws iceberg-aws-path sqlite-jdbc sqlite-jdbc-path s3fs s3fs-path s3a s3a-path test interop check lint types format bench-core bench-commit bench-defaults bench-explore bench-plan bench-rest bench-rows bench-sim bench-files-read bench-maintenance bench-spark laws cluster fallback soak writers simulate statements fuzz constraints clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

setup: $(READY) ## Prepare .venv: Python packages, Spark and, where the machine has none, Java
	@echo "$(VENV) is ready."

page: $(PAGE) ## Build the explorer's page into the package
	@echo "$(PAGE) is ready."

# Where all is installed, that will do; and without npm the tree is a picture, not a film.
demo: $(if $(wildcard $(READY)),$(READY),$(DEMO)) $(if $(shell command -v npm),$(PAGE)) ## Commit beside PyIceberg, then run a pipeline on Spark, and verify it; ARGS="--small" needs no Spark
	@$(PY) -m icetree demo $(ARGS)

test: $(READY) $(PAGE) ## Run the tests, but for those of interop and laws
	@$(TESTS) -m "not interop and not long"

interop: $(READY) $(OTHERS) ## Run the tests that others take part in: Iceberg Java, PyIceberg, a cluster, a browser
	@$(TESTS) -m "interop and not long"

docs: $(DOCS) ## Build the documentation as a site, into build/site; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet --strict
	@echo "build/site/index.html is ready."

screens: $(DOCS) $(PAGE) chromium ## Take the documentation's pictures of every face anew; ARGS="terminal notebook" for some
	@NO_MKDOCS_2_WARNING=1 $(PY) -m docs.make.screens $(ARGS)

# What takes one core side by side, then tests of both parts in one run, so that what they share is made once.
# Before that, what pip, npm and Maven fetch for a first run, at the same time.
check: ## What CI runs: lint, types, the site and tests, interop included
	@$(MAKE) --no-print-directory --jobs 3 --output-sync $(READY) $(PAGE) $(S3A)
	@$(MAKE) --no-print-directory $(DOCS) $(OTHERS)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint types docs
	@$(TESTS)

lint: $(READY) ## Check style and formatting
	@$(PY) -m ruff check
	@$(PY) -m ruff format --check

types: $(READY) ## Check types
	@$(PY) -m mypy

format: $(READY) ## Fix style and formatting in place
	@$(PY) -m ruff check --fix
	@$(PY) -m ruff format

bench-core: $(READY) ## Measure the core; ARGS="--quick" for a minute's worth
	@$(PY) -m benchmarks.core $(ARGS)

bench-commit: $(BENCH) ## Measure commits beside PyIceberg and deltalake; ARGS="--quick" for a minute's worth
	@$(PY) -m benchmarks.commit $(ARGS)

bench-defaults: $(BENCH) ## Measure what thresholds cost after 10,000 commits, which takes an hour; ARGS="--quick" for a minute's worth
	@$(PY) -m benchmarks.defaults $(ARGS)

bench-rows: $(BENCH) ## Measure upserts and deletes beside PyIceberg; ARGS="--quick" for a minute's worth
	@$(PY) -m benchmarks.rows $(ARGS)

bench-plan: $(BENCH) ## Measure planning beside PyIceberg and deltalake; ARGS="--quick" for a minute's worth
	@$(PY) -m benchmarks.plan $(ARGS)

bench-rest: $(BENCH) ## Measure plans of the REST server beside PyIceberg; ARGS="--quick" for a minute's worth
	@$(PY) -m benchmarks.rest $(ARGS)

bench-explore: $(BENCH) $(PAGE) chromium ## Measure how soon the explorer shows tables of up to 3,000,000 files; ARGS="--quick" for 100,000
	@$(PY) -m benchmarks.explore $(ARGS)

bench-files-read: $(BENCH) ## Count the files that conditions leave, before and after z-order; ARGS="--svg docs/figures/files-read.svg" draws it
	@$(PY) -m benchmarks.files_read $(ARGS)

bench-sim: $(BENCH) ## Simulate up to 256 writers and a billion files on an object store; ARGS="--svg docs/figures" draws it
	@$(PY) -m benchmarks.sim $(ARGS)

bench-maintenance: $(READY) $(ICEBERG_JAR) ## Measure maintenance beside Iceberg Java's procedures; ARGS="--quick" for a few minutes' worth
	@ICEBERG_JAR="$(ICEBERG_JAR)" $(PY) -m benchmarks.maintenance $(ARGS)

# Commas between jars are Spark's wish.
bench-spark: $(READY) $(ICEBERG_JAR) $(DELTA_JARS) ## Measure Spark beside plain Parquet, Iceberg Java and Delta; ARGS="--quick" for a few minutes' worth
	@ICEBERG_JAR="$(ICEBERG_JAR)" DELTA_JARS="$$(echo $(DELTA_JARS) | tr ' ' ',')" \
		$(PY) -m benchmarks.spark $(ARGS)

laws: $(READY) ## Try every law for long, as seeds decide; ARGS="--minutes 10 --seed 3"
	@$(PY) -m campaigns.laws $(ARGS)

cluster: $(READY) $(S3A) ## Try Spark on a cluster of its own, of which workers are lost
	@$(PY) -m pytest tests/spark/cluster -m "" --durations 10

fallback: $(READY) $(ICEBERG_JAR) $(S3A) ## Run the tests of Spark once more, with tables planned before a query runs
	@ICETREE_READ_LAZY=false $(PY) -m pytest tests/spark --ignore tests/spark/cluster --numprocesses auto --no-loadscope-reorder

soak: $(READY) ## Commit 10,000 times to one table, with faults and kills; ARGS="--commits 2000 --on postgres --on s3" on servers in trouble
	@$(PY) -m campaigns.soak $(ARGS)

writers: $(READY) ## Let 16 writers commit 1,000 times each to one table, on SQLite and PostgreSQL; ARGS="--commits 50 --on sqlite" for less
	@$(PY) -m campaigns.writers $(ARGS)

simulate: $(READY) ## Simulate writers, faults and crashes, as seeds decide; ARGS="--seed 42" for one again
	@$(PY) -m campaigns.simulate $(ARGS)

statements: $(READY) $(ICEBERG_JAR) ## Run statements that seeds draw here and by Iceberg Java; ARGS="--seed 42" for one again
	@ICEBERG_JAR="$(ICEBERG_JAR)" $(PY) -m campaigns.statements $(ARGS)

fuzz: $(FUZZ) ## Damage every kind of file, in child processes; ARGS="--inputs 100000 --seconds 600 --seed 2" or "--guided 60"
	@$(PY) -m campaigns.fuzz $(ARGS)

pyiceberg-tests: $(READY) $(PEER)/.ready $(ICEBERG_JAR) $(S3A) ## Run PyIceberg's own integration tests against the server; ARGS="--quick" without Spark
	@$(PY) -m campaigns.pyiceberg_tests --python $(PEER)/bin/python $(ARGS)

constraints: ## Write constraints.txt anew, from the newest versions allowed (PYTHON=python3.10)
	@$(PYTHON) -m venv --clear $(VENV)/fresh
	@$(VENV)/fresh/bin/python -m pip install '.[$(EXTRAS),bench,docs,fuzz]'
	@{ grep '^#' constraints.txt; $(VENV)/fresh/bin/python -m pip freeze --exclude icetree; } > $(VENV)/constraints.txt
	@rm -rf $(VENV)/fresh && mv $(VENV)/constraints.txt constraints.txt

iceberg-java: $(ICEBERG_JAR) ## Fetch Iceberg Java, a peer that tests ask, into a cache outside the repository
	@echo "$(ICEBERG_JAR) is ready."

iceberg-java-path:
	@echo "$(ICEBERG_JAR)"

iceberg-aws: $(ICEBERG_AWS_JAR) ## Fetch what Iceberg Java reaches S3 with, into a cache outside the repository
	@echo "$(ICEBERG_AWS_JAR) is ready."

iceberg-aws-path:
	@echo "$(ICEBERG_AWS_JAR)"

sqlite-jdbc: $(SQLITE_JDBC_JAR) ## Fetch SQLite for Java, for Iceberg Java's JDBC catalog, into a cache outside the repository
	@echo "$(SQLITE_JDBC_JAR) is ready."

sqlite-jdbc-path:
	@echo "$(SQLITE_JDBC_JAR)"

$(ICEBERG_JAR): ARTIFACT := $(ICEBERG_JAVA)
$(ICEBERG_AWS_JAR): ARTIFACT := $(ICEBERG_AWS)
$(SQLITE_JDBC_JAR): ARTIFACT := $(SQLITE_JDBC)
$(ICEBERG_JAR) $(ICEBERG_AWS_JAR) $(SQLITE_JDBC_JAR):
	@command -v mvn > /dev/null || { \
		echo "Maven fetches Iceberg Java and its parts, which some tests compare with: install it (Debian: apt install maven)."; \
		test -z "$$CI"; }
	@! command -v mvn > /dev/null || echo "Fetching $(ARTIFACT), up to 60 MB."
	@! command -v mvn > /dev/null || mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
		-Dartifact=$(ARTIFACT) -DoutputDirectory=$(JARS)

s3fs: $(S3FS) ## Fetch what PyIceberg reaches S3 with, beside the packages of .venv
	@echo "$(S3FS) is ready."

s3fs-path:
	@echo "$(abspath $(S3FS))"

$(S3FS): tests/serve/s3fs.txt $(READY)
	@echo "Fetching s3fs, 20 MB."
	@rm -rf $@ $@.part && $(PY) -m pip install --quiet --target $@.part --requirement $< && mv $@.part $@ && touch $@

s3a: $(S3A) ## Fetch Hadoop's S3A, which tests of Spark on S3 need, into a cache outside the repository
	@echo "$(S3A) is ready."

s3a-path:
	@echo "$(S3A)"

$(S3A): tests/spark/s3a.pom.xml
	@command -v mvn > /dev/null || { \
		echo "Maven fetches Hadoop's S3A, which tests of Spark on S3 need: install it (Debian: apt install maven)."; \
		test -z "$$CI"; }
	@! command -v mvn > /dev/null || echo "Fetching Hadoop's S3A, 17 MB."
	@! command -v mvn > /dev/null || { rm -rf $@ && mvn --quiet --batch-mode --file $< \
		org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory=$@.part \
		&& mv $@.part $@; }

$(PAGE): page/package.json page/build.mjs $(wildcard page/src/*)
	$(call installed,npm,nodejs npm,npm builds the explorer's page)
	@! command -v npm > /dev/null || npm --prefix page install --no-package-lock --no-audit --no-fund --silent
	@! command -v npm > /dev/null || npm --prefix page run --silent build

chromium:
	$(call installed,chromium,chromium,Chromium is what tests look at the explorer with)

$(DELTA_JARS):
	@command -v mvn > /dev/null || { \
		echo "Maven fetches Delta, which benchmarks compare with: install it (Debian: apt install maven)."; exit 1; }
	@echo "Fetching $(@F)."
	@mvn --quiet --batch-mode org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
		-Dartifact=io.delta:$(patsubst %-$(DELTA).jar,%,$(@F)):$(DELTA) -DoutputDirectory=$(JARS)

clean: ## Remove .venv and everything generated
	@rm -rf $(VENV) build dist page/node_modules icetree/explore/page .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
	@find icetree tests benchmarks campaigns -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# Make .venv, and install extras into it. $(1) is their names.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "icetree needs Python 3.10 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) \
		|| { echo "cannot make $(VENV): install Python's venv module (Debian: apt install python3-venv)"; exit 1; }
	@$(PY) make/install.py $(VENV) --editable '.[$(1)]' --constraint constraints.txt
	@touch $@
endef

$(READY): pyproject.toml constraints.txt
	$(call install,$(EXTRAS))

# All that a demo needs, which is less.
$(DEMO): pyproject.toml constraints.txt
	$(call install,demo)

# The peers that benchmarks are measured beside; nothing else needs them.
$(BENCH): $(READY)
	$(call install,$(EXTRAS)$(comma)bench)

# What makes the site; nothing else needs it.
$(DOCS): $(READY)
	$(call install,$(EXTRAS)$(comma)docs)

# What guides the fuzzing of `make fuzz`; nothing else needs it.
$(FUZZ): $(READY)
	$(call install,$(EXTRAS)$(comma)fuzz)

# A stock PyIceberg, and what its own tests need: they do not agree with constraints.txt on all of it.
$(PEER)/.ready: campaigns/pyiceberg_tests/requirements.txt constraints.txt
	@test -x $(PEER)/bin/python || $(PYTHON) -m venv $(PEER)
	@$(PEER)/bin/python make/install.py $(PEER) --requirement $< \
		"$$(sed -n 's/^pyiceberg==/pyiceberg[hive,pyiceberg-core,sql-sqlite]==/p' constraints.txt)"
	@touch $@
