package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// made returns the calls of a run's agent that a worker was handed, but for its planner's.
func (s *system) made(run string) (steps []string) {
	s.tools.mu.Lock()
	defer s.tools.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.tools.calls)) {
		if _, step, of := strings.Cut(key, "/"+run+"/"); of {
			_, step, _ = strings.Cut(step, "/") // behind the generation
			if !strings.HasSuffix(step, "/=plan") {
				steps = append(steps, step)
			}
		}
	}
	return steps
}

// succeeded reports whether a step of a run has, as its document says.
func (s *system) succeeded(run, step string) (is bool) {
	doc, err := s.client.Get(ctx(s.t), run)
	if err != nil {
		return false
	}
	var look func(all []outcome.Step)
	look = func(all []outcome.Step) {
		for i := range all {
			is = is || all[i].ID == step && all[i].Status == outcome.StepSucceeded
			look(all[i].Items)
			look(all[i].Steps)
		}
	}
	look(doc.Steps)
	return is
}

// of is a system whose tools go with a part of a test.
func (s *system) of(t *testing.T) *system {
	own := *s
	own.t = t
	return &own
}

// amended returns how many amendments there are of each scope of a run.
func (s *system) amended(id string) map[string]int {
	run, count := subjects.NewRun("default", id), map[string]int{}
	left, err := s.store.Ledger.Stored(ctx(s.t), 0, subjects.PartitionFilter(run.Partition(), 1))
	require.NoError(s.t, err)
	for subject := range left {
		if rec, ok := subjects.ParseRecord(subject); ok && rec.Run == run && rec.Kind == subjects.AmendKind {
			count[rec.Step]++
		}
	}
	return count
}

// firstAmendment waits for the first record that amends a scope of a run which goes on.
func (s *system) firstAmendment(id, scope string) (rec *kv.Entry) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		doc, err := s.client.Get(ctx(s.t), id)
		if err != nil {
			return false
		}
		rec, err = s.store.Ledger.Read(ctx(s.t), subjects.AmendRecord(subjects.NewRun("default", id), doc.Generation, scope, 1, 1))
		return err == nil
	}, patience, 10*time.Millisecond)
	return rec
}

