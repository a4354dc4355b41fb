package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// TestGuardsOfAnAgent hold for calls by themselves, in lists, in plans within the answer and of templates, for what they
// return, and for its output; the planner is told. Who takes the run over comes to the same.
func TestGuardsOfAnAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	calls := make(chan string, 32)
	s.host("pay", nil, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		calls <- string(args)
		return worker.Output{Body: args}, nil
	})
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"twice","inputSchema":{"type":"object"},"plan":{"steps":[{"id":"p","tool":"pay","arguments":{"amount":900}},{"id":"e","tool":"echo","arguments":{"secret":"y"}}],"output":{"twice":"$ref:p.amount"}}}`))
	require.NoError(t, err)
	x := s.plays("planner",
		`{"steps":[{"id":"much","tool":"pay","arguments":{"amount":"$ref:little.amount * 100"},"if":"false"},{"id":"little","tool":"pay","arguments":{"amount":1}},
			{"id":"each","tool":"pay","for_each":{"in":[2,300]},"arguments":{"amount":"$ref:item"},"optional":true},
			{"id":"sub","tool":"execute_tool_plan","arguments":{"steps":[{"id":"in","tool":"pay","arguments":{"amount":400}}]},"optional":true},
			{"id":"t","tool":"twice","arguments":{"amount":500},"optional":true},{"id":"u","tool":"twice","arguments":{"amount":5}},
			{"id":"never","tool":"fail","arguments":{"amount":999},"optional":true},
			{"id":"back","tool":"look","arguments":{"secret":"x"}},{"id":"after","tool":"look","arguments":{"of":"$ref:back.secret"}}]}`,
		`{"output":{"n":7}}`,
		`{"steps":[{"id":"gate","tool":"gate"},{"id":"p","tool":"pay","depends_on":["gate"],"arguments":{"amount":600}},{"id":"v","value":{"n":7}}],"output":"$ref:v"}`,
		`{"output":{"n":8}}`)
	s.agent("payer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["pay","twice","gate","fail",{"tool":"echo","as":"look"},"execute_tool_plan"],"guards":[
		{"on":"call","when":"($args.amount ?? 0) <= 100"},{"on":"result","when":"$tool != 'echo' or $result.secret == null"},{"on":"output","when":"$output.n > 7"}]}`)
	put, err := s.store.Registry.Tool(ctx(t), "payer")
	require.NoError(t, err)
	require.Contains(t, put.Needs, wire.Guards)
	r := s.submit(`{"steps":[{"id":"a","tool":"payer"}]}`, "pays")
	<-s.tools.begun
	s.orchestrator()
	s.leave()
	close(s.tools.gate)
	o := s.wait(r)
	require.JSONEq(t, `{"n":8}`, result(t, o, "a"), "%s", o.JSON())
	codes := map[string]fault.Code{}
	for _, e := range o.Errors {
		if e.Code == fault.Rejected {
			codes[e.Step] = e.Code
		}
	}
	require.Equal(t, map[string]fault.Code{
		"a/=0/never": fault.Rejected, "a/=0/each": fault.Rejected, "a/=0/sub/in": fault.Rejected, "a/=0/t": fault.Rejected, "a/=0/back": fault.Rejected, "a/=2/p": fault.Rejected,
	}, codes, "%s", o.JSON())
	close(calls)
	var made []string
	for c := range calls {
		made = append(made, c)
	}
	require.Subset(t, made, []string{`{"amount":1}`, `{"amount":900}`}, "what a template calls is its author's")
	require.Subset(t, []string{`{"amount":1}`, `{"amount":2}`, `{"amount":900}`}, made)
	require.Contains(t, string(x.asked[1]["rounds"]), `this result of 'echo' pass, which asks for: $tool != 'echo' or $result.secret == null`)
	require.NotContains(t, string(x.asked[1]["rounds"]), `"secret":"x"},"ms"`)
	require.Contains(t, string(x.asked[2]["rounds"]), `"problems":[{"code":"rejected","at":"/output","message":"a guard of the agent does not let the output pass, which asks for: $output.n > 7"`)
	require.JSONEq(t, `{"n":7}`, string(x.asked[2]["dropped_output"]))
	require.JSONEq(t, `"$ref:v"`, string(x.asked[3]["dropped_output"]))
	require.Contains(t, string(x.asked[3]["facts"]), `"called":["echo","gate","pay","twice"]`)
}

