package agentcheck_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/tool"
)

func define(t *testing.T, raw string) *tool.Definition {
	t.Helper()
	d, err := tool.ParseDefinition([]byte(raw))
	require.NoError(t, err)
	return d
}

// A way back is found through agents, planners, facades and the plans of templates, by the shortest, at the place where
// it begins; what calls others twice is no circle.
func TestCircle(t *testing.T) {
	t.Parallel()
	files := agentcheck.Files{}
	for _, raw := range []string{
		`{"name":"self","agent":{"planner":{"tool":"m"},"tools":["x","self"]}}`,
		`{"name":"a","agent":{"planner":{"tool":"m"},"tools":["x",{"unfold":"f","description":"F.","tools":["t"]}]}}`,
		`{"name":"t","plan":{"steps":[{"id":"i","tool":"x"},{"id":"s","plan":{"steps":[{"id":"k","tool":"u"}]}}]}}`,
		`{"name":"u","plan":{"steps":[{"id":"i","tool":"a"}]}}`,
		`{"name":"thinks","agent":{"planner":{"tool":"thinker"}}}`,
		`{"name":"thinker","agent":{"planner":{"tool":"thinks"}}}`,
		`{"name":"above","agent":{"planner":{"tool":"m"},"tools":["below","x"]}}`,
		`{"name":"below","agent":{"planner":{"tool":"m"},"tools":["x"]}}`,
		`{"name":"far","agent":{"planner":{"tool":"m"},"tools":["a"]}}`,
	} {
		d := define(t, raw)
		files[d.Name] = d
	}
	for name, want := range map[string]struct{ at, message string }{
		"self":   {"/agent/tools/1", "it reaches itself: self → self"},
		"a":      {"/agent/tools/1/tools/0", "it reaches itself: a → t → a"},
		"t":      {"/plan/steps", "it reaches itself: t → a → t"},
		"u":      {"/plan/steps", "it reaches itself: u → a → t → u"},
		"thinks": {"/agent/planner/tool", "it reaches itself: thinks → thinker → thinks"},
	} {
		p := files.Circle(name)
		require.NotNil(t, p, name)
		if name == "a" || name == "u" { // the plan of t has that of u within
			require.Contains(t, p.Message, name+" → ")
			require.Equal(t, want.at, p.Path)
			continue
		}
		require.Equal(t, want.message, p.Message)
		require.Equal(t, want.at, p.Path)
		require.Equal(t, fault.Cycle, p.Code)
		require.NotEmpty(t, p.Hint)
	}
	for _, name := range []string{"above", "below", "far", "nobody"} {
		require.Nil(t, files.Circle(name), name)
	}
}

// What an agent can call is frozen with a run of it: its planner, what makes its summaries, the guards that are tools, its
// entries, and what those of its facades stand for.
func TestCallsOf(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(define(t, `{"name":"a","agent":{"planner":{"tool":"m"},"context":{"summary":"sum"},"tools":["x","process",{"unfold":"f","description":"F.","tools":["y"]}],
		"guards":[{"on":"input","when":"$input != 1"},{"on":"call","tool":"judge"}]}}`))
	require.NoError(t, err)
	a, report := agent.Parse(body, nil)
	require.NotNil(t, a, "%v", report.Problems)
	require.Equal(t, []agentcheck.Call{
		{"m", "/agent/planner/tool"}, {"sum", "/agent/context/summary"}, {"judge", "/agent/guards/1/tool"}, {"x", "/agent/tools/0"}, {"y", "/agent/tools/2/tools/0"},
	}, agentcheck.CallsOf(a))
}

// The planners of an agent are its own and those of agents that it reaches, through templates too, each once.
func TestPlanners(t *testing.T) {
	t.Parallel()
	files := agentcheck.Files{}
	for _, raw := range []string{
		`{"name":"above","agent":{"planner":{"tool":"m"},"tools":["x","t",{"unfold":"f","description":"F.","tools":["again"]}]}}`,
		`{"name":"t","plan":{"steps":[{"id":"i","tool":"below"}]}}`,
		`{"name":"below","agent":{"planner":{"tool":"other"},"tools":["x"]}}`,
		`{"name":"again","agent":{"planner":{"tool":"m"},"tools":["above"]}}`,
		`{"name":"x"}`,
	} {
		d := define(t, raw)
		files[d.Name] = d
	}
	require.Equal(t, []string{"m", "other"}, files.Planners("above"))
	require.Equal(t, []string{"other"}, files.Planners("below"))
	require.Empty(t, files.Planners("x"))
	require.Empty(t, files.Planners("nobody"))
}

