# admissiontest: build, test and run the conformance suite.
# It needs Go, make and access to a Go module proxy.

GO          ?= go
BIN         := bin/admissiontest
# The Kubernetes version for conformance, test, bench and coverage; empty means the default.
K8S_VERSION ?=
# More arguments for `admissiontest run`: make conformance ARGS="reinvocation -v"
ARGS        ?=
REPORTS     ?= reports

GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.7
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
GORELEASER  := github.com/goreleaser/goreleaser/v2@v2.13.3
SYFT        := github.com/anchore/syft/cmd/syft@v1.42.0
# The packages whose tests start API servers: test-all tests them. Not the tests of whole runs in cmd/admissiontest, and not
# packages of which hardly a test needs a server.
SERVED       = $(filter-out ./cmd/admissiontest/ ./fakes/ ./framework/,$(addprefix ./,$(sort $(dir $(shell git grep -lE \
  'internal/testserver"|framework/envtest"|providers\.NewEnvtest|conformance\.(Run|Options)|policy\.(Run|Check|Server)' -- '*_test.go' ':!examples' ':!reference' ':!hack/importers')))))
# Packages with concurrency of ours are tested with the race detector, if there is a C compiler, which it needs: once, in
# test or in test-all. What suites/ starts at once is tested with it by test-race, which takes half an hour.
RACY        := ./fakes/... ./framework/harness/... ./framework/hook/...
RACY_SERVED := ./internal/engine/... ./framework/envtest/... ./internal/apiserver/...
# These take minutes with the race detector, and are not about concurrency.
SLOW        := ^(TestKillMatrix|TestHostileAnswers|TestCatalogueOnObservedServer)$$
RACE        := $(shell command -v $$($(GO) env CC) >/dev/null 2>&1 && echo -race)
# $(WITH_RACE) in front of a command lets -race use the C compiler.
WITH_RACE   := $(if $(RACE),CGO_ENABLED=1)
# Packages for unit tests of plugins, which work with each supported minor of Kubernetes.
UNIT        := ./fakes/... ./framework ./framework/harness/... ./framework/matchers/... ./suites/contract/... ./internal/minor/...
# Tests of what only later minors have: $(call since,MINOR) are the packages that compile with it.
since        = $(if $(filter $(1),1.34 1.35),,./fakes/testdata/since36 $(if $(filter $(1),1.36),,./fakes/testdata/since37))
# go.mod has the oldest versions that work. hack/minors/ has a module file for each minor, made
# of these versions of k8s.io and of what must be newer with them; `make minors-mod` writes them.
# NEXT is a minor that is not supported yet, such as 1.38: give it a K8S_1.38 and a MORE_1.38.
# It is empty: of 1.38, Go 1.26 compiles only v0.38.0-alpha.0, whose code is that of 1.37: go vet of fakes, internal/minor and since37
# passed with it on 2026-12-01. Newer ones need Go 1.27 (CONTRIBUTING.md).
MINORS      := 1.34 1.35 1.36 1.37
NEWEST      := 1.37
NEXT        :=
K8S_1.34    := v0.34.13
K8S_1.35    := v0.35.10
K8S_1.36    := v0.36.6
K8S_1.37    := v0.37.2
MORE_1.36   := sigs.k8s.io/controller-runtime@v0.24.1
MORE_1.37   := sigs.k8s.io/controller-runtime@v0.25.1
# The module file of the newest minor also has the versions of other modules that Kubernetes requires, so
# that Go compiles them only once for the command and for kube-apiserver: this is the default of `run`.
KUBERNETES  := $(K8S_$(NEWEST):v0.%=v1.%)
MODFILES    := $(patsubst %,hack/minors/%.mod,$(MINORS) $(NEXT))
# Newer versions of other libraries, for released binaries: hack/minors/release.mod. controller-runtime 0.25 does not compile
# for Windows (signalProcess is declared twice), 0.24 does.
LIBS        := github.com/onsi/ginkgo/v2@v2.34.0 github.com/onsi/gomega@v1.44.0 golang.org/x/mod@v0.42.0 \
               golang.org/x/net@v0.59.0 golang.org/x/sync@v0.24.0 golang.org/x/term@v0.47.0 \
               github.com/goccy/go-yaml@v1.19.2 github.com/google/go-containerregistry@v0.20.7 sigs.k8s.io/controller-runtime@v0.24.1
