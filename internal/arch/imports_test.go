package arch_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rules says what each package may import: what stands on the right of its line, and nothing else. The first line that
// fits a package is its own. Names are folders of the module, other modules by a short name of shortNames, "std" for
// the standard library without what needs a system beneath it, "sys" for the rest of it, and "*" for anything.
//
// What tests import is not bound by it, except that nats-server is for internal/* alone.
const rules = `
	fault             std
	subjects          std
	outcome           std fault internal/unknown internal/jsontape
	wire              std fault internal/text subjects outcome tool nats
	tool              std fault subjects internal/text internal/unknown internal/jsontape internal/expression jsonschema
	plan              std fault subjects internal/text tool internal/jsontape internal/expression internal/dialect
	machine           std fault subjects outcome plan tool
	tool/group        std fault subjects tool mcp/selector

	catalog           std fault subjects tool plan internal/jsontape
	catalog/search    std tool

	agent             std fault subjects internal/text internal/jsontape internal/jsonmend internal/expression internal/dialect tool plan catalog catalog/search mcp/selector
	agent/parts       std fault internal/jsontape
	agent/request     std fault internal/jsontape agent agent/parts

	model             std net/http fault internal/jsonmend
	model/provider    std sys fault agent/parts model tool worker kv openai anthropic

	observe           std fault outcome
	observe/spans     std fault observe subjects otel
	seal              std sys fault

	kv                std sys fault internal/text subjects wire tool tool/group outcome internal/backoff internal/unknown internal/version nats sync gjson

	orchestrator/again std subjects machine wire
	orchestrator/agents std fault subjects tool tool/group plan machine wire outcome agent agent/parts agent/request internal/jsontape
	orchestrator      std sys fault observe internal/observer internal/text internal/version subjects wire outcome tool tool/group plan machine kv seal internal/backoff internal/few nats sync agent orchestrator/again orchestrator/agents internal/agentcheck
	worker            std sys fault observe internal/observer internal/text internal/version subjects wire outcome tool plan kv seal internal/backoff nats sync schemas internal/streamed
	client            std sys fault observe internal/observer internal/text subjects wire outcome tool tool/group plan kv seal internal/backoff nats sync uuid internal/dryrun internal/streamed

	mcp/content       std fault internal/jsontape
	mcp/selector      std fault tool
	mcp/task          std fault internal/text subjects outcome
	mcp/server        std sys fault internal/front internal/text internal/jsontape internal/backoff subjects outcome tool tool/group plan catalog catalog/search client mcp/content mcp/selector mcp/task uuid mcp-sdk oidc
	mcp/servers       std sys fault internal/hosted internal/jsonfile internal/jsontape internal/text subjects wire tool mcp/selector
	mcp/session       std sys fault internal/hosted internal/text internal/version mcp/content mcp/servers mcp/task mcp-sdk
	mcp/bridge        std sys fault internal/backoff internal/jsontape internal/text subjects wire tool worker mcp/content mcp/servers mcp/session mcp/task mcp-sdk

	stepjettest       std sys outcome worker client internal/dev nats

	internal/lab/reference std math/rand
	internal/lab/*    *
	cmd/lab           std sys fault internal/* cobra term
	internal/dryrun   std fault internal/text internal/agentcheck subjects wire outcome tool tool/group plan machine
	internal/saved    std fault internal/text internal/jsontape plan
	internal/agentcheck std fault internal/text internal/jsontape agent plan tool tool/group
	internal/streamed std fault internal/text internal/jsontape subjects plan
	internal/backoff  std
	internal/unknown  std internal/jsontape
	internal/jsontape std fault
	internal/jsonmend std jsonrepair
	internal/few      std
	internal/front    std sys fault
	internal/text     std
	internal/dialect  std fault subjects internal/text tool internal/jsontape internal/expression
	internal/expression std fault internal/text internal/jsontape apd
	internal/observer std sys observe
	internal/arch
	internal/*        *
	cmd/*             std sys fault subjects wire outcome tool plan kv orchestrator worker client seal internal/* nats sync cobra term
	examples/agents   std sys fault outcome tool worker client nats agent/parts model model/provider
	examples/model    std sys fault outcome tool worker client nats model model/provider
	examples/*        std sys fault outcome tool worker client nats
`

