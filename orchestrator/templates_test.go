package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// apply registers a template of some steps and an output.
func (s *system) apply(name, more, steps, output string) tool.Registered {
	s.t.Helper()
	t, err := s.client.ApplyTemplate(ctx(s.t), fmt.Appendf(nil, `{"name":%q%s,"plan":{"steps":[%s],"output":%s}}`, name, more, steps, output))
	require.NoError(s.t, err)
	return t
}

func TestATemplateIsCalledAsAnyTool(t *testing.T) {
	t.Parallel()
	s := start(t)
	put := s.apply("twice", `,"inputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`,
		`{"id":"a","tool":"echo","arguments":{"n":"$input.n"}},{"id":"b","value":{"$calc":"$ref:a.n * 2"}}`, `{"n":"$ref:b"}`)
	s.apply("thrice", "", `{"id":"x","tool":"twice","arguments":{"n":"$input.n"}},{"id":"y","value":{"$calc":"$ref:x.n + $input.n"}}`, `"$ref:y"`)
	o := s.run(`{"output_steps":["c","d"],"steps":[{"id":"c","tool":"thrice","arguments":{"n":7}},
		{"id":"d","tool":"twice","for_each":{"in":[1,2]},"arguments":{"n":"$ref:item"}}]}`, "called")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `21`, result(t, o, "c"))
	require.JSONEq(t, `{"results":[{"index":0,"status":"ok","data":{"n":2}},{"index":1,"status":"ok","data":{"n":4}}],"summary":{"ok":2,"error":0}}`, result(t, o, "d"))
	doc := s.history("default", "called")
	require.Equal(t, "thrice", doc.Steps[0].Tool)
	require.Equal(t, "c/x/a", doc.Steps[0].Steps[0].Steps[0].ID)
	require.Len(t, doc.Templates, 2)
	require.JSONEq(t, string(put.Definition.Plan), string(doc.Templates["twice"]))
	alone := s.run(`{"template":"thrice","input":{"n":2}}`, "alone")
	require.JSONEq(t, `6`, string(alone.Output), "%s", alone.JSON())
	refused := s.run(`{"template":"twice","input":{"m":2}}`, "refused")
	require.Equal(t, outcome.Rejected, refused.Status)
	require.Equal(t, "/input", refused.Problems[0].Path)
}

// TestARunKeepsItsTemplates: what is applied or removed while it goes on is nothing to it, whoever owns it.
func TestARunKeepsItsTemplates(t *testing.T) {
	t.Parallel()
	s := start(t)
	first := s.apply("gated", "", `{"id":"wait","tool":"gate"},{"id":"then","tool":"echo","arguments":{"v":1},"depends_on":["wait"]}`, `"$ref:then.v"`)
	r := s.submit(`{"steps":[{"id":"p","tool":"gated"}]}`, "kept")
	<-s.tools.begun
	record, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "kept"), r.Generation(), 1))
	require.NoError(t, err)
	frozen, _, err := wire.ParseStart(record.Header, record.Data)
	require.NoError(t, err)
	require.Equal(t, first.Digest, frozen.Tools["gated"].Digest)
	require.True(t, frozen.Tools["gated"].Plan)
	require.Equal(t, []string{wire.LanguageTwo}, frozen.Needs)
	second := s.apply("gated", "", `{"id":"other","value":2}`, `"$ref:other"`)
	require.NotEqual(t, first.Digest, second.Digest)
	require.JSONEq(t, `{"p":2}`, string(mustJSON(t, s.run(`{"steps":[{"id":"p","tool":"gated"}]}`, "newer").Results)))
	s.orchestrator() // beside the first, which ends
	s.leave()
	close(s.tools.gate)
	o := s.wait(r)
	require.JSONEq(t, `1`, result(t, o, "p"))
	require.JSONEq(t, string(first.Definition.Plan), string(s.history("default", "kept").Templates["gated"]))
	_, err = s.store.Requests.RequestRemove(ctx(t), "gated", false)
	require.NoError(t, err)
	gone := s.run(`{"steps":[{"id":"p","tool":"gated"}]}`, "gone")
	require.Equal(t, []fault.Code{fault.UnknownTool}, codes(gone.Problems))
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// TestATemplateThatLostATool, or that never had it, says so where it is called and where it is applied.
func TestATemplateThatLostATool(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"t","plan":{"steps":[{"id":"a","tool":"gone"},{"id":"b","tool":"echo","arguments":{"x":"$ref:c"}},{"id":"d","tool":"t"}]}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
	var places []string
	for _, f := range tool.FlawsOf(err) {
		places = append(places, string(f.Code)+" "+f.Path)
	}
	require.Equal(t, []string{"unknown_tool /plan/steps/0/tool", "recursive_plan /plan/steps/2/tool", "unknown_ref /plan/steps/1/arguments/x"}, places, "all at once, over the wire")
	_, err = s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"lone"}`)) // that no worker registers again
	require.NoError(t, err)
	s.apply("uses", "", `{"id":"a","tool":"lone"}`, `"$ref:a"`)
	_, err = s.store.Requests.RequestRemove(ctx(t), "lone", false)
	require.NoError(t, err)
	o := s.run(`{"steps":[{"id":"p","tool":"uses"}]}`, "lost")
	require.Equal(t, outcome.Rejected, o.Status)
	require.Equal(t, fault.UnknownTool, o.Problems[0].Code)
	require.Equal(t, "/steps/0/tool", o.Problems[0].Path)
	require.Contains(t, o.Problems[0].Message, `the template "uses" can't run: /steps/0/tool: there is no tool "lone"`)
}

