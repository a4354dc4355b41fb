package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// This file is a second reading of what docs/agents.md says of guards. It knows nothing of how they are asked: it goes through
// what an agent does, one thing after the other, and says of each who is asked and what comes of it. Random guards are written
// for both, and real runs are held against it.

// naiveGuard does not let pass what has a number n that is its own.
type naiveGuard struct {
	on   string
	n    int
	tool bool
	no   string // else
}

func (g naiveGuard) says() string {
	if g.tool {
		return fmt.Sprintf("judge%d", g.n)
	}
	return fmt.Sprintf("$%s.n != %d", map[string]string{"call": "args"}[g.on]+map[string]string{"input": "input", "result": "result", "output": "output"}[g.on], g.n)
}

// naiveWatch is an agent with guards, and all who were asked.
type naiveWatch struct {
	guards []naiveGuard
	asked  []string // "tool on step", and "person on step"
}

// naivePass is what comes of what is to pass: nothing that is said against it, or by whom, and whether the agent fails.
type naivePass struct {
	against string
	fails   bool
}

// agrees is what a person says: the same to the same.
func agrees(step string, n int) bool { return (len(step)+n)%2 == 0 }

// person asks one, for a guard.
func (w *naiveWatch) person(on, step string, n int) (p naivePass) {
	if on == "input" || on == "output" {
		step = "a"
	}
	w.asked = append(w.asked, "person "+on+" "+step)
	if !agrees(step, n) {
		p.against = "Rejected by ann"
	}
	return p
}

func (w *naiveWatch) conditions(on string, such func(naiveGuard) bool) (all []naiveGuard) {
	for _, g := range w.guards {
		if g.on == on && !g.tool && such(g) {
			all = append(all, g)
		}
	}
	return all
}

// let goes through the guards on something: conditions first, then tools, each in their order.
func (w *naiveWatch) let(on, step string, n int) naivePass {
	no := func(g naiveGuard) (naivePass, bool) {
		if g.no == "ask" {
			p := w.person(on, step, n)
			return p, p.against != ""
		}
		return naivePass{g.says(), g.no == "fail"}, true
	}
	conditions := w.conditions(on, func(naiveGuard) bool { return true })
	if on == "call" { // of calls, one approval is for all that ask, before anything else is found out about it
		if k := slices.IndexFunc(conditions, func(g naiveGuard) bool { return g.n == n }); k >= 0 && conditions[k].no == "ask" {
			if p := w.person(on, step, n); p.against != "" {
				return p
			}
		}
		conditions = w.conditions(on, func(g naiveGuard) bool { return g.no != "ask" })
	}
	for _, g := range conditions {
		if g.n != n {
			continue
		}
		if p, ends := no(g); ends {
			return p
		}
	}
	for _, g := range w.guards {
		if g.on != on || !g.tool {
			continue
		}
		w.asked = append(w.asked, g.says()+" "+on+" "+step)
		if g.n != n {
			continue
		}
		if p, ends := no(g); ends {
			return p
		}
	}
	return naivePass{}
}

// call makes a call that returns what it was called with; it says what comes of it, and whether the agent fails with that.
func (w *naiveWatch) call(step string, n int) naivePass {
	if p := w.let("call", step, n); p.against != "" {
		return p
	}
	return w.let("result", step, n)
}

// run is the whole agent: its input, two calls one after the other, and what it puts forward.
func (w *naiveWatch) run(input int, calls [2]int, outputs []int) (came map[string]string, end string) {
	came = map[string]string{}
	if p := w.let("input", "", input); p.against != "" {
		return came, p.against
	}
	for k, n := range calls {
		step := "a/=0/" + string(rune('x'+k))
		p := w.call(step, n)
		if came[step] = "succeeded"; p.against != "" {
			came[step] = p.against
		}
		if p.fails {
			return came, p.against
		}
	}
	for _, n := range outputs {
		switch p := w.let("output", "", n); {
		case p.against == "":
			return came, fmt.Sprintf(`{"n":%d}`, n)
		case p.fails:
			return came, p.against
		}
	}
	return came, "no end"
}

