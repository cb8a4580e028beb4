# admissiontest: build, test and run the conformance suite.
# It needs Go, make and access to a Go module proxy.

GO          ?= go
BIN         := bin/admissiontest
# The Kubernetes version for conformance, test and bench; empty means the default.
K8S_VERSION ?=
# More arguments for `admissiontest run`: make conformance ARGS="reinvocation -v"
ARGS        ?=
REPORTS     ?= reports

GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
# Packages with concurrency are tested with the race detector, if there is a C compiler,
# which it needs. The others are tested without, which is faster.
RACY        := ./fakes/... ./framework/harness/... ./framework/hook/... ./internal/engine/... ./framework/cluster/... ./suites/...
# The kill matrix makes about 2,000 checks and has no concurrency, so it runs without.
SLOW        := ^TestKillMatrix$$
RACE        := $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)
# The next Kubernetes version, which the library and its tests also support: go.next.mod is
# go.mod with these versions.
NEXT_K8S    := v0.37.2
NEXT        := ./fakes/... ./framework/... ./suites/contract/... ./internal/minor/...
VERSIONFLAG := $(if $(K8S_VERSION),--k8s-version $(K8S_VERSION))

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: all
all: build lint test conformance ## Build, lint, test and run the conformance suite.

.PHONY: build
build: ## Build the command: bin/admissiontest.
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) ./cmd/admissiontest

.PHONY: test-assets
test-assets: build ## Find kube-apiserver and etcd, or build them from Go modules (takes minutes, once).
	$(BIN) assets build $(VERSIONFLAG)

.PHONY: test
test: test-assets ## Run all tests that need no kind cluster.
	$(GO) test -timeout 30m $$($(GO) list ./... | grep -vxF "$$($(GO) list $(RACY))")
	$(GO) test -timeout 30m $(RACE) -skip '$(SLOW)' $(RACY)
	$(GO) test -timeout 30m -run '$(SLOW)' ./suites/contract/internal/rules

.PHONY: test-reference
test-reference: ## Run the contract suite on the plugins of Kubernetes: the nested module reference/.
	cd reference && $(GO) vet ./... && $(GO) test -timeout 30m ./...

.PHONY: test-examples
test-examples: test-assets ## Test the example that is a separate module: examples/webhook.
	cd examples/webhook && $(GO) vet ./... && $(GO) test -timeout 30m ./...

.PHONY: test-next
test-next: test-assets ## Vet and test the library with the next Kubernetes version (go.next.mod).
	GOFLAGS=-modfile=$(CURDIR)/go.next.mod $(GO) vet -tags kubernetes_next $(NEXT)
	GOFLAGS=-modfile=$(CURDIR)/go.next.mod $(GO) test -timeout 30m -tags kubernetes_next $(NEXT)

.PHONY: next-mod
next-mod: ## Generate go.next.mod from go.mod.
	cp go.mod go.next.mod && cp go.sum go.next.sum
	$(GO) mod edit $(foreach m,api apimachinery apiserver client-go component-base,-require=k8s.io/$(m)@$(NEXT_K8S)) go.next.mod
	$(GO) mod tidy -modfile=go.next.mod

# For test-kind: the node image and the kind configuration; empty means kind's defaults.
NODE_IMAGE  ?=
KIND_CONFIG ?=

.PHONY: test-kind
test-kind: ## Run the tests that need a kind cluster, and create it; uses NODE_IMAGE and KIND_CONFIG.
	@docker info >/dev/null 2>&1 || podman info >/dev/null 2>&1 || nerdctl info >/dev/null 2>&1 || \
	  { echo "test-kind needs Docker, Podman or nerdctl; none of them responds"; exit 1; }
	@set -e; dir=$$(mktemp -d); kind="$$dir/kind"; name=admissiontest-make-$$$$; $(GO) build -o "$$kind" sigs.k8s.io/kind; \
	trap '"$$kind" delete cluster --name '"$$name"' --kubeconfig "$$dir/kubeconfig"; rm -rf "$$dir"' EXIT; \
	"$$kind" create cluster --name "$$name" --kubeconfig "$$dir/kubeconfig" --wait 2m \
	  $(if $(NODE_IMAGE),--image $(NODE_IMAGE)) $(if $(KIND_CONFIG),--config $(KIND_CONFIG)); \
	ADMISSIONTEST_KIND=1 ADMISSIONTEST_KIND_KUBECONFIG="$$dir/kubeconfig" NODE_IMAGE=$(NODE_IMAGE) KIND_CONFIG=$(abspath $(KIND_CONFIG)) \
	  $(GO) test -count=1 -p 1 -timeout 60m -run Kind ./framework/cluster/... ./internal/providers/... ./cmd/admissiontest/internal/cli/...

.PHONY: lint
lint: ## Check formatting, go vet, and the rules of .golangci.yml.
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(GOLANGCI) run ./...
	$(GO) run $(ACTIONLINT) -shellcheck= -pyflakes=

.PHONY: conformance
conformance: build ## Run the whole catalogue on a real kube-apiserver; uses ARGS and K8S_VERSION.
	$(BIN) run $(VERSIONFLAG) --report $(REPORTS) $(ARGS)

.PHONY: bench
bench: test-assets ## Measure the catalogue, and a bare client that does the same amount of work.
	$(GO) run ./internal/bench -command $(BIN) $(VERSIONFLAG) $(ARGS)

.PHONY: generate
generate: ## Generate the descriptions in the JSON Schema.
	$(GO) generate ./...

.PHONY: clean
clean: ## Remove the files that make wrote. The assets stay: `bin/admissiontest assets path` prints their folder.
	rm -rf bin $(REPORTS)