// TestTemplatesReachEachOther only once: the second that is applied closes the circle, and is refused.
func TestTemplatesReachEachOther(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.apply("ping", "", `{"id":"a","tool":"echo"}`, `1`)
	s.apply("pong", "", `{"id":"a","tool":"ping"}`, `1`)
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"ping","plan":{"steps":[{"id":"a","tool":"pong"}]}}`))
	require.Equal(t, fault.RecursivePlan, tool.FlawsOf(err)[0].Code, "%v", err)
	require.Contains(t, tool.FlawsOf(err)[0].Message, "ping → pong → ping")
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"p","tool":"pong"}]}`, "as-before").Status)
}

// TestWhatATemplateTakesAndReturns is held against its schemas, wherever the values lie.
func TestWhatATemplateTakesAndReturns(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.apply("strict", `,"inputSchema":{"type":"object","properties":{"x":{"type":"object","properties":{"text":{"type":"string","maxLength":2000000}}}},"required":["x"]},
		"outputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":600000}}}`,
		`{"id":"a","tool":"echo","arguments":{"n":"$input.x.n"}}`, `{"n":"$ref:a.n","all":"$input.x"}`)
	call := func(id string, bytes int) *outcome.Outcome {
		return s.run(fmt.Sprintf(`{"output_steps":["p"],"steps":[{"id":"big","tool":"big","arguments":{"bytes":%d}},{"id":"p","tool":"strict","arguments":{"x":"$ref:big"}}]}`, bytes), id)
	}
	for _, c := range []struct {
		name  string
		bytes int
		code  fault.Code
		says  string
	}{
		{"fits", 10, "", ""}, {"fits-in-a-blob", 500_000, "", ""},
		{"returns-too-much", 700_000, fault.ToolTerminal, "output schema does not allow: /n"},
		{"takes-too-much", 2_100_000, fault.InvalidArguments, "don't fit the input schema of strict"},
	} {
		o := call(c.name, c.bytes)
		if c.code == "" {
			require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
			continue
		}
		require.Equal(t, outcome.Failed, o.Status, c.name)
		require.Equal(t, c.code, o.Errors[0].Code, "%s", o.JSON())
		require.Contains(t, o.Errors[0].Message, c.says)
	}
	require.Equal(t, 4+3, s.tools.total(), "nothing in it begins with an input that it does not take: %v", s.tools.calls)
	small := s.run(`{"steps":[{"id":"e","tool":"echo","arguments":{"x":5}},{"id":"p","tool":"strict","arguments":{"x":"$ref:e.x"}}]}`, "small")
	require.Equal(t, fault.InvalidArguments, small.Errors[0].Code)
	require.Contains(t, small.Errors[0].Message, "$ref:e.x")
}