// TestAGuardEndsAnAgent: its input, a call or a result is the end of it, with the guard's error.
func TestAGuardEndsAnAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.plays("planner", `{"steps":[{"id":"e","tool":"echo","arguments":{"n":1}},{"id":"f","tool":"echo","depends_on":["e"],"arguments":{"n":2}}]}`)
	s.agent("calls", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"],"guards":[{"on":"call","when":"$args.n != 1","else":"fail"}]}`)
	s.agent("results", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"],"guards":[{"on":"result","when":"$result.n != 1","else":"fail"}]}`)
	s.agent("inputs", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo"],"guards":[{"on":"input","when":"$input.n == 1"}]}`)
	for _, name := range []string{"calls", "results", "inputs"} {
		o := s.run(`{"steps":[{"id":"a","tool":"`+name+`","arguments":{"n":2}}]}`, "ends-"+name)
		require.Equal(t, outcome.Failed, o.Status)
		require.Equal(t, fault.Rejected, o.Errors[0].Code, "%s", o.JSON())
		require.Contains(t, o.Errors[0].Message, "a guard of the agent does not let")
	}
	require.Len(t, x.asked, 2, "who is refused asks no planner")
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"later","agent":{"planner":{"tool":"planner"},"guards":[{"on":"call","tool":"calls"},{"on":"call","tool":"gone","else":"ask"}]}}`))
	var places []string
	for _, f := range tool.FlawsOf(err) {
		places = append(places, f.Path)
		require.NotEmpty(t, f.Hint)
	}
	require.Equal(t, []string{"/agent/guards/1/tool"}, places)
	_, err = s.client.ApplyTemplate(ctx(t), []byte(`{"name":"later","agent":{"planner":{"tool":"planner"},"guards":[{"on":"call","tool":"calls"}]}}`))
	require.Len(t, tool.FlawsOf(err), 1)
	require.Equal(t, "/agent/guards/0/tool", tool.FlawsOf(err)[0].Path, "a guard is one that workers host")
}

// TestGuardsThatAreTools are steps of the round: they are asked about what goes in, calls with all of their arguments, what
// these return, and the output. Where they say so, or a condition does, a person is asked. Who takes the run over asks nobody
// again.
func TestGuardsThatAreTools(t *testing.T) {
	t.Parallel()
	s := start(t)
	asked := make(chan string, 64)
	s.host("judge", nil, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		asked <- string(args)
		var g struct {
			On     string
			Args   struct{ Amount int }
			Result struct{ Amount int }
		}
		_ = json.Unmarshal(args, &g)
		if g.Args.Amount > 100 || g.Result.Amount == 7 {
			return worker.Output{Body: []byte(`{"pass":false,"reason":"too odd"}`)}, nil
		}
		return worker.Output{Body: []byte(`{"pass":true}`)}, nil
	})
	x := s.plays("planner",
		`{"steps":[{"id":"gate","tool":"gate"},{"id":"much","tool":"echo","depends_on":["gate"],"arguments":{"amount":900},"optional":true},
			{"id":"odd","tool":"echo","depends_on":["gate"],"arguments":{"amount":7}},{"id":"more","tool":"echo","arguments":{"of":"$ref:odd.amount"}},
			{"id":"each","tool":"echo","depends_on":["gate"],"for_each":{"in":[200]},"arguments":{"amount":"$ref:item"},"optional":true}]}`,
		`{"steps":[{"id":"secret","tool":"echo","arguments":{"amount":1,"secret":true}}]}`,
		`{"output":{"n":7}}`, `{"output":{"n":8}}`)
	s.agent("payer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate",{"tool":"echo","bind":{"who":"$input.who"}}],"guards":[
		{"on":"input","tool":"judge"},{"on":"call","tool":"judge"},{"on":"result","tool":"judge","else":"ask"},{"on":"output","tool":"judge"},
		{"on":"call","when":"$args.secret == null","else":"ask"},{"on":"output","when":"$output.n > 7","else":"ask"}]}`)
	put, err := s.store.Registry.Tool(ctx(t), "payer")
	require.NoError(t, err)
	require.Contains(t, put.Needs, wire.AskingGuards)
	r := s.submit(`{"steps":[{"id":"a","tool":"payer","arguments":{"who":"ann"}}]}`, "judged")
	<-s.tools.begun
	s.orchestrator()
	s.leave()
	close(s.tools.gate)
	q := s.asked("judged", "a/=0/odd")
	require.Equal(t, "result", q.Guard)
	require.Equal(t, "the guard 'judge' of the agent does not let this result of 'echo' pass: too odd", q.Text)
	require.JSONEq(t, `{"amount":7,"who":"ann"}`, string(q.Arguments))
	_, err = s.client.Approve(ctx(t), q, client.Answer{Arguments: json.RawMessage(`{"amount":8}`)})
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	_, err = s.client.Approve(ctx(t), q, client.Answer{By: "ben"})
	require.NoError(t, err)
	q = s.asked("judged", "a/=1/secret")
	require.Equal(t, "call", q.Guard)
	require.JSONEq(t, `{"amount":1,"secret":true,"who":"ann"}`, string(q.Arguments), "bound arguments are shown, too")
	_, err = s.client.Reject(ctx(t), q, client.Answer{By: "ben", Reason: "a secret"})
	require.NoError(t, err)
	q = s.asked("judged", "a")
	require.Equal(t, "output", q.Guard)
	require.JSONEq(t, `{"n":7}`, string(q.Arguments))
	_, err = s.client.Reject(ctx(t), q, client.Answer{By: "ben", Reason: "not seven"})
	require.NoError(t, err)
	o := s.wait(r)
	require.JSONEq(t, `{"n":8}`, result(t, o, "a"), "%s", o.JSON())
	s.noQuestions()
	codes := map[string]string{}
	for _, e := range o.Errors {
		codes[e.Step] = string(e.Code) + ": " + e.Message
	}
	require.Equal(t, map[string]string{
		"a/=0/much":   "rejected: the guard 'judge' of the agent does not let this call of 'echo' pass: too odd",
		"a/=0/each":   "rejected: item 0: the guard 'judge' of the agent does not let this call of 'echo' pass: too odd",
		"a/=1/secret": "rejected: Rejected by ben (unverified): a secret",
	}, codes)
	require.Contains(t, string(x.asked[1]["facts"]), `"called":["echo","gate"]`)
	require.Contains(t, string(x.asked[3]["rounds"]), `"problems":[{"code":"rejected","at":"/output","message":"Rejected by ben (unverified): not seven"`)
	close(asked)
	var about []string
	for a := range asked {
		about = append(about, a)
	}
	require.ElementsMatch(t, []string{
		`{"on":"input","agent":"payer","round":0,"input":{"who":"ann"}}`,
		`{"on":"call","agent":"payer","step":"a/=0/gate","tool":"gate","round":0,"input":{"who":"ann"},"args":{}}`,
		`{"on":"result","agent":"payer","step":"a/=0/gate","tool":"gate","round":0,"input":{"who":"ann"},"result":{}}`,
		`{"on":"call","agent":"payer","step":"a/=0/much","tool":"echo","round":0,"input":{"who":"ann"},"args":{"amount":900,"who":"ann"}}`,
		`{"on":"call","agent":"payer","step":"a/=0/odd","tool":"echo","round":0,"input":{"who":"ann"},"args":{"amount":7,"who":"ann"}}`,
		`{"on":"result","agent":"payer","step":"a/=0/odd","tool":"echo","round":0,"input":{"who":"ann"},"result":{"amount":7,"who":"ann"}}`,
		`{"on":"call","agent":"payer","step":"a/=0/more","tool":"echo","round":0,"input":{"who":"ann"},"args":{"of":7,"who":"ann"}}`,
		`{"on":"result","agent":"payer","step":"a/=0/more","tool":"echo","round":0,"input":{"who":"ann"},"result":{"of":7,"who":"ann"}}`,
		`{"on":"call","agent":"payer","step":"a/=0/each=0","tool":"echo","round":0,"input":{"who":"ann"},"args":{"amount":200,"who":"ann"}}`,
		`{"on":"output","agent":"payer","round":3,"input":{"who":"ann"},"output":{"n":8}}`,
	}, about)
}

