package expression

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// grammar is that of references, as the plan language has it.
var grammar = regexp.MustCompile(`^\$(?:(?:ref|error|status):[A-Za-z0-9_-]+|input|last|index\b)` +
	`(?:\.[A-Za-z0-9_-]+|\[(?:0|[1-9][0-9]*|\*|"(?:[^"\\]|\\.)*")\])*`)

var broken = regexp.MustCompile(`^\$(ref|error|status):`)

// plain is a Reader.
func plain(s string, i int) (end int, why string) {
	if m := grammar.FindString(s[i:]); m != "" {
		return i + len(m), ""
	}
	if m := broken.FindString(s[i:]); m != "" {
		return i + len(m), "a step's id is expected"
	}
	return 0, ""
}

// values are JSON by references.
type values map[string]string

// of returns a Get for an expression.
func (v values) of(x *Expression) Get {
	refs := x.References()
	return func(i int) ([]byte, bool) {
		json, ok := v[refs[i]]
		return []byte(json), ok
	}
}

func compiled(t testing.TB, text string) *Expression {
	t.Helper()
	x, err := Compile(text, plain)
	require.Nil(t, err, "%s", text)
	return x
}

// calculated returns what an expression comes to.
func calculated(t testing.TB, text string, v values) (string, *fault.Error) {
	t.Helper()
	x := compiled(t, text)
	json, err := x.Value(v.of(x), ValueLimits)
	return string(json), err
}

func decided(t testing.TB, text string, v values) (bool, *fault.Error) {
	t.Helper()
	x := compiled(t, text)
	return x.True(v.of(x), ConditionLimits)
}
