# Everything here needs Go and nothing else, but "make typescript", "make page", "make ui-test" and
# "make mcp", which need Node, and "make deploy",
# which says what it needs.
GO    ?= go
PLANS  = internal/builtin/testdata/nestful/plans.jsonl

# Packages whose code runs on more than one goroutine are tested with the race detector, the pure ones without: there is
# nothing to race in them, and their random tests are long. But for those tests that use a pure package from several
# goroutines at once, as its doc allows: RACED, each in a package of RACED_IN. The time-outs are for a machine that is busy
# with other things. A test of internal/arch says where a package or a test belongs elsewhere.
PURE = ./agent ./agent/request ./internal/dialect ./internal/expression ./internal/jsonmend ./internal/streamed ./fault ./subjects ./wire ./outcome ./tool ./plan ./machine ./internal/lab/reference ./internal/arch ./internal/graph ./internal/dryrun ./catalog ./catalog/search ./mcp/task ./internal/ui/index ./internal/ui/index/tally ./internal/lab/leaselog

RACED    = TestConcurrentEvaluation|TestManyMayReadStartsAtOnce|TestSamplesBesideChecks|TestCheckFromManyGoroutines|TestPlansAreAmendedByMany|TestLogNotesAll|TestTheExamplesOfTheGuideRun
RACED_IN = ./wire ./tool ./plan ./internal/expression ./internal/lab/leaselog ./catalog

# The others wait more than they work, so four packages go on at a time and four tests of each, whatever the number of cores,
# and those that take longest are the first: else one of them goes on alone at the end.
LONG = ./orchestrator ./internal/lab/agentbench ./internal/lab/e2e ./internal/acl ./client ./kv ./internal/cli ./worker ./examples/tutorial

# What these measure or play against a clock (leases, heartbeats, outages) needs the machine for itself: one at a time, and
# without the race detector, which the same code meets elsewhere.
TIMED = ./internal/conformance ./internal/bench ./internal/lab/chaos ./internal/lab/bench

.PHONY: lab deploy release test-timed sim mutants bench-contracts bench-agents agent-peers all build demo demo-agent test test-pure test-race vet fmt lint bench bench-scale bench-core chaos stranger typescript mcp page ui-test cast clean

all: build

VERSION =
STAMP   = $(if $(VERSION),-X github.com/stepjet/stepjet/internal/version.set=$(VERSION))
# Without the tag, the package that traces of OpenTelemetry are encoded with brings templates, which look methods up by
# name, and the linker keeps every method there is: modelworker is 77 MB then, not 43.
build: ## the programs, in bin/: static, stripped. A release: VERSION=v1.2.3; otherwise the go command stamps what git knows
	CGO_ENABLED=0 $(GO) build -tags grpcnotrace -buildvcs=auto -trimpath -ldflags '-s -w $(STAMP)' -o bin/ ./cmd/stepjet ./cmd/orchestrator ./cmd/toolworker ./cmd/modelworker

lab: ## what tries and measures them, in bin/
	$(GO) build -buildvcs=auto -o bin/ ./cmd/lab

demo: build ## real plans through real workers and a real NATS server, in one process
	@./bin/stepjet eval --tools examples/nestful.json --report $(PLANS)

demo-agent: lab ## an agent with a scripted planner, through a failure, an approval and a kill -9, without a key
	@./bin/lab demo-agent

test: vet fmt test-pure test-race test-timed ## the whole suite

define newline


endef

# "make vet" has looked at all of it, with its tests, before: the go command's own look at each package, once more for the
# race detector, is left out.
TEST = $(GO) test -vet=off -timeout 40m