// TestApprovalsReachIntoTemplates: of a tool that is called within, and of the template itself, with an input that its
// schema takes.
func TestApprovalsReachIntoTemplates(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.apply("pay", `,"inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`, `{"id":"a","tool":"echo","arguments":{"to":"$input.to"}}`, `"$ref:a.to"`)
	for _, name := range []string{"pay", "echo"} {
		_, err := s.store.Requests.RequestOverride(ctx(t), name, []byte(`{"x-orchestration":{"approval":"always"}}`))
		require.NoError(t, err)
	}
	r := s.submit(`{"steps":[{"id":"p","tool":"pay","arguments":{"to":"ann"}}]}`, "r")
	q := s.asked("r", "p")
	require.Equal(t, "pay", q.Tool)
	require.JSONEq(t, `{"to":"ann"}`, string(q.Arguments))
	_, err := s.client.Approve(ctx(t), q, client.Answer{Arguments: json.RawMessage(`{"to":5}`)})
	require.Equal(t, fault.InvalidArguments, fault.CodeOf(err))
	_, err = s.client.Approve(ctx(t), q, client.Answer{Arguments: json.RawMessage(`{"to":"bob"}`)})
	require.NoError(t, err)
	within := s.asked("r", "p/a")
	require.JSONEq(t, `{"to":"bob"}`, string(within.Arguments))
	_, err = s.client.Approve(ctx(t), within, client.Answer{})
	require.NoError(t, err)
	require.JSONEq(t, `"bob"`, result(t, s.wait(r), "p"))
	_, err = s.store.Requests.RequestOverride(ctx(t), "pay", []byte(`{"x-orchestration":{"max_concurrency":3}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err), "it takes no leases")
	_, err = s.store.Requests.RequestOverride(ctx(t), "pay", []byte(`{"context":{"filter":"none"}}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
}

// TestTenantsOfTemplates: who may not call a tool may not call it by a template either.
func TestTenantsOfTemplates(t *testing.T) {
	t.Parallel()
	s := start(t)
	_, err := s.store.Requests.RequestOverride(ctx(t), "echo", []byte(`{"tenants":["acme"]}`))
	require.NoError(t, err)
	s.apply("open", "", `{"id":"a","tool":"echo"}`, `1`)
	s.apply("theirs", `,"tenants":["acme"]`, `{"id":"a","tool":"echo"}`, `1`)
	_, err = s.client.ApplyTemplate(ctx(t), []byte(`{"name":"ours","tenants":["default"],"plan":{"steps":[{"id":"a","tool":"echo"}]}}`))
	require.Equal(t, fault.UnknownTool, tool.FlawsOf(err)[0].Code, "%v", err)
	for id, name := range map[string]string{"by-a-template": "open", "theirs": "theirs"} {
		o := s.run(fmt.Sprintf(`{"steps":[{"id":"p","tool":%q}]}`, name), id)
		require.Equal(t, []fault.Code{fault.UnknownTool}, codes(o.Problems), name)
	}
	all, err := s.client.Tools(ctx(t))
	require.NoError(t, err)
	for i := range all {
		require.NotEqual(t, "theirs", all[i].Name)
	}
}

// TestARetryWithinATemplate takes over what was done in it, unless it is another now.
func TestARetryWithinATemplate(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.charging()
	steps := `{"id":"a","tool":"pay","arguments":{"who":"ann"}},{"id":"b","tool":"pay","arguments":{"who":"bob"},"depends_on":["a"]}`
	s.apply("both", "", steps, `1`)
	x.set("", "bob")
	require.Equal(t, outcome.Failed, s.run(`{"steps":[{"id":"p","tool":"both"}]}`, "r").Status)
	require.Equal(t, []string{"ann", "bob"}, x.called())
	x.set("", "bob")
	o, doc := s.retry("r")
	require.Equal(t, outcome.Failed, o.Status)
	require.Equal(t, []string{"bob"}, x.called())
	require.True(t, doc.Steps[0].Steps[0].Reused)
	s.apply("both", "", strings.Replace(steps, `"bob"`, `"cy"`, 1), `1`)
	x.set("")
	o, _ = s.retry(doc.Run)
	require.Equal(t, outcome.Succeeded, o.Status)
	require.Equal(t, []string{"ann", "cy"}, x.called(), "what an id meant is not what it means")
}

// TestOnlyTemplatesAreAppliedAsSuch, and a name is not taken over by the other kind of tool.
func TestOnlyTemplatesAreAppliedAsSuch(t *testing.T) {
	t.Parallel()
	s := start(t)
	plan := `"plan":{"steps":[{"id":"a","tool":"echo"}]}`
	_, err := s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"t",`+plan+`}`))
	require.ErrorContains(t, err, "no worker hosts")
	_, err = s.client.ApplyTemplate(ctx(t), []byte(`{"name":"echo","plan":{"steps":[{"id":"a","tool":"fail"}]}}`))
	require.ErrorContains(t, err, "is a tool that workers host already")
	_, err = s.client.ApplyTemplate(ctx(t), []byte(`{"name":"none"}`))
	require.ErrorContains(t, err, "has neither a plan nor an agent")
	s.apply("t", "", `{"id":"a","tool":"echo"}`, `1`)
	_, err = s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"t"}`))
	require.ErrorContains(t, err, "is a template already")
	again := s.apply("t", "", `{"id":"a","tool":"echo"}`, `1`)
	all, err := s.store.Registry.Tools(ctx(t))
	require.NoError(t, err)
	for i := range all {
		if all[i].Name == "t" {
			require.Equal(t, again.Revision, all[i].Revision, "what is there already writes nothing")
			require.True(t, all[i].Template())
		}
	}
	_, err = s.store.Requests.RequestRemove(ctx(t), "t", false)
	require.NoError(t, err)
	_, err = s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"t"}`))
	require.NoError(t, err)
}

// TestALoopOfATemplate: each iteration is a scope of its own, handed what the one before came to; and a template that is a
// loop is called as any other.
func TestALoopOfATemplate(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.apply("twice", `,"inputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`,
		`{"id":"a","tool":"echo","arguments":{"n":"$input.n"}},{"id":"b","value":{"$calc":"$ref:a.n * 2"}}`, `{"n":"$ref:b"}`)
	s.apply("grow", "", `{"id":"l","tool":"twice","arguments":{"n":"$last.n || 1"},"repeat":{"until":"$last.n >= 8","max":5,"collect":true}}`, `"$ref:l"`)
	o := s.run(`{"output_steps":["l","g"],"steps":[
		{"id":"l","tool":"twice","arguments":{"n":"$last.n || 3"},"repeat":{"until":"$last.n > 20","max":9}},
		{"id":"g","tool":"grow","for_each":{"in":[0,1]}}]}`, "loops")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"n":24}`, result(t, o, "l"))
	const grown = `[{"n":2},{"n":4},{"n":8}]`
	require.JSONEq(t, `{"results":[{"index":0,"status":"ok","data":`+grown+`},{"index":1,"status":"ok","data":`+grown+`}],"summary":{"ok":2,"error":0}}`, result(t, o, "g"))
	require.Equal(t, 3+2*3, s.tools.total())
	doc := s.history("default", "loops")
	require.Equal(t, "l/=2/a", doc.Steps[0].Steps[2].Steps[0].ID)
	require.Equal(t, "g=1/l/=0/b", doc.Steps[1].Items[1].Steps[0].Steps[0].Steps[1].ID)

	o = s.run(`{"steps":[{"id":"l","tool":"twice","arguments":{"n":"$last.n || 3"},"repeat":{"until":"$last.n > 20","max":2}}]}`, "short")
	require.Equal(t, fault.RepeatExhausted, o.Errors[0].Code)
	o = s.run(`{"steps":[{"id":"l","tool":"twice","arguments":{"n":"$last || 3"},"repeat":{"max":2}}]}`, "misfit")
	require.Equal(t, fault.InvalidArguments, o.Errors[0].Code, "%s", o.JSON())
	require.Contains(t, o.Errors[0].Message, "iteration 1: ")
}
