# The recipes that people, the README and CI share. `make help` lists them.

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the recipes
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show an outage in which the leader dies, and its rescue, in a minute and a half; needs Rust only
	cargo build --profile demo --package dependency-watchdog --package demo
	@target/demo/demo target/demo/dependency-watchdog

.PHONY: demo-real
demo-real: ## Show an outage with the real API servers, kube-controller-manager and machine-controller-manager, in three minutes; needs Rust and Go
	@$(MAKE) --no-print-directory --jobs=2 control-plane machine-controller-manager test-binaries
	@cargo test --quiet --workspace --test machines -- --nocapture outage

.PHONY: build
build: ## Build the product in release mode into target/dist, its symbols beside it
	cargo build --release --package dependency-watchdog
	@mkdir -p target/dist
	objcopy --only-keep-debug target/release/dependency-watchdog target/dist/dependency-watchdog.debug
	objcopy --strip-all --add-gnu-debuglink=target/dist/dependency-watchdog.debug \
		target/release/dependency-watchdog target/dist/dependency-watchdog

.PHONY: control-plane
control-plane: ## Build the test control plane (etcd, kube-apiserver, kube-controller-manager) unless it is cached; needs Go
	@kind-tests/control-plane/build

.PHONY: gardenlet
gardenlet: ## Build what says how Gardener deploys and checks, of its own code, unless it is cached; needs Go
	@kind-tests/gardenlet/build

.PHONY: machine-controller-manager
machine-controller-manager:
	@kind-tests/machine-controller-manager/build

.PHONY: test
test: ## Run every test, also those on a real control plane; needs Rust and Go
	@$(MAKE) --no-print-directory --jobs=2 test-binaries control-plane machine-controller-manager gardenlet
	@$(MAKE) --no-print-directory --jobs --output-sync=line machines all-but-machines

# Always the whole workspace: a single package would be built with other features of its dependencies, and so all of these again.
.PHONY: test-binaries
test-binaries:
	cargo test --workspace --all-targets --no-run

# The scenarios keep two processors busy; those with machines mostly wait, and need a processor soon when they do not. The others run
# side by side; each says what it found at its end. Unit tests never wait for real time. `[!f]*` is every test but `fuzz`.
.PHONY: all-but-machines scenarios machines clocks kills lives smoke stories benchmarks in-process unit-tests
all-but-machines: scenarios
	@$(MAKE) --no-print-directory --output-sync=target clocks kills lives smoke stories benchmarks in-process unit-tests
scenarios: priority = nice
scenarios machines clocks kills lives smoke stories benchmarks:
	$(priority) cargo test --workspace --test $@
in-process: export RUST_TEST_THREADS = 32
in-process:
	cargo test --workspace --exclude scenarios --exclude faults --exclude benchmarks --test '[!f]*' --bench core
unit-tests:
	nice cargo test --quiet --workspace --lib --bins

.PHONY: deploy-test
deploy-test: ## Test manifests, chart, alerts, dashboard, image and status page; needs Rust, Go and the packages prometheus, jq, chromium
	@$(MAKE) --no-print-directory control-plane gardenlet
	@kind-tests/deployment-tools/build
	@$(MAKE) --no-print-directory test-binaries
	cargo test --workspace --test deploy

.PHONY: node-test
node-test: ## Test image, chart and both agents on real kubelets and containers, in 6 minutes; needs root, Rust, Go and packages that it names
	@kind-tests/nodes/run

.PHONY: pictures
pictures: ## Draw the pictures of the demo and of the status page, of real runs; needs Rust, Go and the package chromium
	cargo build --profile demo --package dependency-watchdog --package demo
	target/demo/demo target/demo/dependency-watchdog > target/demo/printed
	awk -v style="$$(cat kind-tests/demo/draw.css)" -f kind-tests/demo/draw.awk target/demo/printed > docs/pictures/demo.svg
	@$(MAKE) --no-print-directory --jobs=2 control-plane test-binaries
	cargo test --workspace --test deploy -- status_page
	cp kind-tests/artefacts/status-page.png docs/pictures/status-page.png

.PHONY: image
image: ## Build the container image of the built program and Debian's packages, or with BASE_IMAGE=name in a container: [ENGINE=podman] [IMAGE=name:tag] [ARCHIVE=file] [RUST_IMAGE=name]
	@test -n '$(BASE_IMAGE)' || $(MAKE) --no-print-directory build
	@deploy/image

.PHONY: release-version
release-version: ## Say the version, if all files name the same one
	@deploy/release version

.PHONY: release-notes
release-notes: ## Print what CHANGELOG.md says of the version
	@deploy/release notes

.PHONY: chart
chart: ## Package the chart: OUT=folder REPOSITORY=image DIGEST=sha256:...; needs Go
	@deploy/release chart '$(OUT)' '$(REPOSITORY)' '$(DIGEST)'

.PHONY: krew
krew: ## Pack the programs in OUT=folder as a kubectl plugin for krew: URL=of the repository
	@deploy/release krew '$(OUT)' '$(URL)'

.PHONY: bench-binaries
bench-binaries: control-plane
	cargo build --release --package dependency-watchdog --package benchmarks
	@mkdir -p target/bench
	@objcopy --strip-all target/release/dependency-watchdog target/bench/dependency-watchdog