// TestGuardsAndTheirTwin: of random guards, tools, people and agents, real runs ask whom the second reading asks, no more often,
// and come to the same.
func TestGuardsAndTheirTwin(t *testing.T) {
	t.Parallel()
	s := start(t)
	var mu sync.Mutex
	asked := map[string][]string{}
	note := func(run, who string) {
		mu.Lock()
		defer mu.Unlock()
		asked[run] = append(asked[run], who)
	}
	s.host("deviser", &tool.Orchestration{TimeoutMS: patient.TimeoutMS, Request: tool.WholeRequest}, devises)
	for k := range 3 {
		s.host(fmt.Sprintf("judge%d", k), patient, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			var g struct {
				On, Step                    string
				Input, Args, Result, Output struct{ N int }
			}
			if err := json.Unmarshal(args, &g); err != nil {
				return worker.Output{}, err
			}
			info, _ := worker.InfoFrom(ctx)
			note(info.Run, fmt.Sprintf("judge%d %s %s", k, g.On, g.Step))
			n := map[string]int{"input": g.Input.N, "call": g.Args.N, "result": g.Result.N, "output": g.Output.N}[g.On]
			if n != k {
				return worker.Output{Body: []byte(`{"pass":true}`)}, nil
			}
			if k == 2 {
				return worker.Output{}, worker.Terminal(fmt.Errorf("no judge here"))
			}
			return worker.Output{Body: []byte([]string{`false`, `{"pass":false,"reason":"of one"}`}[k])}, nil
		})
	}
	people, stop := context.WithCancel(ctx(t))
	defer stop()
	go answersAll(people, s, note)

	r := rand.New(rand.NewPCG(5, 7))
	kinds, ends := map[string]int{}, map[string]int{}
	var all sync.WaitGroup
	room := make(chan struct{}, 8)
	for n := range 240 {
		w := naiveWatch{}
		for range 1 + r.IntN(6) {
			w.guards = append(w.guards, naiveGuard{[]string{"input", "call", "call", "result", "output"}[r.IntN(5)], r.IntN(3), r.IntN(2) == 0, []string{"reject", "ask", "fail", "reject"}[r.IntN(4)]})
		}
		input, calls, outputs := r.IntN(5), [2]int{r.IntN(4), r.IntN(4)}, []int{r.IntN(4), r.IntN(4), 9}
		came, end := w.run(input, calls, outputs)
		for _, who := range w.asked {
			kinds[strings.Join(strings.Fields(who)[:2], " ")]++
		}
		ends[end]++
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			id := fmt.Sprintf("twin-%d", n)
			o, err := s.client.Run(people, watchedPlan(w.guards, input, calls, outputs), client.SubmitOptions{Run: id})
			if !assertNoError(t, err, id) {
				return
			}
			got, gotEnd := cameTo(s.history("default", id), o)
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(w.asked)
			slices.Sort(asked[id])
			if len(came) != len(got) || !slices.Equal(w.asked, asked[id]) || !says(gotEnd, end) {
				t.Errorf("%s: %+v, input %d, calls %v, outputs %v:\n came to %v, %s\n and asked %q\n the twin: %v, %s\n %q", id, w.guards, input, calls, outputs, got, gotEnd, asked[id], came, end, w.asked)
			}
			for step, what := range came {
				if !says(got[step], what) {
					t.Errorf("%s: %+v: %s came to %q, and in the twin to %q", id, w.guards, step, got[step], what)
				}
			}
		})
	}
	all.Wait()
	t.Log(kinds, ends)
	for _, who := range []string{"judge0", "judge1", "judge2", "person"} {
		for _, on := range []string{"input", "call", "result", "output"} {
			require.NotZero(t, kinds[who+" "+on], "%s on %s", who, on)
		}
	}
}

func assertNoError(t *testing.T, err error, id string) bool {
	if err != nil {
		t.Errorf("%s: %v", id, err)
	}
	return err == nil
}

// says reports whether what something came to is what the twin says: an error names who was against it.
func says(came, twin string) bool {
	return came == twin || strings.Contains(came, "'"+twin+"'") || strings.HasSuffix(came, ": "+twin) || twin == "Rejected by ann" && strings.HasPrefix(came, twin)
}

// cameTo reads what the calls and the agent of a run came to.
func cameTo(doc *outcome.Run, o *outcome.Outcome) (came map[string]string, end string) {
	came = map[string]string{}
	for _, st := range doc.Steps[0].Steps {
		switch {
		case st.ID != "a/=0/x" && st.ID != "a/=0/y" || st.Status == outcome.StepCancelled:
		case st.Error != nil:
			came[st.ID] = st.Error.Message
		default:
			came[st.ID] = string(st.Status)
		}
	}
	if got, is := o.Results.Get("a"); is {
		return came, string(got)
	}
	if doc.Steps[0].Error != nil {
		end = doc.Steps[0].Error.Message
	}
	return came, end
}

// watchedPlan is a run of an agent with guards.
func watchedPlan(guards []naiveGuard, input int, calls [2]int, outputs []int) []byte {
	var all []map[string]string
	for _, g := range guards {
		x := map[string]string{"on": g.on, "else": g.no, "when": g.says()}
		if g.tool {
			x["tool"] = g.says()
			delete(x, "when")
		}
		all = append(all, x)
	}
	list, _ := json.Marshal(all)
	told, _ := json.Marshal(map[string]any{"n": input, "calls": calls, "outputs": outputs})
	return fmt.Appendf(nil, `{"steps":[{"id":"a","agent":{"planner":{"tool":"deviser","mode":"plan"},"tools":["echo"],"guards":%s},"arguments":%s}]}`, list, told)
}

// devises plans what the input says: two calls, and then outputs until one passes.
func devises(_ context.Context, sent json.RawMessage) (worker.Output, error) {
	var r struct {
		Round int
		Input struct{ Calls, Outputs []int }
	}
	if err := json.Unmarshal(sent, &r); err != nil {
		return worker.Output{}, err
	}
	if r.Round > 0 {
		return worker.Output{Body: fmt.Appendf(nil, `{"output":{"n":%d}}`, r.Input.Outputs[r.Round-1])}, nil
	}
	const plan = `{"steps":[{"id":"x","tool":"echo","arguments":{"n":%d},"optional":true},{"id":"y","tool":"echo","arguments":{"n":%d},"depends_on":["x"],"optional":true}]}`
	return worker.Output{Body: fmt.Appendf(nil, plan, r.Input.Calls[0], r.Input.Calls[1])}, nil
}

// answersAll answers all questions of all runs, each once.
func answersAll(ctx context.Context, s *system, note func(run, who string)) {
	answered := map[string]bool{}
	for ctx.Err() == nil {
		all, _ := s.client.Questions(ctx, "")
		for _, q := range all {
			if answered[q.Run+q.Digest] {
				continue
			}
			answered[q.Run+q.Digest] = true
			var about struct{ N int }
			_ = json.Unmarshal(q.Arguments, &about)
			note(q.Run, "person "+q.Guard+" "+q.Step)
			if agrees(q.Step, about.N) {
				_, _ = s.client.Approve(ctx, q, client.Answer{By: "ann"})
			} else {
				_, _ = s.client.Reject(ctx, q, client.Answer{By: "ann"})
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}