// TestGatesHoldInPlansOfSteps as they do in the answer itself, on its way in the same order: of a state machine, of what is
// called once, of a facade that hides all others, and of one whose arguments count. Nothing that is locked reaches a worker.
func TestGatesHoldInPlansOfSteps(t *testing.T) {
	t.Parallel()
	s := start(t)
	const (
		states = `"states":{"initial":"new","final":["done"]},"tools":["execute_tool_plan",{"tool":"echo","as":"open","in":["new"],"to":"open"},{"tool":"echo","as":"close","in":["open"],"to":"done"},{"tool":"echo","as":"look","in":["open"]}]`
		once   = `"tools":[{"tool":"echo","as":"load","once":"Go on."},"execute_tool_plan"]`
		facade = `"tools":["echo",{"tool":"echo","as":"pay"},{"unfold":"files","description":"F.","exclusive":true,"tools":["length"]},
			{"unfold":"cart","description":"C.","inputSchema":{"type":"object","properties":{"cart":{"type":"integer"}},"required":["cart"]},"tools":[{"tool":"echo","as":"fill","bind":{"n":"$args.cart"}}]}]`
	)
	step := func(id, tool string) string { return fmt.Sprintf(`{"id":%q,"tool":%q}`, id, tool) }
	cart := func(id string, n int) string {
		return fmt.Sprintf(`{"id":%q,"tool":"cart","arguments":{"cart":%d}}`, id, n)
	}
	steps := func(all ...string) string { return `{"steps":[` + strings.Join(all, ",") + `]}` }
	for name, x := range map[string]struct {
		agent, plan  string
		made, locked []string
	}{
		"states":     {states, steps(step("o", "open"), step("x", "close"), step("y", "close")), []string{"o", "x"}, []string{"y"}},
		"state":      {states, steps(step("o", "open"), step("l", "look"), step("x", "close"), step("m", "look")), []string{"l", "o", "x"}, []string{"m"}},
		"waves":      {states, `{"schedule":"waves",` + steps(step("o", "open"), step("l", "look"), step("x", "close"), step("y", "close"))[1:], []string{"l", "o", "x"}, []string{"y"}},
		"once":       {once, steps(step("x", "load"), step("y", "load")), []string{"x"}, nil},
		"exclusive":  {facade, steps(step("f", "files"), step("e", "echo"), step("p", "pay")), nil, []string{"e", "p"}},
		"arguments":  {facade, steps(cart("c", 1), step("x", "fill"), cart("d", 2), step("y", "fill")), []string{"x", "y"}, nil},
		"two levels": {states, steps(step("o", "open"), `{"id":"q","plan":`+steps(step("x", "close"))+`}`, step("y", "close")), []string{"o", "q/x"}, []string{"y"}},
		"in a loop":  {states, steps(step("o", "open"), `{"id":"q","repeat":{"max":2},"plan":`+steps(step("x", "close"), step("y", "close"))+`}`), []string{"o", "q/=0/x"}, []string{"q/=0/y"}},
	} {
		for _, form := range []string{`{"id":"p","plan":%s}`, `{"id":"p","tool":"execute_tool_plan","arguments":%s}`, ``} {
			if form != "" && !strings.HasPrefix(form, `{"id":"p","plan"`) && x.agent == facade {
				continue
			}
			run, answer, above := strings.ReplaceAll(name, " ", "-"), x.plan, ""
			if form != "" {
				answer, above = steps(fmt.Sprintf(form, x.plan)), "p/"
				run += fmt.Sprint("-", len(form))
			}
			t.Run(run, func(t *testing.T) {
				s := s.of(t)
				s.plays("planner-"+run, answer, `{"output":"over"}`)
				s.agent("of-"+run, "", `{"planner":{"tool":"planner-`+run+`","mode":"plan"},`+x.agent+`}`)
				o := s.run(`{"steps":[{"id":"a","tool":"of-`+run+`"}]}`, run)
				require.Equal(t, `"over"`, result(t, o, "a"), "%s", o.JSON())
				var made []string
				for _, id := range x.made {
					made = append(made, "a/=0/"+above+id)
				}
				require.Equal(t, made, s.made(run), "%s", o.JSON())
				var locked []string
				for _, e := range o.Errors {
					if e.Code == fault.Locked {
						locked = append(locked, strings.TrimPrefix(e.Step, "a/=0/"+above))
						require.Equal(t, "a", e.HandledBy, "an agent deals with what fails in its rounds, at any depth")
					}
				}
				require.Equal(t, x.locked, locked, "%s", o.JSON())
			})
		}
	}
}

// TestAListMovesNothing: its items are side by side, so that a call which may lock those of another is a problem of the answer;
// one that leads where all of them may be called is none. What a loop calls comes one after the other.
func TestAListMovesNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	each := func(does string) string { return `{"steps":[{"id":"l","for_each":{"in":[1,2,3]},` + does + `}]}` }
	good := each(`"plan":{"steps":[{"id":"x","tool":"fill"},{"id":"y","tool":"echo"}]}`)
	x := s.plays("planner", good,
		each(`"tool":"close"`), each(`"plan":{"steps":[{"id":"x","tool":"fill"},{"id":"y","tool":"close"}]}`), good,
		each(`"tool":"cart","arguments":{"cart":1}`), each(`"plan":{"steps":[{"id":"p","repeat":{"max":1},"plan":{"steps":[{"id":"f","tool":"files"}]}}]}`),
		`{"steps":[{"id":"l","repeat":{"max":3},"tool":"close"}]}`, `{"output":"over"}`)
	s.agent("lists", "", `{"planner":{"tool":"planner","mode":"plan"},"states":{"initial":"open","final":["done"]},
		"tools":["echo",{"tool":"echo","as":"fill","in":["open"],"to":"open"},{"tool":"echo","as":"close","in":["open"],"to":"done"},
			{"unfold":"files","description":"F.","exclusive":true,"tools":["length"]},
			{"unfold":"cart","description":"C.","inputSchema":{"type":"object","properties":{"cart":{"type":"integer"}},"required":["cart"]},"tools":["fail"]}]}`)
	o := s.run(`{"steps":[{"id":"a","tool":"lists"}]}`, "lists")
	require.Equal(t, `"over"`, result(t, o, "a"), "%s", o.JSON())
	for round, why := range map[int]string{1: `\"close\" leads to the state \"done\"`, 2: `\"close\" leads to the state`, 4: `\"cart\" is a facade`, 5: `\"files\" is a facade`} {
		var rounds []struct{ Problems json.RawMessage }
		require.NoError(t, json.Unmarshal(x.asked[round+1]["rounds"], &rounds))
		require.Contains(t, string(rounds[round].Problems), why)
	}
	count := map[string]int{}
	for _, step := range s.made("lists") {
		count[strings.Split(step, "/")[1]]++
	}
	require.Equal(t, map[string]int{"=0": 6, "=3": 6, "=6": 1}, count, "%v", s.made("lists"))
}