.PHONY: bench-race
bench-race: bench-binaries ## Race a real kube-controller-manager, 15 minutes: [TRIALS=8] [REPLICAS=0 | KILL=1]; needs Go
	@$(call measure,$(RACE),race --trials=$(or $(TRIALS),100) --replicas=$(or $(REPLICAS),2) $(if $(KILL),--kill))

RACE = race-$(or $(REPLICAS),2)$(if $(KILL),-kill)

.PHONY: fuzz
fuzz: ## Fuzz every reader of what comes from outside: [SECONDS=20] each [TARGET=name]; needs a C++ compiler
	@kind-tests/fuzz/run $(or $(SECONDS),20) $(TARGET)

.PHONY: fuzz-long
fuzz-long: ## The same at length, optimized: DURATION=seconds for each [TARGET=name]
	CARGO_PROFILE_DEV_OPT_LEVEL=2 kind-tests/fuzz/run $(or $(DURATION),3600) $(TARGET)

.PHONY: soak
soak: soak-binaries ## Random faults for ten minutes, judged by an oracle; make soak DURATION=2h SEED=7
	@target/release/soak target/release/dependency-watchdog --duration=$(or $(DURATION),10m) $(if $(SEED),--seed=$(SEED)) $(SOAK)

.PHONY: soak-binaries
soak-binaries:
	cargo build --release --package dependency-watchdog --package faults

.PHONY: bench-core
bench-core: ## Measure what a probe computes and allocates
	cargo bench --package prober --bench core

.PHONY: test-long
test-long: ## The long forms: a thousand lives, 600 of each kind of shoot, processes suspended for 5 minutes, more schedules
	cargo build --package dependency-watchdog
	SUSPENDED_S=300 cargo test --package faults --test clocks
	LIVES=1000 cargo test --release --package faults --test lives random -- --nocapture
	SCHEDULES=5000 cargo test --release --package common --test leader_election -- schedules
	MODEL=long cargo test --release --package prober-core --lib -- tests::chaos tests::simulation --nocapture --test-threads=1

.PHONY: mutants
mutants: ## Change one place of the cores at a time and list what no test notices: [FILE='prober/core/src/shoot/*.rs'] [SHARD=0/20]; hours, needs cargo-mutants
	@nice cargo mutants --package prober-core --package weeder-core --output target $(if $(FILE),--file '$(FILE)') $(if $(SHARD),--shard $(SHARD)) -- --lib

.PHONY: rent
rent: ## Switch off one rule of the core at a time, say what gets worse and keep that in prober/rent/worth.md: [RULES='name name']; 35 minutes, needs Python
	@nice prober/rent/run $(RULES)

.PHONY: book
book: ## Build the documentation into target/book; needs mdbook
	mdbook build docs

.PHONY: lint
lint: format clippy licences ## Check format, lints, dependencies and licences

.PHONY: format clippy licences
format:
	cargo fmt --all --check
clippy:
	cargo clippy --workspace --all-targets --features fuzz/libfuzzer -- -D warnings
licences:
	cargo deny --workspace check bans licenses sources

# Runs a benchmark of the program as it is shipped, and leaves what it printed under this name, for `make results`.
measure = DEPENDENCY_WATCHDOG_BIN=$(CURDIR)/target/bench/dependency-watchdog target/release/benchmarks $(2) $(ARGS) \
	> target/bench/$(1).txt; code=$$?; cat target/bench/$(1).txt; exit $$code

.PHONY: bench
bench: bench-start bench-healthy bench-meltdown bench-weeder bench-growth ## Measure requests, CPU, memory, melt-down, weeder and start, one after the other, and put that on the page of results; 36 minutes
	@$(MAKE) --no-print-directory results FROM='start healthy meltdown weeder growth'

.PHONY: results
results: ## Put what the last runs left in target/bench on docs/benchmark-results.md: FROM='race-2 growth'
	@test -n '$(FROM)' || { echo "FROM='race-2 growth' names the runs"; exit 2; }
	@for name in $(FROM); do \
		test -f target/bench/$$name.txt && \
		sed -i -e "/^<!-- $$name -->/r target/bench/$$name.txt" -e "/^<!-- $$name -->/,/^<!-- end -->/{/^<!--/!d}" docs/benchmark-results.md || exit; \
	done

BENCHMARKS = bench-away bench-healthy bench-meltdown bench-growth bench-weeder bench-start
.PHONY: $(BENCHMARKS)
$(BENCHMARKS): bench-%: bench-binaries
	@$(call measure,$*,$*)
bench-away: ## Stop and start the etcd of healthy shoots: 0 writes, 20 minutes
bench-healthy: ## Measure what 300 healthy shoots cost: requests, CPU beside a bare loop, memory; 6 minutes
bench-meltdown: ## Measure how soon 300 shoots that fail at once are protected, beside a bare client's requests, and restored; 10 minutes
bench-growth: ## Measure what one shoot more costs, from 100 to 2,000; 12 minutes
bench-weeder: ## Measure the weeder's start, and how soon it deletes; 2 minutes
bench-start: ## Measure the binary's size and how soon it is ready; 3 minutes
