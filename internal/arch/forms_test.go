package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The forms of messages have one place, wire, and what a run comes to has another, outcome. So no reader can drift from
// its writer, and whoever adds a field adds it once.

// spellsHeaders are the packages that name headers besides, each with its reason.
var spellsHeaders = map[string]string{
	"wire":                 "it is the place",
	"outcome":              "it is the place of outcomes",
	"subjects":             "it builds all names",
	"internal/conformance": "it plays the orchestrator for workers in other languages, and spells the protocol by itself: wire can't be judge in its own case",
	"internal/hosted":      "a service that is called over HTTP is told of the step under the same name",
}

// headerNames are what subjects has of the form of messages.
var headerNames = regexp.MustCompile(`^(Header[A-Z]\w*|Status(OK|Error)|\w*Version)$`)

func headerProblems(s source) (problems []string) {
	if s.test || spellsHeaders[s.pkg] != "" || strings.HasPrefix(s.pkg, "internal/lab") { // the lab looks at what lies there from outside
		return nil
	}
	s.uses(module+"/subjects", func(name string, pos token.Pos) {
		if headerNames.MatchString(name) {
			problems = append(problems, fmt.Sprintf("%s: subjects.%s is for wire, which writes and reads all forms", s.at(pos), name))
		}
	})
	return problems
}

// formless are the packages in which no struct says how it is written as JSON, but for those of ownForms.
var formless = []string{"orchestrator", "worker", "client", "kv"}

// ownForms are, by package and type or function, the structs with JSON names of their own in those packages.
var ownForms = map[string]string{
	"orchestrator pastResult": "reads what an outcome shows of a for_each step",
	"orchestrator pastItems":  "reads the entries of a for_each step",

	"worker envelope":   "what a batch's tool answers",
	"worker itemAnswer": "what a batch's tool answers",

	"client Server":    "what a ping tells, for people",
	"client Event":     "what the command line writes",
	"client Summary":   "what the command line writes",
	"client entriesOf": "reads what an outcome shows of a for_each step",

	"kv tombstoneJSON": "the mark of a removed entry",
	"kv Overridden":    "an answer about the registry",
	"kv Removed":       "an answer about the registry",
	"kv RemoveRequest": "a request about the registry",
	"kv TenantBucket":  "what the command line writes",
	"kv Keyless":       "what a ping tells the doctor",

	"kv apiAnswer":       jetStreams,
	"kv infoRequest":     jetStreams,
	"kv streamState":     jetStreams,
	"kv purgeRequest":    jetStreams,
	"kv deleteRequest":   jetStreams,
	"kv names":           jetStreams,
	"kv parseAck":        jetStreams,
	"kv askLimits":       jetStreams,
	"kv ConsumerTime":    jetStreams,
	"kv parsePull":       jetStreams,
	"kv RegistryEmptied": jetStreams,
}

const jetStreams = "JetStream's own protocol"

// forms calls each for every struct with JSON names, under the name of its type, or of the function that it stands in.
func (s source) forms(each func(name string, pos token.Pos)) {
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			structs(d, func(pos token.Pos) { each(d.Name.Name, pos) })
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				name := ""
				if t, ok := spec.(*ast.TypeSpec); ok {
					name = t.Name.Name
				}
				structs(spec, func(pos token.Pos) { each(name, pos) })
			}
		}
	}
}

func structs(n ast.Node, each func(pos token.Pos)) {
	ast.Inspect(n, func(n ast.Node) bool {
		t, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range t.Fields.List {
			if f.Tag != nil && strings.Contains(f.Tag.Value, `json:"`) && !strings.Contains(f.Tag.Value, `json:"-"`) {
				each(t.Pos())
				break
			}
		}
		return true
	})
}

func formProblems(s source, used map[string]bool) (problems []string) {
	formlessHere := false
	for _, pkg := range formless {
		formlessHere = formlessHere || s.pkg == pkg
	}
	if s.test || !formlessHere {
		return nil
	}
	s.forms(func(name string, pos token.Pos) {
		key := s.pkg + " " + name
		used[key] = true
		if ownForms[key] == "" {
			problems = append(problems, fmt.Sprintf("%s: the form of %s belongs into wire (or outcome), beside its reader and its golden file", s.at(pos), name))
		}
	})
	return problems
}

func TestForms(t *testing.T) {
	t.Parallel()
	var problems []string
	used := map[string]bool{}
	for _, s := range sources(t) {
		problems = append(problems, headerProblems(s)...)
		problems = append(problems, formProblems(s, used)...)
	}
	require.Empty(t, problems)
	for key := range ownForms {
		require.True(t, used[key], "%s is no exception any more", key)
	}
}

func TestFormsAreCaught(t *testing.T) {
	t.Parallel()
	form := func(s source) []string { return formProblems(s, map[string]bool{}) }
	const imports = `import "` + module + `/subjects"` + "\n"
	tests := []struct {
		pkg, code string
		check     func(source) []string
		caught    bool
	}{
		{"worker", imports + "var x = subjects.HeaderKey", headerProblems, true},
		{"kv", imports + "var x = subjects.StatusError", headerProblems, true},
		{"orchestrator", imports + "var x = subjects.StartVersion", headerProblems, true},
		{"client", imports + "var x = subjects.EventStart", headerProblems, false},
		{"wire", imports + "var x = subjects.HeaderKey", headerProblems, false},
		{"internal/cli", imports + "var x = subjects.HeaderKey", headerProblems, true},
		{"internal/lab/chaos", imports + "var x = subjects.HeaderKey", headerProblems, false},
		{"worker", "type claim struct { Nonce string `json:\"nonce\"` }", form, true},
		{"orchestrator", "func f() { var x struct { A int `json:\"a\"` }; _ = x }", form, true},
		{"orchestrator", "func pastItems() { var x struct { A int `json:\"a\"` }; _ = x }", form, false},
		{"kv", "type Store struct { a int }", form, false},
		{"client", "type x struct { A int `json:\"-\"` }", form, false},
		{"outcome", "type Run struct { A int `json:\"a\"` }", form, false},
	}
	for _, tt := range tests {
		s := parse(t, tt.pkg, "x.go", "package x\n"+tt.code+"\n")
		require.Equal(t, tt.caught, len(tt.check(s)) > 0, "%s: %s", tt.pkg, tt.code)
	}
}