# Everything but tests with the race detector is compiled without cgo and with -trimpath, as kube-apiserver is:
# so Go compiles the libraries of Kubernetes once for the command, the server, the tests and the nested modules of the same versions.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath
# $(call go-on,MINOR) is the go command with the module file of that minor.
go-on        = GOFLAGS="$(GOFLAGS) -modfile=$(CURDIR)/hack/minors/$(1).mod" $(GO)
VERSIONFLAG := $(if $(K8S_VERSION),--k8s-version $(K8S_VERSION))

.DEFAULT_GOAL := help

.PHONY: help
help: ## List all targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: all
all: build lint test test-all conformance ## Build, lint, run all tests and the conformance suite.

.PHONY: build
build: ## Build the command: bin/admissiontest, with the libraries of the newest supported Kubernetes.
	$(call go-on,$(NEWEST)) build -o $(BIN) ./cmd/admissiontest

.PHONY: test-assets
test-assets: build ## Find kube-apiserver and etcd, or build them from Go modules (takes minutes, once).
	$(BIN) assets build $(VERSIONFLAG)

# $(call without,A,B) are the packages of A that are not in B.
without      = $$($(GO) list $(1) | grep -vxF "$$($(GO) list $(2))")
.PHONY: test
test: test-assets ## Run the tests that need no API server, and the tests of whole runs.
	$(call go-on,$(NEWEST)) test -timeout 30m -skip '$(SLOW)' $(call without,./...,$(SERVED) $(RACY) $(RACY_SERVED)) $(call since,$(NEWEST))
	$(WITH_RACE) $(call go-on,$(NEWEST)) test -timeout 30m $(RACE) $(RACY)

.PHONY: test-all
test-all: test-assets ## Run all tests that test does not run and that need no kind cluster. They wait more than they compute: several at once.
	$(MAKE) -j2 test-served test-reference test-examples

.PHONY: test-served
test-served: test-assets
	$(call go-on,$(NEWEST)) test -timeout 30m -p 4 -skip '$(SLOW)' $(call without,$(SERVED),$(RACY_SERVED))
	$(WITH_RACE) $(call go-on,$(NEWEST)) test -timeout 30m -p 4 $(RACE) -skip '$(SLOW)' $(RACY_SERVED)
	$(call go-on,$(NEWEST)) test -timeout 30m -p 4 -run '$(SLOW)' ./suites/contract/internal/rules ./suites/webhook/internal/rules ./internal/apiserver/client ./suites/conformance

.PHONY: test-race
test-race: test-assets ## Run what suites/ starts at once with the race detector, if there is a C compiler.
	$(WITH_RACE) $(call go-on,$(NEWEST)) test -timeout 60m $(RACE) -skip '$(SLOW)' ./suites/...

.PHONY: test-reference
test-reference: test-assets ## Run the contract suite on the plugins of Kubernetes, and the catalogue on other API servers: the nested modules of reference/.
	cd reference && $(GO) vet ./... && $(GO) test -timeout 30m ./...
	assets="$$($(BIN) assets path $(VERSIONFLAG))" && cd reference/servers && $(GO) vet ./... && KUBEBUILDER_ASSETS="$$assets" $(GO) test -timeout 30m ./...

# Where `make servers` leaves the report of each API server.
SERVERS  = $(CURDIR)/$(REPORTS)/servers
COMPARED = $(addprefix $(SERVERS)/,kube-apiserver-1.37.2 kube-apiserver-1.36.3 kube-apiserver-1.35.4 kube-apiserver-1.34.4 kube-apiserver-with-kine generic-control-plane sample-apiserver)