// audiences says who may import a package that is not for everybody whom rules let import it: who stands on the right
// of its line, and tests.
const audiences = `
	internal/telemetry/* internal/telemetry internal/serve internal/serve/hosting
	github.com/prometheus/* internal/telemetry/metrics
	go.opentelemetry.io/* internal/telemetry internal/telemetry/traces observe/spans
	internal/doctor   internal/cli internal/config internal/lab/* internal/serve internal/ui
	model/provider    internal/serve/models examples/model examples/agents
	internal/serve/models cmd/modelworker cmd/stepjet
	github.com/cockroachdb/apd/* internal/expression
	github.com/openai/openai-go/* model/provider
	github.com/anthropics/anthropic-sdk-go/* model/provider
	github.com/kaptinlin/jsonrepair internal/jsonmend
	github.com/modelcontextprotocol/go-sdk/* mcp/* internal/lab/mcp
	github.com/coreos/go-oidc/* mcp/server
	mcp/server        internal/serve/mcp internal/lab/mcp
	internal/ui       internal/serve/web
	internal/roots    cmd/*
	golang.org/x/crypto/x509roots/* internal/roots
	github.com/evanw/esbuild/* internal/lab/page
`

// shortNames are the modules that rules may name. A module that isn't here may be imported by internal/* alone.
var shortNames = map[string][]string{
	"nats":       {"github.com/nats-io/nats.go", "github.com/nats-io/nkeys", "github.com/nats-io/nuid", "github.com/synadia-io/orbit.go"},
	"jsonschema": {"github.com/santhosh-tekuri/jsonschema/v6"},
	"schemas":    {"github.com/google/jsonschema-go"},
	"gjson":      {"github.com/tidwall/gjson"},
	"sjson":      {"github.com/tidwall/sjson"},
	"sync":       {"golang.org/x/sync"},
	"uuid":       {"github.com/google/uuid"},
	"term":       {"golang.org/x/term"},
	"cobra":      {"github.com/spf13/cobra", "github.com/spf13/pflag"},
	"apd":        {"github.com/cockroachdb/apd/v3"},
	"jsonrepair": {"github.com/kaptinlin/jsonrepair"},
	"openai":     {"github.com/openai/openai-go/v3"},
	"anthropic":  {"github.com/anthropics/anthropic-sdk-go"},
	"mcp-sdk":    {"github.com/modelcontextprotocol/go-sdk"},
	"otel":       {"go.opentelemetry.io/otel"},
	"oidc":       {"github.com/coreos/go-oidc/v3"},
}

// system are the parts of the standard library that read or change the world around a program, by their first element
// or their whole name.
var system = []string{
	"os", "net", "net/http", "net/netip", "io/fs", "io/ioutil", "log", "syscall", "runtime", "plugin", "testing", "math/rand", "crypto/rand", "expvar",
	"database/sql", "flag", "embed",
}

const natsServer = "github.com/nats-io/nats-server/"

type rule struct {
	pattern string
	may     []string
}

func parseRules(t *testing.T, text string) []rule {
	t.Helper()
	var all []rule
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 {
			all = append(all, rule{f[0], f[1:]})
		}
	}
	require.NotEmpty(t, all)
	return all
}

// importProblems checks the imports of some files.
func importProblems(t *testing.T, files []source, text string) []string {
	t.Helper()
	all, closed := parseRules(t, text), parseRules(t, audiences)
	var problems []string
	for _, s := range files {
		r := slices.IndexFunc(all, func(r rule) bool { return match(r.pattern, s.pkg) })
		if r < 0 {
			problems = append(problems, fmt.Sprintf("package %s is in no rule: add it to rules, after asking where it belongs", s.pkg))
			continue
		}
		imports := s.imports()
		for _, name := range slices.Sorted(maps.Keys(imports)) {
			switch {
			case strings.HasPrefix(name, natsServer) && !strings.HasPrefix(s.pkg, "internal/"):
				problems = append(problems, s.at(imports[name])+": only internal/* may import nats-server")
			case !s.test && !inLab(s.pkg) && inLab(name):
				problems = append(problems, s.at(imports[name])+": the product never imports the lab")
			case !s.test && !slices.ContainsFunc(all[r].may, func(may string) bool { return allows(may, name) }):
				problems = append(problems, fmt.Sprintf("%s: %s may not import %s", s.at(imports[name]), s.pkg, name))
			case !s.test && !invited(closed, s.pkg, name):
				problems = append(problems, fmt.Sprintf("%s: %s is not for %s", s.at(imports[name]), name, s.pkg))
			}
		}
	}
	return problems
}

// invited reports whether a package may import another, as far as audiences say something of that.
func invited(closed []rule, pkg, name string) bool {
	for _, r := range closed {
		if match(r.pattern, name) {
			return slices.ContainsFunc(r.may, func(who string) bool { return match(who, pkg) })
		}
	}
	return true
}

// inLab reports whether a package tries and measures the product and is no part of it.
func inLab(pkg string) bool { return pkg == "cmd/lab" || strings.HasPrefix(pkg, "internal/lab/") }

func match(pattern, name string) bool {
	prefix, any := strings.CutSuffix(pattern, "/*")
	return pattern == name || any && strings.HasPrefix(name, prefix+"/")
}