// TestEachGuardAsks: of several conditions that ask a person about a call each does, one after the other, about what the
// answers before have made of it; whoever changes it has it looked at anew. What a planner writes answers to none.
func TestEachGuardAsks(t *testing.T) {
	t.Parallel()
	s := start(t)
	calls := make(chan string, 32)
	s.host("pay", nil, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		calls <- string(args)
		return worker.Output{Body: args}, nil
	})
	s.plays("planner",
		`{"steps":[{"id":"both","tool":"pay","arguments":{"a":1,"b":1}},{"id":"mended","tool":"pay","arguments":{"a":1,"b":1}},
			{"id":"again","tool":"pay","arguments":{"a":1,"b":1}},{"id":"spoiled","tool":"pay","arguments":{"a":2,"b":1}},{"id":"refused","tool":"pay","arguments":{"a":1,"c":9},"optional":true},
			{"id":"each","tool":"pay","for_each":{"in":[1]},"arguments":{"a":1,"b":"$ref:item"}},
			{"id":"own","tool":"pay","arguments":{"a":1},"approval":{"timeout":"1ms","on_timeout":"approve"},"optional":true}]}`,
		`{"output":1}`)
	put := s.agent("careful", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["pay"],"guards":[
		{"on":"call","when":"$args.a != 1","else":"ask"},{"on":"call","when":"$args.b != 1","else":"ask"},{"on":"call","when":"$args.c != 9"}]}`)
	require.Contains(t, put.Needs, wire.EachGuard)
	r := s.submit(`{"steps":[{"id":"a","tool":"careful"}]}`, "each")
	answer := func(step, text, args, edited string) *outcome.Question {
		var q *outcome.Question
		require.Eventually(t, func() bool {
			var err error
			q, err = s.client.Question(ctx(t), "each", "a/=0/"+step)
			return err == nil && strings.HasSuffix(q.Text, text)
		}, patience, 10*time.Millisecond, "%s is asked about for %s", step, text)
		require.Equal(t, "call", q.Guard)
		require.JSONEq(t, args, string(q.Arguments))
		_, err := s.client.Approve(ctx(t), q, client.Answer{By: "ann", Arguments: json.RawMessage(edited)})
		require.NoError(t, err)
		return q
	}
	first := answer("both", "$args.a != 1", `{"a":1,"b":1}`, "")
	second := answer("both", "$args.b != 1", `{"a":1,"b":1}`, "")
	require.NotEqual(t, first.Digest, second.Digest, "an answer to one guard is none to another")
	require.Greater(t, second.Number, first.Number)
	answer("mended", "$args.a != 1", `{"a":1,"b":1}`, `{"a":1,"b":2}`)
	answer("again", "$args.a != 1", `{"a":1,"b":1}`, "")
	answer("again", "$args.b != 1", `{"a":1,"b":1}`, `{"a":1,"b":3}`)
	answer("again", "$args.a != 1", `{"a":1,"b":3}`, "")
	answer("spoiled", "$args.b != 1", `{"a":2,"b":1}`, `{"a":1,"b":1}`)
	s.orchestrator()
	s.leave()
	answer("spoiled", "$args.a != 1", `{"a":1,"b":1}`, "")
	answer("refused", "$args.a != 1", `{"a":1,"c":9}`, "")
	answer("each=0", "$args.a != 1", `{"a":1,"b":1}`, "")
	answer("each=0", "$args.b != 1", `{"a":1,"b":1}`, "")
	o := s.wait(r)
	require.JSONEq(t, `1`, result(t, o, "a"), "%s", o.JSON())
	s.noQuestions()
	codes := map[string]string{}
	for _, e := range o.Errors {
		codes[e.Step] = string(e.Code) + ": " + e.Message
	}
	require.Equal(t, map[string]string{
		"a/=0/refused": "rejected: a guard of the agent does not let this call of 'pay' pass, which asks for: $args.c != 9",
		"a/=0/own":     "rejected: nobody answered within 1ms",
	}, codes)
	close(calls)
	var made []string
	for c := range calls {
		made = append(made, c)
	}
	require.ElementsMatch(t, []string{`{"a":1,"b":1}`, `{"a":1,"b":2}`, `{"a":1,"b":3}`, `{"a":1,"b":1}`, `{"a":1,"b":1}`}, made)
	doc, err := s.client.Get(ctx(t), "each")
	require.NoError(t, err)
	var both outcome.Step
	for _, st := range doc.Steps[0].Steps {
		if st.ID == "a/=0/both" {
			both = st
		}
	}
	require.Equal(t, second.Digest, both.Answer.Digest)
	require.Len(t, both.Answers, 1)
	require.Equal(t, first.Digest, both.Answers[0].Digest)
}

// TestGuardsOfAnAgentBelow: its tools are frozen with the run, also what makes its summaries, and it fails as a call does.
func TestGuardsOfAnAgentBelow(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.host("judge", nil, func(context.Context, json.RawMessage) (worker.Output, error) {
		return worker.Output{Body: []byte(`false`)}, nil
	})
	x := s.plays("planner", `{"steps":[{"id":"b","tool":"below","arguments":{"n":1}}]}`, `{"output":1}`)
	s.agent("below", "", `{"planner":{"tool":"planner","mode":"plan"},"guards":[{"on":"input","tool":"judge"}],"context":{"summary":"length"}}`)
	s.agent("above", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["below"]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"above"}]}`, "below")
	require.JSONEq(t, `1`, result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, "a/=0/b", o.Errors[0].Step)
	require.Equal(t, "the guard 'judge' of the agent does not let the input pass", o.Errors[0].Message)
	require.Contains(t, string(x.asked[1]["rounds"]), `"status":"failed","error":{"code":"rejected"`)
	require.Len(t, x.asked, 2)
}

