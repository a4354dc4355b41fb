package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// pays is a destructive tool that notes what it was sent.
type pays struct {
	mu   sync.Mutex
	sent []string
}

func hostPays(t *testing.T, s *system) *pays {
	t.Helper()
	x, yes := &pays{}, true
	w, err := worker.New(natstest.Connect(t, s.srv), worker.Config{Name: "till", Logger: logger(t)})
	require.NoError(t, err)
	require.NoError(t, w.HandleRaw(&tool.Definition{Name: "pay", Annotations: &tool.Annotations{DestructiveHint: &yes}}, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.sent = append(x.sent, string(args))
		return worker.Output{Body: fmt.Append(nil, len(x.sent))}, nil
	}))
	worker.Handle(w, "get_user", func(_ context.Context, in struct{ ID string }) (worker.Result, error) {
		return worker.Result{Text: in.ID, Artifact: map[string]string{"id": in.ID}, Type: "User"}, nil
	})
	s.background(w.Run, w.Ready())
	return x
}

// takes returns what was sent since it was asked last.
func (x *pays) takes() (sent []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	sent, x.sent = x.sent, nil
	return sent
}

// TestACallWithBoundArgumentsIsMadeOnce: a destructive call that is repeated is compared with those before by all that it was
// sent: by what is bound to it as well, wherever that comes from, and by whatever name the planner calls its tool.
func TestACallWithBoundArgumentsIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := hostPays(t, s)
	const (
		pay   = `{"id":"p","tool":"pay","arguments":{"n":1}}`
		after = `{"id":"p","tool":"pay","arguments":{"n":1},"depends_on":["u"]}`
		cart  = `{"unfold":"cart","description":"C.","inputSchema":{"type":"object","properties":{"id":{"type":"string"}}},"tools":[{"tool":"pay","bind":{"who":"$args.id"}}]}`
		chain = `"get_user",{"chain":"User","tools":["pay"],"bind":{"who":"$artifact.id"}}`
	)
	user := func(id string) string { return fmt.Sprintf(`{"id":"u","tool":"get_user","arguments":{"ID":%q}},`, id) }
	open := func(id string) string { return fmt.Sprintf(`{"id":"u","tool":"cart","arguments":{"id":%q}},`, id) }
	for name, c := range map[string]struct {
		tools  string
		rounds []string // the steps of each
		sent   []string
		first  bool // the last of them returns what the first did, and the planner is told so
	}{
		"a value":         {`{"tool":"pay","bind":{"who":"ann"}}`, []string{pay, pay}, []string{`{"n":1,"who":"ann"}`}, true},
		"of the input":    {`{"tool":"pay","bind":{"who":"$input.who"}}`, []string{pay, pay}, []string{`{"n":1,"who":"eve"}`}, true},
		"another number":  {`{"tool":"pay","bind":{"who":"ann"}}`, []string{pay, `{"id":"p","tool":"pay","arguments":{"n":2}}`}, []string{`{"n":1,"who":"ann"}`, `{"n":2,"who":"ann"}`}, false},
		"of a chain":      {chain, []string{user("bob") + after, pay}, []string{`{"n":1,"who":"bob"}`}, true},
		"another object":  {chain, []string{user("bob") + after, user("eve") + after, user("bob") + after}, []string{`{"n":1,"who":"bob"}`, `{"n":1,"who":"eve"}`}, true},
		"of a facade":     {cart, []string{open("c1") + after, pay}, []string{`{"n":1,"who":"c1"}`}, true},
		"opened anew":     {cart, []string{open("c1") + after, open("c2") + after, open("c1") + after}, []string{`{"n":1,"who":"c1"}`, `{"n":1,"who":"c2"}`}, true},
		"by another name": {`{"tool":"pay","as":"give","bind":{"who":"ann"}},"pay"`, []string{`{"id":"p","tool":"give","arguments":{"n":1}}`, pay, `{"id":"p","tool":"pay","arguments":{"n":1.0,"who":"ann"}}`}, []string{`{"n":1,"who":"ann"}`, `{"n":1}`}, true},
		"an item of each": {chain, []string{user("bob") + `{"id":"p","tool":"pay","depends_on":["u"],"for_each":{"in":[1,2]},"arguments":{"n":"$ref:item"}}`, pay}, []string{`{"n":1,"who":"bob"}`, `{"n":2,"who":"bob"}`}, false},
	} {
		var answers []string
		for _, steps := range c.rounds {
			answers = append(answers, `{"steps":[`+steps+`]}`)
		}
		id := strings.ReplaceAll(name, " ", "-")
		p := s.plays("planner-"+id, append(answers, `{"output":"done"}`)...)
		put := s.agent(id, "", fmt.Sprintf(`{"planner":{"tool":"planner-%s","mode":"plan"},"tools":[%s]}`, id, c.tools))
		require.Contains(t, put.Needs, wire.BoundArguments, name)
		o := s.run(fmt.Sprintf(`{"steps":[{"id":"a","tool":%q,"arguments":{"who":"eve"}}]}`, id), id)
		require.JSONEq(t, `"done"`, result(t, o, "a"), "%s: %s", name, o.JSON())
		sent := x.takes()
		slices.Sort(sent)
		slices.Sort(c.sent)
		require.Equal(t, c.sent, sent, name)
		told := string(p.asked[len(c.rounds)]["rounds"])
		if c.first {
			require.Contains(t, told, `"result":1,"note":"'pay' was called with the same arguments before, and is not called again`, name)
		}
	}
}