.PHONY: servers
servers: test-assets ## Run the catalogue on each API server of docs/servers.md, and write that page and servers.html. It needs a C compiler, and builds each minor version.
	assets="$$($(BIN) assets path $(VERSIONFLAG))" && cd reference/servers && ADMISSIONTEST_SERVERS="$(SERVERS)" KUBEBUILDER_ASSETS="$$assets" $(GO) test -count=1 -timeout 120m -run TestServers -v .
	$(BIN) report matrix $(COMPARED) > $(REPORTS)/servers.html
	(cat reference/servers/page.md; $(BIN) report matrix -o markdown $(COMPARED)) > docs/servers.md

.PHONY: test-examples
test-examples: test-assets ## Test the examples, which are separate modules.
	assets="$$($(BIN) assets path $(VERSIONFLAG))" && cd examples/webhook && $(GO) vet ./... && KUBEBUILDER_ASSETS="$$assets" $(GO) test -timeout 30m ./...
	cd examples/plugin && $(GO) vet ./... && $(GO) test -timeout 30m ./...

.PHONY: test-importers
test-importers: test-assets ## Test this module as a dependency of other projects, with their versions, and print which modules it raised: the nested modules of hack/importers.
	ADMISSIONTEST_IMPORTERS=1 $(GO) test -count=1 -timeout 60m -run TestBare ./hack/importers
	for project in gardener jobset knative kubewebhook kueue lws podsecurity vpa; do (cd hack/importers/$$project && $(GO) vet ./... && $(GO) test -count=1 -v -run TestVersions ./... && $(GO) test -count=1 -timeout 30m ./...) || exit 1; done

.PHONY: test-browser
test-browser: ## Test the page of a report in Chromium, which must be installed: the nested module hack/browser.
	cd hack/browser && $(GO) vet ./... && ADMISSIONTEST_BROWSER=$${ADMISSIONTEST_BROWSER:-chromium} $(GO) test -count=1 ./...

.PHONY: test-oldest
test-oldest: ## Vet everything and run the unit tests with the oldest supported versions, those in go.mod.
	$(GO) vet ./...
	$(GO) test -timeout 30m -skip '$(SLOW)' $(UNIT)

.PHONY: test-minors
test-minors: test-oldest $(MINORS:%=test-minor-%) ## Run test-oldest, and the unit tests with the newest patch of each minor.

.PHONY: $(MINORS:%=test-minor-%)
$(MINORS:%=test-minor-%): test-minor-%: vet-minor-%
	$(call go-on,$*) test -timeout 30m -skip '$(SLOW)' $(UNIT) $(call since,$*)

.PHONY: vet-minors
vet-minors: $(patsubst %,vet-minor-%,$(MINORS) $(NEXT)) ## Compile and vet everything with each minor of Kubernetes, and with the next.

.PHONY: $(patsubst %,vet-minor-%,$(MINORS) $(NEXT))
$(patsubst %,vet-minor-%,$(MINORS) $(NEXT)): vet-minor-%:
	$(call go-on,$*) vet ./... $(call since,$*)

.PHONY: test-next
test-next: ## Vet and test with the next minor of Kubernetes, if the Makefile names one: it is not supported yet.
ifeq ($(NEXT),)
	@echo "there is no next minor: set NEXT, K8S_… and MORE_… in the Makefile to one, then run make minors-mod"
else
	$(MAKE) test-assets vet-minor-$(NEXT)
	$(call go-on,$(NEXT)) test -timeout 30m $(UNIT) ./framework/... $(call since,$(NEXT))
endif

.PHONY: minors-mod
minors-mod: $(MODFILES) hack/minors/release.mod ## Write the module files in hack/minors/ again, from go.mod and the versions in this Makefile.