// TestAnOpenPlanOfAnAnswerIsClosed by its owner when nobody has amended it for as long as it waits, as a plan of a step, as one
// that a call hands in, and as that of a template: by one record, and not again.
func TestAnOpenPlanOfAnAnswerIsClosed(t *testing.T) {
	t.Parallel()
	s := start(t)
	const open = `{"open":true,"open_for":"100ms","steps":[{"id":"e","tool":"echo","arguments":{"n":1}}]}`
	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"opened","plan":`+open+`}`))
	require.NoError(t, err)
	s.plays("planner", `{"steps":[{"id":"p","plan":`+open+`},{"id":"h","tool":"execute_tool_plan","arguments":`+open+`},{"id":"t","tool":"opened"}],
		"output":["$ref:p.e.n","$ref:h.e.n","$ref:t.e.n"]}`)
	s.agent("opener", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["echo","opened","execute_tool_plan"]}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"opener"},{"id":"t","tool":"opened"}]}`, "opens")
	closed := s.firstAmendment("opens", "a/=0/p")
	require.True(t, wire.ParseAmend(closed.Data).ByOwner, "a plan that nobody may amend is closed by its owner's word alone: %s", closed.Data)
	require.Contains(t, wire.RecordNeeds(closed.Header, closed.Data), wire.OwnClose)
	o := s.wait(r)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `[1,1,1]`, result(t, o, "a"))
	require.Equal(t, map[string]int{"a/=0/p": 1, "a/=0/h": 1, "a/=0/t": 1, "t": 1}, s.amended("opens"))
}

