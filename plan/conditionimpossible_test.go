package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// A value is held against what is declared as arguments are: only the paths, since it takes whatever is there.
func TestImpossibleRefInValues(t *testing.T) {
	t.Parallel()
	tools := typedTools(t)
	for value, want := range map[string]string{
		`{"$calc":"$ref:a.reslt + 1"}`:                  "did you mean $ref:a.result?",
		`{"$calc":"sum($ref:l.items[*].idd)"}`:          "did you mean $ref:l.items[*].id?",
		`{"$calc":"$ref:a.result.x + 1"}`:               "write $ref:a.result",
		`{"x":"$ref:a.reslt"}`:                          `did you mean "$ref:a.result"?`,
		`"sum: ${ref:a.reslt}"`:                         "did you mean ${ref:a.result}?",
		`{"$calc":"($ref:a.reslt ?? 1) + 1"}`:           "",
		`{"$calc":"$ref:a.result + len($ref:l.items)"}`: "",
		`["$ref:a", "$ref:l.items", "$ref:u.x.y"]`:      "",
	} {
		_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"add","arguments":{"a":1,"b":2}},{"id":"l","tool":"list"},{"id":"u","tool":"any"},
			{"id":"v","value":`+value+`}`)), tools)
		if want == "" {
			require.Empty(t, append(r.Problems, r.Warnings...), value)
			continue
		}
		said := append(r.Problems, r.Warnings...)
		require.Len(t, said, 1, value)
		require.Equal(t, "impossible_ref", string(said[0].Code), value)
		require.Contains(t, said[0].Hint, want, value)
	}
}

// A condition over what can never be there would be false for ever, and nobody would know why. So its references are
// held against what their producers declare, as those in arguments are, and a hint writes what stands in a condition.
func TestImpossibleRefInConditions(t *testing.T) {
	t.Parallel()
	tools := typedTools(t)
	tools["dashed"] = plan.Tool{Output: schema(t, `{"type":"object","properties":{"total-5":{"type":"number"}},"additionalProperties":false}`)}
	for name, c := range map[string]struct{ condition, at, message, hint string }{
		"how it ended, meant":         {"$ref:l.error != null", "warning impossible_ref", "", "write $error:l"},
		"how it ended, in a word":     {"$ref:a.status == 'failed'", "impossible_ref", "", "write $status:a"},
		"why it ended":                {"$ref:a.error.code == 'x'", "impossible_ref", "", "write $error:a.code"},
		"how long it is":              {"$ref:l.items.length > 1", "impossible_ref", "", "write len($ref:l.items)"},
		"the right field":             {"$ref:a.result > 1", "", "", ""},
		"no such key":                 {"$ref:a.reslt > 1", "impossible_ref", "$ref:a.reslt can never be there", "did you mean $ref:a.result?"},
		"key into a number":           {"$ref:a.result.x > 1", "impossible_ref", `result of what "add" returns is a number`, "write $ref:a.result"},
		"key into a list":             {"$ref:l.items.id == 'x'", "impossible_ref", "", "write $ref:l.items[0].id for one item, or $ref:l.items[*].id for all"},
		"within a call":               {"len($ref:l.items.id) > 2", "impossible_ref", "", ""},
		"a key that has to be quoted": {"$ref:d.total > 2", "impossible_ref", "", `$ref:d["total-5"]`},
		"any type will do":            {"$ref:a == 1 or $ref:s", "", "", ""},
		"with an alternative":         {"($ref:a.reslt ?? 1) > 0", "", "", ""},
		"alternatives":                {"($ref:a.reslt ?? $ref:a.result) > 0", "", "", ""},
		"how it ended":                {"$status:a == 'failed' or $error:a.details.x == 1", "", "", ""},
		"nothing declared":            {"$ref:u.x.y", "", "", ""},
		"open for more":               {"$ref:l.more", "warning impossible_ref", "has no key", ""},
		"an entry":                    {"$ref:e[0].data.result > 1", "", "", ""},
		"all entries":                 {"len($ref:e) > 1 and $ref:e[0].status == 'ok'", "", "", ""},
		"an entry's other field":      {"$ref:e[0].data.sum > 1", "impossible_ref", "", "write $ref:e[0].data.result"},
		"what no entry has":           {"$ref:e[0].result > 1", "invalid_ref", "yields an array of entries", "what the tool returned is under data: write $ref:e[0].data.result"},
		"no entry":                    {"$ref:e.results", "invalid_ref", "", "$ref:e is that array itself"},
		"no entry, or else":           {"($ref:e.results ?? 1) == 1", "invalid_ref", "", ""},
		"twice the same":              {"$ref:a.reslt > 1 and $ref:a.reslt < 5", "impossible_ref", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := plan.Parse([]byte(steps(`{"id":"a","tool":"add","arguments":{"a":1,"b":2}},{"id":"l","tool":"list"},{"id":"s","tool":"shout"},
				{"id":"u","tool":"any"},{"id":"d","tool":"dashed"},{"id":"e","tool":"add","for_each":{"in":[1]},"arguments":{"a":"$ref:item","b":1}},
				{"id":"x","tool":"any","if":`+quoted(c.condition)+`}`)), tools)
			all := found(r.Problems)
			for _, w := range found(r.Warnings) {
				all = append(all, "warning "+w)
			}
			if c.at == "" {
				require.Empty(t, all)
				return
			}
			require.Equal(t, []string{c.at + " /steps/6/if"}, all, "%v", r.Problems)
			said := append(r.Problems, r.Warnings...)[0]
			require.Contains(t, said.Message, c.message)
			require.Contains(t, said.Hint, c.hint)
		})
	}
}