// TestWhatGuardsTakeCounts: in the budget of their agent and of those above, as of the records by which they have answered; and
// a planner that nobody asked, since the input did not pass, has taken nothing.
func TestWhatGuardsTakeCounts(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.host("judge", nil, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		var g struct {
			On    string
			Input struct{ N int }
		}
		_ = json.Unmarshal(args, &g)
		took := map[string]string{"input": `1000,"cost_usd":0.5`, "call": `200,"model":"small"`, "result": `30,"model":"small"`, "output": `4`}[g.On]
		return worker.Output{Body: fmt.Appendf(nil, `{"pass":%t,"usage":{"input_tokens":%s}}`, g.Input.N != 7, took)}, nil
	})
	lower := s.plays("lower", `{"usage":{"input_tokens":50},"output":1}`)
	x := s.plays("planner", `{"usage":{"input_tokens":5,"model":"large"},"steps":[{"id":"x","tool":"echo"},{"id":"p","tool":"process"},
			{"id":"b","tool":"below","arguments":{"n":7},"depends_on":["x"],"optional":true},{"id":"c","tool":"below","depends_on":["b"]}]}`,
		`{"usage":{"input_tokens":5,"model":"large"},"steps":[{"id":"m","tool":"process_models"},{"id":"k","tool":"process_cost","depends_on":["m"]}]}`,
		`{"usage":{"input_tokens":5,"model":"large"},"output":"done"}`)
	s.agent("below", "", `{"planner":{"tool":"lower","mode":"plan"},"guards":[{"on":"input","tool":"judge"}]}`)
	s.agent("payer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo","below","process"],"budget":{"tokens":1000000,"cost_usd":9},"guards":[
		{"on":"input","tool":"judge"},{"on":"call","tool":"judge"},{"on":"result","tool":"judge"},{"on":"output","tool":"judge"}]}`)
	put, err := s.store.Registry.Tool(ctx(t), "payer")
	require.NoError(t, err)
	require.Contains(t, put.Needs, wire.GuardUsage)
	o := s.run(`{"steps":[{"id":"a","tool":"payer"}]}`, "usage")
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	left := func(asked map[string]json.RawMessage) (b struct {
		Tokens  int64
		CostUSD float64 `json:"cost_usd"`
	}) {
		require.NoError(t, json.Unmarshal(asked["budget"], &b))
		return b
	}
	first, second, below := left(x.asked[0]), left(x.asked[1]), left(lower.asked[0])
	require.Equal(t, int64(1_000_000-1000), first.Tokens, "what the input's guard took, before the planner is asked")
	require.InDelta(t, 8.5, first.CostUSD, 1e-9)
	// The guards of the calls x, b and c and of the results of x and c, those of two inputs below, and two planners; the facade
	// is opened by the round's record, and no call.
	taken := int64(1000 + 5 + 3*200 + 2*30 + 2*1000 + 50)
	require.Equal(t, 1_000_000-taken, second.Tokens)
	require.InDelta(t, 7.5, second.CostUSD, 1e-9)
	// By the record that made the last of them ready, b's result has no guard yet: 200 each of x and of b, 30 of x, 1000 of b's
	// own input; and its own input's guard has taken 1000 of its share.
	require.Equal(t, int64(1_000_000-1000-5-2*200-30-1000-200-1000), below.Tokens, "in shares at once, the call's own guard too")
	require.Contains(t, string(x.asked[2]["rounds"]),
		`"result":[{"model":"judge","answers":3,"tokens":3000,"cost_usd":1.5},{"model":"large","answers":2,"tokens":10,"cost_usd":0},{"model":"lower","answers":1,"tokens":50,"cost_usd":0},{"model":"small","answers":6,"tokens":860,"cost_usd":0}]`, "with the guard of this very call")
	require.Contains(t, string(x.asked[2]["rounds"]), `"result":{"steps":5,"model_calls":14,"input_tokens":4150,"output_tokens":0,"cost_usd":1.5}`, "all of these, the guard of the result of m, and that of this very call")
}