.PHONY: $(MODFILES)
$(MODFILES): hack/minors/%.mod:
	mkdir -p hack/minors && cp go.mod $@ && cp go.sum $(@:.mod=.sum)
	$(GO) mod edit $(foreach m,api apiextensions-apiserver apimachinery apiserver client-go component-base,-require=k8s.io/$(m)@$(K8S_$*)) \
	  $(MORE_$*:%=-require=%) $@
	$(if $(filter $(NEWEST),$*),$(GO) mod download k8s.io/kubernetes@$(KUBERNETES))
	$(if $(filter $(NEWEST),$*),$(GO) mod edit $$(awk '$$2 ~ /^v/ && $$2 != "v0.0.0" {print "-require=" $$1 "@" $$2}' \
	  "$$($(GO) env GOMODCACHE)/cache/download/k8s.io/kubernetes/@v/$(KUBERNETES).mod") $@)
	$(GO) mod tidy -modfile=$@

hack/minors/release.mod: hack/minors/$(NEWEST).mod
	cp $< $@ && cp $(<:.mod=.sum) $(@:.mod=.sum)
	$(GO) mod edit $(LIBS:%=-require=%) $@
	$(GO) mod tidy -modfile=$@

# For test-kind: the node image and the kind configuration; empty means kind's defaults. And which tests run.
NODE_IMAGE  ?=
KIND_CONFIG ?=
KIND_TESTS  ?= Kind
# Every package with a test that reads ADMISSIONTEST_KIND…. Without KIND_TESTS, the tests of the example follow.
KIND_PACKAGES = $(addprefix ./,$(sort $(dir $(shell git grep -l ADMISSIONTEST_KIND -- '*_test.go' ':!examples'))))

.PHONY: test-kind
test-kind: build ## Create a kind cluster and run the tests that need one; uses NODE_IMAGE and KIND_CONFIG.
	@docker info >/dev/null 2>&1 || podman info >/dev/null 2>&1 || nerdctl info >/dev/null 2>&1 || \
	  { echo "test-kind needs Docker, Podman or nerdctl; none of them responds"; exit 1; }
	@set -e; dir=$$(mktemp -d); kind="$$dir/kind"; name=admissiontest-make-$$$$; $(GO) build -o "$$kind" sigs.k8s.io/kind; \
	trap '"$$kind" delete cluster --name '"$$name"' --kubeconfig "$$dir/kubeconfig"; rm -rf "$$dir"' EXIT; trap 'exit 1' HUP INT TERM; \
	"$$kind" create cluster --name "$$name" --kubeconfig "$$dir/kubeconfig" --wait 2m \
	  $(if $(NODE_IMAGE),--image $(NODE_IMAGE)) $(if $(KIND_CONFIG),--config $(KIND_CONFIG)); \
	ADMISSIONTEST_KIND=1 ADMISSIONTEST_KIND_KUBECONFIG="$$dir/kubeconfig" NODE_IMAGE=$(NODE_IMAGE) KIND_CONFIG=$(abspath $(KIND_CONFIG)) \
	  $(GO) test -count=1 -p 1 -timeout 60m -run '$(KIND_TESTS)' $(KIND_PACKAGES)$(if $(filter Kind,$(KIND_TESTS)),; \
	ADMISSIONTEST_KIND_KUBECONFIG="$$dir/kubeconfig" make -C examples/webhook test-kind AT='$(abspath $(BIN))')

.PHONY: size
size: ## Count the lines of each place and the packages, and compare them with the limits of hack/places.
	@hack/size "$$($(GO) list ./... | wc -l)"

.PHONY: lint
lint: ## Check formatting, go vet, and the rules of .golangci.yml.
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	$(call go-on,$(NEWEST)) vet ./...
	$(GO) run $(GOLANGCI) run ./...
	$(GO) run $(ACTIONLINT) -shellcheck= -pyflakes=

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in the code that a released command calls (needs access to vuln.go.dev).
	GOBIN=$(CURDIR)/bin/tools $(GO) install $(GOVULNCHECK)
	GOFLAGS="$(GOFLAGS) -modfile=$(CURDIR)/hack/minors/release.mod" bin/tools/govulncheck ./...

.PHONY: release
release: ## Build a release of the checked-out tag in dist/, and draft it on GitHub; with ARGS=--snapshot, only build.
	GOBIN=$(CURDIR)/bin/tools $(GO) install $(SYFT)
	GOBIN=$(CURDIR)/bin/tools $(GO) install $(GORELEASER)
	PATH="$(CURDIR)/bin/tools:$$PATH" bin/tools/goreleaser release --clean $(ARGS)