// allows reports whether one word of a rule covers an import.
func allows(may, name string) bool {
	first, _, _ := strings.Cut(name, "/")
	switch {
	case may == "*", may == name:
		return true
	case may == "std" || may == "sys":
		return standard(name) && isSystem(name) == (may == "sys")
	}
	for _, module := range shortNames[may] {
		if name == module || strings.HasPrefix(name, module+"/") {
			return true
		}
	}
	return !strings.Contains(first, ".") && !standard(name) && match(may, name)
}

// standard tells the standard library from the folders of the module. No folder of the module has the name of a part of
// the standard library; those that a rule names are the module's.
func standard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	if strings.Contains(first, ".") {
		return false
	}
	for _, own := range []string{"fault", "subjects", "outcome", "wire", "tool", "plan", "machine", "catalog", "kv", "orchestrator", "worker", "client", "observe", "seal", "model", "internal", "cmd"} {
		if first == own {
			return false
		}
	}
	return true
}

func isSystem(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains(system, name) || slices.Contains([]string{"os", "runtime", "testing", "log"}, first)
}

func TestImports(t *testing.T) {
	t.Parallel()
	require.Empty(t, importProblems(t, sources(t), rules))
}

// TestProgramsBringAuthorities: an image holds a program and no certificates, so each program has to import its own.
func TestProgramsBringAuthorities(t *testing.T) {
	t.Parallel()
	brings := map[string]bool{}
	for _, s := range sources(t) {
		if strings.HasPrefix(s.pkg, "cmd/") && !inLab(s.pkg) && !s.test {
			_, has := s.imports()["internal/roots"]
			brings[s.pkg] = brings[s.pkg] || has
		}
	}
	require.Equal(t, map[string]bool{"cmd/modelworker": true, "cmd/orchestrator": true, "cmd/stepjet": true, "cmd/toolworker": true}, brings)
}

// The rules catch what they are for.
func TestImportsAreCaught(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pkg, imports string
		test, caught bool
	}{
		{"machine", module + "/plan", false, false},
		{"machine", module + "/kv", false, true},
		{"machine", "github.com/nats-io/nats.go", false, true},
		{"plan", module + "/machine", false, true},
		{"plan", "os", false, true},
		{"plan", "net/http", false, true},
		{"plan", "net/url", false, false},
		{"tool", "log/slog", false, true},
		{"fault", module + "/subjects", false, true},
		{"subjects", module + "/fault", false, true},
		{"wire", "github.com/nats-io/nats.go", false, false},
		{"kv", module + "/machine", false, true},
		{"kv", "os", false, false},
		{"worker", module + "/orchestrator", false, true},
		{"client", module + "/worker", false, true},
		{"orchestrator", module + "/client", false, true},
		{"orchestrator", natsServer + "v2/server", false, true},
		{"orchestrator", natsServer + "v2/server", true, true},
		{"internal/embedded", natsServer + "v2/server", false, false},
		{"internal/lab/reference", module + "/plan", false, true},
		{"internal/lab/reference", module + "/plan", true, false},
		{"internal/lab/reference", "github.com/tidwall/gjson", false, true},
		{"cmd/stepjet", module + "/internal/cli", false, false},
		{"internal/cli", module + "/internal/lab/bench", false, true},
		{"internal/cli", module + "/internal/lab/natstest", true, false},
		{"internal/lab/chaos", module + "/internal/lab/natstest", false, false},
		{"cmd/stepjet", module + "/internal/lab/bench", false, true},
		{"cmd/lab", module + "/internal/lab/bench", false, false},
		{"cmd/stepjet", natsServer + "v2/server", false, true},
		{"examples/weather", module + "/worker", false, false},
		{"examples/weather", module + "/internal/embedded", false, true},
		{"internal/cli", module + "/internal/doctor", false, false},
		{"internal/dev", module + "/internal/doctor", false, true},
		{"orchestrator", module + "/internal/doctor", true, false},
		{"internal/expression", "github.com/cockroachdb/apd/v3", false, false},
		{"internal/expression", module + "/plan", false, true},
		{"internal/builtin", "github.com/cockroachdb/apd/v3", false, true},
		{"model", "os", false, true},
		{"model/provider", "github.com/openai/openai-go/v3/option", false, false},
		{"internal/cli", "github.com/openai/openai-go/v3", false, true},
		{"internal/serve", module + "/model/provider", false, true},
		{"internal/cli", module + "/internal/serve/models", false, true},
		{"client", "example.com/somebody", false, true},
		{"elsewhere", "fmt", false, true},
	}
	for _, tt := range tests {
		name := "x.go"
		if tt.test {
			name = "x_test.go"
		}
		s := parse(t, tt.pkg, name, "package "+path.Base(tt.pkg)+"\nimport _ \""+tt.imports+"\"\n")
		require.Equal(t, tt.caught, len(importProblems(t, []source{s}, rules)) > 0, "%s imports %s", tt.pkg, tt.imports)
	}
}
