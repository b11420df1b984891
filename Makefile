# The recipes that people, the README and CI share. `make help` lists them.

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the recipes
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show an outage and its rescue, in about two minutes; needs Rust only
	cargo build --release --package dependency-watchdog --package demo
	@target/release/demo target/release/dependency-watchdog

.PHONY: build
build: ## Build the product in release mode
	cargo build --release --package dependency-watchdog

.PHONY: control-plane
control-plane: ## Build the test control plane (etcd, kube-apiserver, kube-controller-manager) unless it is cached; needs Go
	@kind-tests/control-plane/build

.PHONY: test
test: ## Run every test, also those on a real control plane; needs Rust and Go
	@$(MAKE) --no-print-directory --jobs=2 control-plane test-binaries
	cargo test --workspace

.PHONY: test-binaries
test-binaries:
	cargo test --workspace --no-run

.PHONY: lint
lint: ## Check format, lints, dependencies and licences
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo deny --workspace check bans licenses sources