.PHONY: test-release
test-release: ## Install the command as users do: from this commit with a tag, which a file proxy serves. Compiles everything with the versions of go.mod.
	ADMISSIONTEST_RELEASE=1 $(call go-on,$(NEWEST)) test -count=1 -timeout 60m -run TestInstalled ./cmd/admissiontest

.PHONY: conformance
conformance: build ## Run the whole catalogue on a real kube-apiserver; uses ARGS and K8S_VERSION.
	$(BIN) run $(VERSIONFLAG) --report $(REPORTS) $(ARGS)

.PHONY: bench
bench: test-assets ## Compare the catalogue with a bare client, and measure rules for webhooks and plugins; with ARGS=-cold, a build with empty caches.
ifeq ($(ARGS),-cold)
	hack/cold
else
	$(call go-on,$(NEWEST)) run ./hack/bench -command $(BIN) $(VERSIONFLAG) $(ARGS)
	$(WITH_RACE) $(call go-on,$(NEWEST)) test $(RACE) -run '^$$' -bench BenchmarkSound -benchtime 3x ./suites/webhook/internal/rules
	$(call go-on,$(NEWEST)) test -run '^$$' -bench BenchmarkContract -benchtime 1x ./suites/contract/internal/rules
endif

.PHONY: replicas
replicas: test-assets ## Run scenarios on two API servers behind a load balancer: 50 times, in 10 of them one of the servers ends.
	ADMISSIONTEST_REPLICAS=20 $(call go-on,$(NEWEST)) test -count 1 -timeout 60m -run TestReplica ./internal/e2e

.PHONY: findings
findings: test-assets ## Run the commands of docs/findings.md and print which defects are gone, which is no failure; a command that cannot be run is one. ARGS: a regular expression for headings and commands.
	hack/findings $(if $(ARGS),'$(ARGS)')

.PHONY: reach
reach: test-assets ## Compare package reach with a kube-apiserver: 5 sets of random configurations with 1,000 random requests each.
	for seed in 11 12 13 14 15; do ADMISSIONTEST_REACH_SEED=$$seed ADMISSIONTEST_REACH_REQUESTS=1000 $(call go-on,$(NEWEST)) test -count 1 -run TestAgainstServer ./framework/reach || exit 1; done

.PHONY: coverage
coverage: build ## Measure which code of a kube-apiserver the catalogue runs, and write docs/coverage.md.
	$(call go-on,$(NEWEST)) run ./hack/proof coverage -command $(BIN) -profile $(REPORTS)/coverage.txt $(VERSIONFLAG) $(ARGS)

# For mutation: the number of mutants, the seed of the sample, and the beginning of the names of the files.
MUTATION_N     ?= 20
MUTATION_SEED  ?= 100
MUTATION_FILES ?=

.PHONY: mutation
mutation: build ## Make MUTATION_N small changes in kube-apiserver, test whether the catalogue detects them, and write docs/mutation.md; run make coverage first.
	$(call go-on,$(NEWEST)) run ./hack/proof mutation -command $(BIN) -profile $(REPORTS)/coverage.txt -n $(MUTATION_N) -seed $(MUTATION_SEED) -files "$(MUTATION_FILES)" $(VERSIONFLAG) $(ARGS)

.PHONY: proof-compare
proof-compare: test-assets ## Compare ten webhooks with policies that are meant to be the same, and with 40 mistakes in them: 100 API servers.
	ADMISSIONTEST_PAIRS=1 $(call go-on,$(NEWEST)) test -count 1 -timeout 30m -parallel 4 -v -run TestPairs ./hack/pairs

.PHONY: generate
generate: ## Generate the JSON Schemas in docs/schemas.
	$(GO) generate ./...

.PHONY: clean
clean: ## Remove the files that make wrote, except kube-apiserver and etcd: `bin/admissiontest assets path` prints their folder.
	rm -rf bin $(REPORTS)