// TestADirectCallOfAListEndsTheLoop with the list of what its items came to, as references see it: of tools, templates and
// agents, of none and of a reference's items, also where that lies in blobs.
func TestADirectCallOfAListEndsTheLoop(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.apply("twice", "", `{"id":"x","tool":"echo","arguments":{"n":"$input.n"}}`, `"$ref:x.n"`)
	for name, x := range map[string]struct{ answer, comes string }{
		"items":     {`{"id":"d","tool":"echo","for_each":{"in":[1,2],"as":"i"},"arguments":{"n":"$ref:i"}}`, `[{"index":0,"status":"ok","data":{"n":1}},{"index":1,"status":"ok","data":{"n":2}}]`},
		"none":      {`{"id":"d","tool":"echo","for_each":{"in":[]}}`, `[]`},
		"referred":  {`{"id":"v","value":[5]},{"id":"d","tool":"echo","for_each":{"in":"$ref:v"},"arguments":{"n":"$ref:item"}}`, `[{"index":0,"status":"ok","data":{"n":5}}]`},
		"templates": {`{"id":"d","tool":"twice","for_each":{"in":[3,4]},"arguments":{"n":"$ref:item"}}`, `[{"index":0,"status":"ok","data":3},{"index":1,"status":"ok","data":4}]`},
		"loop":      {`{"id":"d","tool":"echo","repeat":{"max":2},"arguments":{"n":"$index"}}`, `{"n":1}`},
		"large":     {`{"id":"d","tool":"big","for_each":{"in":[400000,3]},"arguments":{"Bytes":"$ref:item"}}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.of(t)
			s.plays("planner-"+name, `{"steps":[`+x.answer+`],"output":"not this"}`)
			s.agent("of-"+name, "", `{"planner":{"tool":"planner-`+name+`","mode":"plan"},"tools":[{"tool":"echo","direct":true},{"tool":"twice","direct":true},{"tool":"big","direct":true}]}`)
			s.plays("above-"+name, `{"steps":[{"id":"below","tool":"of-`+name+`"}]}`)
			s.agent("over-"+name, "", `{"planner":{"tool":"above-`+name+`","mode":"plan"},"tools":[{"tool":"of-`+name+`","direct":true}]}`)
			o := s.run(`{"steps":[{"id":"a","tool":"of-`+name+`"},{"id":"b","tool":"over-`+name+`"},{"id":"c","value":"$ref:a"}]}`, name)
			require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
			for _, step := range []string{"a", "b", "c"} {
				if x.comes != "" {
					require.JSONEq(t, x.comes, result(t, o, step))
					continue
				}
				require.Len(t, result(t, o, step), len(result(t, o, "a")))
				require.Contains(t, result(t, o, step), `"n":400000}},{"index":1,"status":"ok","data":{"text":"abc","n":3}}]`)
			}
		})
	}
}

// TestADirectCallInAPlanOfAStepEndsNothing: it is one of that plan's.
func TestADirectCallInAPlanOfAStepEndsNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"steps":[{"id":"p","plan":{"steps":[{"id":"d","tool":"echo"}]}}]}`, `{"output":"over"}`)
	s.agent("within", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":[{"tool":"echo","direct":true}]}`)
	require.Equal(t, `"over"`, result(t, s.run(`{"steps":[{"id":"a","tool":"within"}]}`, "within"), "a"))
}