# Packages tested with the race detector that have tests without it, "//go:build !race", and the names of those tests.
unraced-packages = $(filter-out $(PURE) $(TIMED),$(shell grep -rl --include '*_test.go' '^//go:build !race' . | xargs -n 1 dirname | sort -u))
unraced = ^($(shell grep -l '^//go:build !race' $(1)/*_test.go | xargs sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' | paste -sd '|'))$$

test-pure:
	$(TEST) $(PURE)
	$(foreach of,$(unraced-packages),$(TEST) -run '$(call unraced,$(of))' $(of)$(newline))

test-race:
	$(TEST) -race -run '^($(RACED))$$' $(RACED_IN)
	$(TEST) -race -parallel 4 $(LONG) $(filter-out $(subst ./,github.com/stepjet/stepjet/,$(PURE) $(TIMED)),$(shell $(GO) list ./...))

test-timed:
	$(TEST) -p 1 $(TIMED)

vet:
	$(GO) vet ./...

fmt:
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "gofmt these files:"; echo "$$bad"; exit 1; fi

lint: ## staticcheck and golangci-lint, from the module proxy; the first time that is two minutes of building
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...

BENCH_FLAGS =
bench: lab ## Stepjet against JetStream alone, in turns; writes bench/*.json and docs/performance.md. PART=separate BENCH_FLAGS='--rounds 3 --sustain 10s'
	./bin/lab bench $(PART) --figures bench --report docs/performance.md $(BENCH_FLAGS)
	$(if $(PART),,$(MAKE) bench-core)

bench-scale: lab ## what is large; half an hour. PART=backlog
	./bin/lab bench $(or $(PART),scale) --figures bench --report docs/performance.md $(BENCH_FLAGS)

bench-core: lab ## the pure packages by themselves
	$(GO) test -run '^$$' -bench '^BenchmarkCore' -benchmem ./plan ./machine > bin/core.txt
	./bin/lab bench core --figures bench --report docs/performance.md < bin/core.txt

SEEDS = 1000000
FROM  = 0
sim: ## the orchestrator's logic in SEEDS simulated worlds, on all cores; one world with its trace: go test ./orchestrator -run Simulated -v -seed N
	$(GO) test ./orchestrator -run TestSimulatedWorlds -timeout 0 -v -seeds $(SEEDS) -from $(FROM)

SECONDS    = 20
NAMESPACES = on
SETTINGS   = both
chaos: lab ## real processes under real faults; writes bench/chaos.json and docs/reliability.md. SCENARIO=a,b SECONDS=60 NAMESPACES=off SETTINGS=shipped
	./bin/lab chaos --scenario "$(SCENARIO)" --seconds $(SECONDS) --namespaces $(NAMESPACES) --settings "$(SETTINGS)" --keep

stranger: ## the README's way, timed: clone to a first plan, to a first worker, to the page. COLD=1 builds all anew
	.ci/stranger

typescript: build ## the example worker in TypeScript, against the protocol, with a plan, and as a part of one trace
	cd examples/typescript && npm ci --no-audit --no-fund && npx tsc
	examples/typescript/check.sh bin/stepjet
	$(GO) test -tags typescript -count 1 -timeout 20m -run TypeScript ./internal/serve

page: ## the page's types are right, and what browsers load is made of its sources
	cd web && npm ci --no-audit --no-fund --ignore-scripts && npx tsc
	$(GO) generate ./internal/ui/page

cast: build lab ## the README's terminal: real commands, recorded and drawn
	./bin/lab cast

SCREENSHOTS =
ui-test: build ## the page in a real browser: Debian's chromium, taken from there where it is absent. Two minutes. SCREENSHOTS=$$PWD/docs writes the pictures anew
	@.ci/debian chromium chromium
	cd web && npm ci --no-audit --no-fund --ignore-scripts && npx tsc && SCREENSHOTS=$(SCREENSHOTS) node --test --test-concurrency=1 test/*.test.mjs

MCP_SUITE = internal/lab/mcp/suite
MCP_TS    = internal/lab/mcp/client
MCP_NPM   = internal/lab/mcp/npm
mcp: lab ## "stepjet mcp" against the conformance suite of the Model Context Protocol and its own client, by itself and before bridged servers, and plans over real servers from npm
	cd $(MCP_SUITE) && npm ci --no-audit --no-fund --ignore-scripts
	./bin/lab mcp 2026-07-28 2025-11-25 --suite $(MCP_SUITE)
	$(GO) build -o bin/everything-server github.com/modelcontextprotocol/go-sdk/conformance/everything-server
	./bin/lab mcp chain 2026-07-28 2025-11-25 --suite $(MCP_SUITE) --server bin/everything-server
	./bin/lab mcp bridged --suite $(MCP_SUITE)
	cd $(MCP_TS) && npm ci --no-audit --no-fund --ignore-scripts
	./bin/lab mcp client --folder $(MCP_TS)
	cd $(MCP_NPM) && npm ci --no-audit --no-fund --ignore-scripts
	./bin/lab mcp bridge --folder $(MCP_NPM)

deploy: build lab ## what is in deploy/: units, alerts, Compose, KEDA, the Helm chart, releases, images. Takes systemd, prometheus and buildah from Debian where they are absent; as root
	deploy/check.sh
	deploy/chart_check.sh
	deploy/release_check.sh
	deploy/image_check.sh

release: ## a release as GoReleaser makes it, of this platform, signed and with images, without publishing it; as root. ALL=1 for all platforms
	deploy/release_rehearsal.sh

bench-agents: lab ## rounds of agents, kills of what runs them, words that race with their end; ten minutes. PART=rounds
	./bin/lab agents $(PART) --figures bench --report docs/performance.md

PEERS = internal/lab/agentpeers/npm
agent-peers: lab ## agents beside LangGraph.js with SQLite and Restate, in turns; needs Node, a compiler and root. Ten minutes
	cd $(PEERS) && npm ci --no-audit --no-fund --ignore-scripts && npm rebuild better-sqlite3
	./bin/lab agents peers --folder $(PEERS) --figures bench --report docs/performance.md

bench-contracts: lab ## writes the figures of docs/contracts.md
	./bin/lab contracts --report docs/contracts.md

ONLY =
# Whatever else the machine has to do comes first.
IDLE = $(shell command -v chrt >/dev/null && echo chrt -i 0)

mutants: lab ## plants one bug at a time and sees the tests catch it. ONLY=ack,claim for some, MISSING=--missing to go on
	$(IDLE) ./bin/lab mutants --report docs/mutations.md --results bench/mutations.json --only "$(ONLY)" $(MISSING)

clean:
	rm -rf bin .stepjet examples/typescript/dist examples/typescript/node_modules
