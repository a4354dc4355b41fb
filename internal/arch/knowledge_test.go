package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pure packages have no clock and no goroutines: time is an argument, and the caller decides what runs where.
var pure = []string{"fault", "outcome", "tool", "plan", "machine", "catalog", "model", "agent", "agent/parts", "agent/request", "internal/expression"}

var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"}

func pureProblems(s source) (problems []string) {
	if s.test || !slices.Contains(pure, s.pkg) {
		return nil
	}
	s.uses("time", func(name string, pos token.Pos) {
		if slices.Contains(clock, name) {
			problems = append(problems, fmt.Sprintf("%s: %s is pure, and time.%s reads a clock", s.at(pos), s.pkg, name))
		}
	})
	ast.Inspect(s.file, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			problems = append(problems, fmt.Sprintf("%s: %s is pure, and starts a goroutine", s.at(g.Pos()), s.pkg))
		}
		return true
	})
	return problems
}

// inspectorProblems finds who else looks at an account as it lies there: programs rely on what Setup and Open have
// checked.
func inspectorProblems(s source) (problems []string) {
	if s.test || s.pkg == "kv" || s.pkg == "internal/doctor" {
		return nil
	}
	s.uses(module+"/kv", func(name string, pos token.Pos) {
		if name == "Inspect" || name == "Inspector" {
			problems = append(problems, fmt.Sprintf("%s: kv.%s is for internal/doctor alone", s.at(pos), name))
		}
	})
	return problems
}

// Error codes of JetStream are numbers from 10,000; 10,000 itself is the most steps of a plan.
const firstCode, lastCode = 10001, 10999

var errorNames = regexp.MustCompile(`^(APIError|ErrorCode|JSErrCode\w*|JetStreamError)$`)

func errorCodeProblems(s source) (problems []string) {
	if s.test || s.pkg == "kv" {
		return nil
	}
	s.literals(token.INT, func(text string, pos token.Pos) {
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
		if err == nil && n >= firstCode && n <= lastCode {
			problems = append(problems, fmt.Sprintf("%s: %s looks like an error code of NATS, which only kv knows", s.at(pos), text))
		}
	})
	for _, p := range []string{"github.com/nats-io/nats.go", "github.com/nats-io/nats.go/jetstream"} {
		s.uses(localPath(s, p), func(name string, pos token.Pos) {
			if errorNames.MatchString(name) {
				problems = append(problems, fmt.Sprintf("%s: %s is for kv alone", s.at(pos), name))
			}
		})
	}
	return problems
}

// localPath returns the import path itself, unless the file imports it under the name that its base doesn't show:
// nats.go is called nats.
func localPath(s source, importPath string) string {
	for _, spec := range s.file.Imports {
		if name, _ := strconv.Unquote(spec.Path.Value); name == importPath && spec.Name == nil && strings.HasSuffix(name, ".go") {
			spec.Name = ast.NewIdent("nats")
		}
	}
	return importPath
}

// subjectLike are literals from which names in NATS are put together. None of them may hold a space, so that help texts
// are no matter of this.
var subjectLike = regexp.MustCompile(`^(\$KV\.|\$JS\.|\$O\.|plan\.(submit|in)\b|(event|notify|sched|step|cancel|api|sentinel)\.[A-Za-z0-9_*>%{]` +
	`|KV_runs|KV_history|OBJ_|STEPS_|runs_|Stepjet-)\S*$`)

func subjectProblems(s source) (problems []string) {
	if s.test || s.pkg == "subjects" {
		return nil
	}
	s.literals(token.STRING, func(text string, pos token.Pos) {
		content, err := strconv.Unquote(text)
		if s.pkg == "kv" && strings.HasPrefix(content, "$JS.") {
			return // the server's own protocol, no name of Stepjet's
		}
		if err == nil && subjectLike.MatchString(content) {
			problems = append(problems, fmt.Sprintf("%s: %s belongs into subjects, the only package that builds names", s.at(pos), text))
		}
	})
	return problems
}

func TestKnowledge(t *testing.T) {
	t.Parallel()
	var problems []string
	for _, s := range sources(t) {
		problems = append(problems, pureProblems(s)...)
		problems = append(problems, errorCodeProblems(s)...)
		problems = append(problems, subjectProblems(s)...)
		problems = append(problems, inspectorProblems(s)...)
	}
	require.Empty(t, problems)
}

func TestKnowledgeIsCaught(t *testing.T) {
	t.Parallel()
	const header = "import (\n\"time\"\n\"" + module + "/kv\"\n\"github.com/nats-io/nats.go\"\n\"github.com/nats-io/nats.go/jetstream\"\n)\n" +
		"var _ = time.Second\nvar _ nats.Header\nvar _ jetstream.Msg\n"
	tests := []struct {
		pkg, code string
		check     func(source) []string
		caught    bool
	}{
		{"machine", "var x = time.Now()", pureProblems, true},
		{"machine", "var x = time.Time{}.After(time.Time{})", pureProblems, false},
		{"tool", "var now = time.Now", pureProblems, true},
		{"plan", "func f() { go f() }", pureProblems, true},
		{"worker", "var x = time.Now()", pureProblems, false},
		{"worker", "const full = 10077", errorCodeProblems, true},
		{"worker", "const full = 10_077", errorCodeProblems, true},
		{"plan", "const most = 10_000", errorCodeProblems, false},
		{"kv", "const full = 10077", errorCodeProblems, false},
		{"client", "var x *jetstream.APIError", errorCodeProblems, true},
		{"client", "var x = nats.JSErrCodeStreamNotFound", errorCodeProblems, true},
		{"client", "var x = nats.ErrTimeout", errorCodeProblems, false},
		{"client", `var x = "$KV.runs_0."`, subjectProblems, true},
		{"client", `var x = "plan.submit." + "x"`, subjectProblems, true},
		{"client", `var x = "event.%s.%s.end"`, subjectProblems, true},
		{"worker", `var x = "Stepjet-Status"`, subjectProblems, true},
		{"worker", `var x = "the step."`, subjectProblems, false},
		{"worker", "var x = struct{ A int `json:\"step.x\"` }{}", subjectProblems, false},
		{"client", `var x = "publish to plan.submit.<tenant>.<run>"`, subjectProblems, false},
		{"kv", `var x = "$JS.API."`, subjectProblems, false},
		{"kv", `var x = "$KV."`, subjectProblems, true},
		{"worker", `var x = "$JS.ACK."`, subjectProblems, true},
		{"subjects", `var x = "plan.submit.*.*"`, subjectProblems, false},
		{"internal/cli", "var x, err = kv.Inspect(nil, kv.Config{})", inspectorProblems, true},
		{"internal/doctor", "var x, err = kv.Inspect(nil, kv.Config{})", inspectorProblems, false},
		{"internal/cli", "var x, err = kv.Open(nil, nil)", inspectorProblems, false},
	}
	for _, tt := range tests {
		s := parse(t, tt.pkg, "x.go", "package x\n"+header+tt.code+"\n")
		require.Equal(t, tt.caught, len(tt.check(s)) > 0, "%s: %s", tt.pkg, tt.code)
	}
}