// TestContextOfACompositeHoldsBelow: what is given for a step with a plan or an agent, its calls are handed, and nobody else.
func TestContextOfACompositeHoldsBelow(t *testing.T) {
	t.Parallel()
	s := start(t)
	var mu sync.Mutex
	seen := map[string]string{}
	s.host("who", nil, func(c context.Context, _ json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(c)
		mu.Lock()
		defer mu.Unlock()
		seen[info.Step], _ = info.Context.Get("tenant")
		return worker.Output{Body: []byte(`1`)}, nil
	})
	s.plays("planner", `{"steps":[{"id":"x","tool":"who"},{"id":"p","plan":{"steps":[{"id":"y","tool":"who"}]}}],"output":"done"}`)
	s.agent("knows", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["who"]}`)
	all, err := wire.NewContext(map[string]string{"tenant": "all"})
	require.NoError(t, err)
	own, err := wire.NewContext(map[string]string{"tenant": "own"})
	require.NoError(t, err)
	o, err := s.client.Run(ctx(t), []byte(`{"steps":[{"id":"a","tool":"knows"},{"id":"p","plan":{"steps":[{"id":"y","tool":"who"}]}},{"id":"l","tool":"who","for_each":{"in":[1]}},{"id":"b","tool":"who"}]}`),
		client.SubmitOptions{Context: wire.RunContext{All: all, Steps: map[string]wire.Context{"a": own, "p": own}}})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, map[string]string{"a/=0/x": "own", "a/=0/p/y": "own", "p/y": "own", "l=0": "all", "b": "all"}, seen)
}

// TestWhatIsBoundToNothingIsNotCalled: a call fails to which is bound what is not there, before it is made, and its planner is
// told what to do; in a run of before it is called with null, and each time anew.
func TestWhatIsBoundToNothingIsNotCalled(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := hostPays(t, s)
	const steps = `{"steps":[{"id":"p","tool":"pay","arguments":{"n":1},"optional":true}]}`
	p := s.plays("planner", steps, steps, `{"output":"done"}`)
	s.agent("payer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":[{"tool":"pay","bind":{"who":"$input.who"}}]}`)
	const plan = `{"steps":[{"id":"a","tool":"payer"}]}`
	o := s.run(plan, "now")
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	require.Empty(t, x.takes())
	require.Contains(t, string(p.asked[1]["rounds"]), `"code":"invalid_arguments","message":"'pay' was not called: its argument \"who\" is bound to $input.who, and nothing is there","hint":"whoever calls the agent has to say it in the input`)

	was := s.frozen("now")
	require.Contains(t, was.Needs, wire.BoundArguments)
	was.Needs = slices.DeleteFunc(was.Needs, func(need string) bool { return need == wire.BoundArguments })
	h, body, err := was.Message()
	require.NoError(t, err)
	o = s.before(plan, &kv.Entry{Header: h, Data: body})
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, []string{`{"n":1,"who":null}`, `{"n":1,"who":null}`}, x.takes())
}