// What a text asks for and is not there is named, with what there is.
func TestTexts(t *testing.T) {
	t.Parallel()
	const schema = `"inputSchema":{"type":"object","properties":{"topic":{"type":"string"},"depth":{"type":"integer"}}`
	for _, x := range []struct {
		schema, text     string
		problem, warning string // what is said, or ""
		hint             string
	}{
		{schema + `}`, "Research ${input.topic}, ${input[\"depth\"]}, ${input}, $${HOME}, $5.", "", "", ""},
		{schema + `}`, "Use ${topic}.", "${topic} stands for nothing here", "", "there is ${input.topic}; where the text is meant, double the dollar: $${"},
		{schema + `}`, "Use ${args.x}.", "${args.x} stands for nothing here", "", "there is ${input.depth}, ${input.topic}; where"},
		{schema + `}`, "Use ${ref:a}.", "${ref:a} stands for nothing here", "", "double the dollar"},
		{schema + `}`, "About ${input.topik}.", "", `names no "topik"`, "there is ${input.topic}"},
		{schema + `,"additionalProperties":false}`, "About ${input.topik}.", `names no "topik"`, "", "there is ${input.topic}"},
		{schema + `,"anyOf":[{}]}`, "About ${input.topik}.", "", "", ""},
		{`"inputSchema":{"type":"object"}`, "About ${input.topik}.", "", "", ""},
		{`"inputSchema":{"type":"object"}`, "About ${x}.", "${x} stands for nothing here", "", "${input.topic}"},
	} {
		d := define(t, `{"name":"a",`+x.schema+`,"agent":{"planner":{"tool":"m"},"instructions":`+quoted(x.text)+`}}`)
		problems, warnings := agentcheck.Texts(d)
		for want, got := range map[*string][]fault.Problem{&x.problem: problems, &x.warning: warnings} {
			if *want == "" {
				require.Empty(t, got, x.text)
				continue
			}
			require.Len(t, got, 1, x.text)
			require.Contains(t, got[0].Message, *want)
			require.Contains(t, got[0].Hint, x.hint)
			require.Equal(t, "/agent/instructions", got[0].Path)
		}
	}
}

func quoted(s string) string {
	b := []byte{'"'}
	for _, c := range []byte(s) {
		if c == '"' {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return string(append(b, '"'))
}

// TestSinksLeadNowhereElse: whatever a sink is called, it lies below the tenant of the run, or who applies the agent is told where it
// stands and what to write.
func TestSinksLeadNowhereElse(t *testing.T) {
	t.Parallel()
	sinks := func(raw string) []fault.Problem {
		a, r := agent.Parse([]byte(`{"name":"a","agent":{"planner":{"tool":"model"},"tools":["look",{"unfold":"f","description":"F.","tools":[{"tool":"find","artifact":{"type":"Note","sink":`+raw+`}}]}]}}`), nil)
		require.NotNil(t, a, "%v", r.Problems)
		return agentcheck.Sinks(a)
	}
	for _, good := range []string{`null`, `{"subject":"notes"}`, `[{"subject":"a.b"},{"bucket":"docs"}]`} {
		require.Empty(t, sinks(good), good)
	}
	for _, bad := range []string{
		`{"subject":"a.>"}`, `{"subject":"*"}`, `{"subject":"$KV.tools.x"}`, `{"subject":".."}`, `{"subject":"a b"}`, `{"subject":"a\r\nPUB x"}`, `{"bucket":"a.b"}`, `{"bucket":"*"}`,
		`[{"subject":"a"},{"subject":"a"}]`, `[{"bucket":"1"},{"bucket":"2"},{"bucket":"3"},{"bucket":"4"},{"bucket":"5"},{"bucket":"6"},{"bucket":"7"},{"bucket":"8"},{"bucket":"9"}]`,
	} {
		problems := sinks(bad)
		require.Len(t, problems, 1, bad)
		require.Equal(t, "/agent/tools/1/tools/0/artifact/sink", problems[0].Path)
		require.NotEmpty(t, problems[0].Hint)
	}
}