// TestAddedOrderHandlesNoFailure: a call that merely stands behind one that failed, since a gate orders the two, leaves the
// failure unhandled; the output that rests on it is dropped.
func TestAddedOrderHandlesNoFailure(t *testing.T) {
	t.Parallel()
	s := start(t)
	for name, x := range map[string]struct{ tools, answer string }{
		"states": {`"states":{"initial":"new","final":["open"]},"tools":[{"tool":"fail","in":["new"]},{"tool":"echo","in":["new"],"to":"open"}]`,
			`{"id":"f","tool":"fail"},{"id":"e","tool":"echo"}`},
		"once": {`"tools":[{"tool":"fail","once":"Go on."}]`, `{"id":"f","tool":"fail"},{"id":"e","tool":"fail"}`},
		"locked": {`"states":{"initial":"new","final":["open"]},"tools":[{"tool":"length","in":["open"]},{"tool":"echo","in":["new"],"to":"open"}]`,
			`{"id":"f","tool":"length","arguments":{"text":"x"}},{"id":"e","tool":"echo"}`},
		"within": {`"states":{"initial":"new","final":["open"]},"tools":[{"tool":"fail","in":["new"]},{"tool":"echo","in":["new"],"to":"open"}]`,
			`{"id":"p","plan":{"steps":[{"id":"f","tool":"fail"},{"id":"e","tool":"echo"}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.of(t)
			p := s.plays("planner-"+name, `{"steps":[`+x.answer+`],"output":"all is well"}`, `{"output":"it is not"}`)
			s.agent("of-"+name, "", `{"planner":{"tool":"planner-`+name+`","mode":"plan"},`+x.tools+`}`)
			o := s.run(`{"steps":[{"id":"a","tool":"of-`+name+`"}]}`, name)
			require.Equal(t, `"it is not"`, result(t, o, "a"), "%s", o.JSON())
			require.JSONEq(t, `"all is well"`, string(p.asked[1]["dropped_output"]))
			require.NotEmpty(t, o.Errors)
			for _, e := range o.Errors {
				require.Equal(t, "a", e.HandledBy)
			}
		})
	}
}

// TestARunOfBeforeGoesOnInItsOrder: in a run whose start does not need agent-order what stands behind a failure has handled it,
// and calls of a plan within a step pass a gate together; else two owners would come to two ends.
func TestARunOfBeforeGoesOnInItsOrder(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"steps":[{"id":"f","tool":"fail"},{"id":"o","tool":"open"},{"id":"p","plan":{"steps":[{"id":"x","tool":"close"},{"id":"y","tool":"close"}]}},
		{"id":"l","tool":"look","for_each":{"in":[1,2]}}],"output":"all is well"}`, `{"output":"it is not"}`)
	s.agent("shop", "", `{"planner":{"tool":"planner","mode":"plan"},"states":{"initial":"new","final":["done"]},"tools":[{"tool":"fail","in":["new"]},
		{"tool":"echo","as":"open","in":["new"],"to":"open"},{"tool":"echo","as":"close","in":["open"],"to":"done"},{"tool":"echo","as":"look","in":["done"]}]}`)
	const plan = `{"steps":[{"id":"a","tool":"shop"}]}`
	require.Equal(t, `"it is not"`, result(t, s.run(plan, "now"), "a"))
	require.Equal(t, []string{"a/=0/f", "a/=0/l=0", "a/=0/l=1", "a/=0/o", "a/=0/p/x"}, s.made("now"))
	was := s.frozen("now")
	require.Contains(t, was.Needs, wire.AgentOrder)
	was.Needs = slices.DeleteFunc(was.Needs, func(need string) bool { return need == wire.AgentOrder })
	h, body, err := was.Message()
	require.NoError(t, err)
	o := s.before(plan, &kv.Entry{Header: h, Data: body})
	require.Equal(t, `"all is well"`, result(t, o, "a"), "%s", o.JSON())
	require.Equal(t, "a/=0/o", o.Errors[0].HandledBy)
	require.Equal(t, []string{"a/=0/f", "a/=0/l=0", "a/=0/l=1", "a/=0/o", "a/=0/p/x", "a/=0/p/y"}, s.made("before"))
}

// TestLockedWithinOfARunOfBefore: a call within the items of a list that was locked when the answer came stays so, though another
// call opens it before it is ready; it is called once, and would be made by both items. A run whose start does not need
// locked-within goes on as it began, and makes it.
func TestLockedWithinOfARunOfBefore(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"steps":[{"id":"f","tool":"length","arguments":{"text":"t"}},{"id":"l","for_each":{"in":[1,2]},"plan":{"steps":[{"id":"w","tool":"gate"},{"id":"x","tool":"load","depends_on":["w"]}]}}]}`,
		`{"output":"done"}`)
	s.agent("loads", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["length","gate",{"tool":"echo","as":"load","once":"It is there.","needs":{"any":["length"]}}]}`)
	const plan = `{"steps":[{"id":"a","tool":"loads"}]}`
	go func() { // both items are at their gates, so what opens the calls behind them is over
		for _, run := range []string{"now", "before"} {
			<-s.tools.begun
			<-s.tools.begun
			assert.Eventually(t, func() bool { return s.succeeded(run, "a/=0/f") }, patience, time.Millisecond)
			s.tools.gate <- struct{}{}
			s.tools.gate <- struct{}{}
		}
	}()
	require.Equal(t, `"done"`, result(t, s.run(plan, "now"), "a"))
	require.Equal(t, []string{"a/=0/f", "a/=0/l=0/w", "a/=0/l=1/w"}, s.made("now"))
	was := s.frozen("now")
	require.Contains(t, was.Needs, wire.LockedWithin)
	was.Needs = slices.DeleteFunc(was.Needs, func(need string) bool { return need == wire.LockedWithin })
	h, body, err := was.Message()
	require.NoError(t, err)
	require.Equal(t, `"done"`, result(t, s.before(plan, &kv.Entry{Header: h, Data: body}), "a"))
	require.Contains(t, strings.Join(s.made("before"), " "), "/x")
}
