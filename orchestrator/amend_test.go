package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func raws(steps ...string) (all []json.RawMessage) {
	for _, s := range steps {
		all = append(all, json.RawMessage(s))
	}
	return all
}

// revisionOf reads the revision of now from a refusal.
func revisionOf(t *testing.T, err error) int {
	t.Helper()
	var d wire.AmendConflict
	require.NoError(t, json.Unmarshal(fault.As(err).Details, &d), "%v", err)
	return d.Revision
}

// TestAmend: steps are added, written again and discarded while a run goes on, and it is over once it is closed.
func TestAmend(t *testing.T) {
	t.Parallel()
	s := start(t)
	run, err := s.client.Submit(ctx(t), []byte(`{"open":true,"output_steps":["a"],"steps":[{"id":"a","tool":"echo","arguments":{"n":1}}]}`), client.SubmitOptions{Run: "amended"})
	require.NoError(t, err)
	amend := func(a client.Amendment) (*client.Amended, error) { return s.client.Amend(ctx(t), "amended", a) }
	first := client.Amendment{Add: raws(`{"id":"b","tool":"echo","arguments":{"n":"$ref:a.n","big":"$ref:c.bytes"}}`, `{"id":"c","tool":"big","arguments":{"bytes":10}}`)}
	x, err := amend(first)
	require.NoError(t, err)
	require.Equal(t, &client.Amended{Revision: 1, Steps: 3}, x)
	x, err = amend(first)
	require.NoError(t, err)
	require.Equal(t, &client.Amended{Revision: 1, Steps: 3, Already: true}, x, "asking twice is asking once")
	_, err = amend(client.Amendment{Add: raws(`{"id":"d","tool":"echo"}`)})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "%v", err)
	require.Equal(t, 1, revisionOf(t, err))
	_, err = amend(client.Amendment{Revision: 1, Discard: []string{"zz"}, Add: raws(`{"id":"a","tool":"echo"}`, `{"id":"e","tool":"nobody"}`)})
	var problems wire.AmendProblems
	require.NoError(t, json.Unmarshal(fault.As(err).Details, &problems), "%v", err)
	require.Len(t, problems.Problems, 3)
	second := client.Amendment{Revision: 1, Add: raws(`{"id":"d","value":{"$calc":"$ref:b.n + 1"},"mood":"good"}`), Output: []byte(`{"d":"$ref:d"}`), Close: true}
	x, err = amend(second)
	require.NoError(t, err)
	require.Equal(t, 2, x.Revision)
	require.Equal(t, []fault.Problem{{Code: fault.UnknownField, Path: "/add/0/mood", Step: "d", Message: `"mood" is not a field of a step; it is ignored`}}, x.Warnings)
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"d":2}`, string(o.Output))
	var revisions []client.Event
	require.NoError(t, s.client.Watch(ctx(t), "amended", func(e client.Event) {
		if e.Kind == subjects.EventAmend {
			revisions = append(revisions, e)
		}
	}))
	require.Equal(t, []client.Event{{Kind: subjects.EventAmend, Run: "amended", Step: "=", Revision: 2}}, revisions, "who comes late is told of the last")
	_, err = amend(client.Amendment{Revision: 2, Close: true})
	require.Contains(t, []fault.Code{fault.AlreadyFinished, fault.NotFound}, fault.CodeOf(err), "%v", err)
}

// Who watches is told of each amendment, once.
func TestAmendmentsAreWatched(t *testing.T) {
	t.Parallel()
	s := start(t)
	const id = "watched"
	w, err := s.client.NewWatcher(ctx(t), id)
	require.NoError(t, err)
	defer w.Close()
	s.begun(`{"open":true,"steps":[{"id":"a","tool":"echo"}]}`, id)
	type told struct {
		revision, steps int
		by              string
	}
	var all []told
	ended := make(chan error, 1)
	go func() {
		ended <- w.Follow(ctx(t), func(e client.Event) {
			if e.Kind == subjects.EventAmend {
				all = append(all, told{e.Revision, e.Steps, e.By})
			}
		})
	}()
	for i := range 3 {
		_, err := s.client.Amend(ctx(t), id, client.Amendment{Revision: i, Add: raws(fmt.Sprintf(`{"id":"s%d","tool":"echo"}`, i)), Close: i == 2, By: "ann"})
		require.NoError(t, err)
	}
	require.NoError(t, <-ended)
	last := 0
	for _, x := range all {
		require.Greater(t, x.revision, last, "%v", all)
		if x.steps > 0 { // else it was told later, by who looked at the run
			require.Equal(t, told{x.revision, x.revision + 1, "ann"}, x)
		}
		last = x.revision
	}
	require.Equal(t, 3, last)
}

// TestAmendPlan says what the plan should be: what differs is added and discarded, and nothing is run twice.
func TestAmendPlan(t *testing.T) {
	t.Parallel()
	s := start(t)
	run, err := s.client.Submit(ctx(t), []byte(`{"open":true,"steps":[{"id":"a","tool":"echo","arguments":{"n":1}},{"id":"w","tool":"gate"},{"id":"x","tool":"echo","depends_on":["w"]},{"id":"y","tool":"echo","depends_on":["w"]}]}`), client.SubmitOptions{Run: "whole"})
	require.NoError(t, err)
	should := []byte(`{"open":true,"steps":[{"id":"a","tool":"echo","arguments": {"n":1}},{"id":"x","tool":"echo","arguments":{"n":"$ref:a.n"}}]}`)
	x, err := s.client.Amend(ctx(t), "whole", client.Amendment{Plan: should, Close: true})
	require.NoError(t, err)
	require.Equal(t, 1, x.Revision)
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"n":1}`, result(t, o, "x"))
	doc := s.history("default", "whole")
	require.Equal(t, outcome.StepCancelled, doc.Steps[1].Status)
	require.True(t, doc.Steps[1].Discarded)
	require.True(t, doc.Steps[3].Discarded)
}

// TestAmendWithin changes the plan of a step, which its owner closes since nobody amends it any more.
func TestAmendWithin(t *testing.T) {
	t.Parallel()
	s := start(t)
	run, err := s.client.Submit(ctx(t), []byte(`{"steps":[{"id":"p","arguments":{"n":4},"plan":{"open":true,"open_for":"5s","steps":[{"id":"a","tool":"echo","arguments":{"n":1}}]}}]}`), client.SubmitOptions{Run: "within"})
	require.NoError(t, err)
	_, err = s.client.Amend(ctx(t), "within", client.Amendment{Scope: "q", Add: raws(`{"id":"b","tool":"echo"}`)})
	require.Equal(t, fault.InvalidID, fault.CodeOf(err))
	require.Eventually(t, func() bool {
		_, err = s.client.Amend(ctx(t), "within", client.Amendment{Scope: "p", Add: raws(`{"id":"b","tool":"echo","arguments":{"n":"$input.n","also":"$ref:a.n"}}`)})
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"a":{"n":1},"b":{"n":4,"also":1}}`, result(t, o, "p"))
}

// TestNotAmendable: a plan of the first language, or under waves, stays as it was submitted.
func TestNotAmendable(t *testing.T) {
	t.Parallel()
	s := start(t)
	for id, plan := range map[string]string{
		"first": `{"steps":[{"id":"a","tool":"gate"}]}`,
		"waves": `{"schedule":"waves","concurrency":1,"steps":[{"id":"a","tool":"gate"}]}`,
	} {
		_, err := s.client.Submit(ctx(t), []byte(plan), client.SubmitOptions{Run: id})
		require.NoError(t, err)
		_, err = s.client.Amend(ctx(t), id, client.Amendment{Add: raws(`{"id":"b","tool":"echo"}`)})
		require.Equal(t, fault.NotAmendable, fault.CodeOf(err), "%s: %v", id, err)
		require.NoError(t, cancelled(s.client.Cancel(ctx(t), id, "test")))
	}
}

// TestAmendmentsRace: eight clients add a step each time, and each revision is of one.
func TestAmendmentsRace(t *testing.T) {
	t.Parallel()
	s := start(t)
	run, err := s.client.Submit(ctx(t), []byte(`{"open":true,"steps":[{"id":"a","tool":"echo","arguments":{"n":0}}]}`), client.SubmitOptions{Run: "race"})
	require.NoError(t, err)
	const clients, each = 8, 10
	seen := make([][]int, clients)
	var all sync.WaitGroup
	for k := range clients {
		all.Go(func() {
			revision := 0
			for n := 0; n < each; {
				x, err := s.client.Amend(ctx(t), "race", client.Amendment{Revision: revision, Add: raws(fmt.Sprintf(`{"id":"s%d_%d","tool":"echo","arguments":{"n":%d}}`, k, n, n))})
				if err != nil {
					if fault.CodeOf(err) != fault.Conflict {
						t.Errorf("%v", err)
						return
					}
					revision = revisionOf(t, err)
					continue
				}
				seen[k] = append(seen[k], x.Revision)
				revision, n = x.Revision, n+1
			}
		})
	}
	all.Wait()
	whose := map[int]bool{}
	for _, list := range seen {
		for _, n := range list {
			require.False(t, whose[n], "revision %d twice", n)
			whose[n] = true
		}
	}
	require.Len(t, whose, clients*each)
	_, err = s.client.Amend(ctx(t), "race", client.Amendment{Revision: clients * each, Close: true})
	require.NoError(t, err)
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Len(t, o.Results, 1+clients*each)
}

// TestRetryOfAnAmendedRun is one of the plan as amendments have left it.
func TestRetryOfAnAmendedRun(t *testing.T) {
	t.Parallel()
	s := start(t)
	run, err := s.client.Submit(ctx(t), []byte(`{"open":true,"steps":[{"id":"a","tool":"echo","arguments":{"n":1}},{"id":"w","tool":"echo","arguments":{"n":"$ref:b.n"}},{"id":"b","tool":"echo","arguments":{"n":2}},`+
		`{"id":"p","arguments":{"n":3},"plan":{"open":true,"steps":[{"id":"i","tool":"echo","arguments":{"n":"$input.n"}}]}}]}`), client.SubmitOptions{Run: "first"})
	require.NoError(t, err)
	amend := func(a client.Amendment) {
		require.Eventually(t, func() bool {
			_, err := s.client.Amend(ctx(t), "first", a)
			return err == nil
		}, 10*time.Second, 20*time.Millisecond)
	}
	amend(client.Amendment{Scope: "p", Add: raws(`{"id":"j","tool":"echo","arguments":{"n":"$ref:i.n"}}`), Close: true})
	amend(client.Amendment{Add: raws(`{"id":"bad","value":{"$calc":"$ref:p.j.n / 0"}}`, `{"id":"c","tool":"echo","arguments":{"n":"$ref:p.j.n"}}`), Close: true})
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Partial, o.Status, "%s", o.JSON())
	require.Equal(t, "bad", o.Errors[0].Step)
	before := s.tools.total()
	again, err := s.client.Retry(ctx(t), "first", client.RetryOptions{})
	require.NoError(t, err)
	o, err = again.Wait(ctx(t))
	require.NoError(t, err)
	require.Equal(t, outcome.Partial, o.Status, "%s", o.JSON())
	require.Len(t, o.Errors, 1, "%s", o.JSON())
	require.Equal(t, before, s.tools.total(), "all that succeeded is taken over, within the step too")
	require.JSONEq(t, `{"n":3}`, result(t, o, "c"))
}

// TestAmendmentsCallTemplates: what an amendment adds may be loops and calls of templates, which the run keeps as they were
// then, whoever owns it. The plan of a template stays as it is, and a loop has no plan of its own.
func TestAmendmentsCallTemplates(t *testing.T) {
	t.Parallel()
	s := start(t)
	first := s.apply("slow", "", `{"id":"wait","tool":"gate"},{"id":"x","value":{"$calc":"$input.n * 2"},"depends_on":["wait"]}`, `"$ref:x"`)
	s.apply("outer", "", `{"id":"inner","tool":"slow","arguments":{"n":"$input.n"}}`, `"$ref:inner"`)
	run := s.submit(`{"open":true,"steps":[{"id":"a","value":1}]}`, "calls")
	amend := func(a client.Amendment) (*client.Amended, error) { return s.client.Amend(ctx(t), "calls", a) }
	_, err := amend(client.Amendment{Add: raws(
		`{"id":"t","tool":"outer","arguments":{"n":3}}`,
		`{"id":"l","repeat":{"until":"$last.n == 2","max":5},"tool":"echo","arguments":{"n":"$index"}}`,
		`{"id":"m","repeat":{"max":2},"plan":{"steps":[{"id":"wait","tool":"gate"}]}}`,
	)})
	require.NoError(t, err)
	<-s.tools.begun
	_, err = amend(client.Amendment{Scope: "t", Add: raws(`{"id":"b","tool":"echo"}`)})
	require.Equal(t, fault.NotAmendable, fault.CodeOf(err), "%v", err)
	_, err = amend(client.Amendment{Scope: "t/inner", Discard: []string{"wait"}})
	require.Equal(t, fault.NotAmendable, fault.CodeOf(err), "%v", err)
	_, err = amend(client.Amendment{Scope: "m", Discard: []string{"="}})
	require.Equal(t, fault.InvalidID, fault.CodeOf(err), "%v", err)
	x, err := amend(client.Amendment{Scope: "m/=0", Add: raws(`{"id":"once","tool":"echo","arguments":{"n":7},"depends_on":["wait"]}`)})
	require.NoError(t, err)
	require.Equal(t, 2, x.Steps)
	s.apply("slow", "", `{"id":"x","value":"another"}`, `"$ref:x"`)
	s.orchestrator() // beside the first, which ends
	s.leave()
	_, err = amend(client.Amendment{Revision: 1, Add: raws(`{"id":"u","tool":"slow","arguments":{"n":10}}`), Close: true})
	require.NoError(t, err)
	close(s.tools.gate)
	o := s.wait(run)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `6`, result(t, o, "t"))
	require.JSONEq(t, `{"n":2}`, result(t, o, "l"))
	require.JSONEq(t, `20`, result(t, o, "u"))
	doc := s.history("default", "calls")
	require.Equal(t, 2, doc.Revision)
	require.Equal(t, []int{1, 0}, []int{doc.Steps[3].Steps[0].Revision, doc.Steps[3].Steps[1].Revision})
	require.JSONEq(t, string(first.Definition.Plan), string(doc.Templates["slow"]))
	var ids []string
	for _, st := range doc.Steps[3].Steps {
		for _, inner := range st.Steps {
			ids = append(ids, inner.ID)
		}
	}
	require.Equal(t, []string{"m/=0/wait", "m/=0/once", "m/=1/wait"}, ids, "an amendment is of one iteration")
}

// TestAmendmentsFitWhatIsDeclared: references of added steps are held against what the tools of those that are there
// declared when the run froze them, whatever was deployed since and whoever owns the run.
func TestAmendmentsFitWhatIsDeclared(t *testing.T) {
	t.Parallel()
	s := start(t)
	rd := func(json.RawMessage) (string, error) { return `{"r":7}`, nil }
	takes := `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`
	s.deploy("v1", takes, `{"type":"object","properties":{"r":{"type":"integer"}},"required":["r"],"additionalProperties":false}`, rd)
	s.submit(`{"open":true,"steps":[{"id":"s","tool":"rd","arguments":{"a":1}},
		{"id":"p","plan":{"steps":[{"id":"in","tool":"rd","arguments":{"a":2}},{"id":"wait","tool":"gate"}]}}]}`, "fits")
	<-s.tools.begun
	refused := func(scope string, steps ...string) (all []string) {
		_, err := s.client.Amend(ctx(t), "fits", client.Amendment{Scope: scope, Add: raws(steps...)})
		var list wire.AmendProblems
		require.NoError(t, json.Unmarshal(fault.As(err).Details, &list), "%v", err)
		for _, p := range list.Problems {
			all = append(all, string(p.Code)+" "+p.Path+" "+p.Hint)
		}
		return all
	}
	check := func() {
		require.Equal(t, []string{
			`impossible_ref /add/0/arguments/a write "$ref:s.r"`, `impossible_ref /add/1/arguments/n write "$ref:s.r"`,
		}, refused("", `{"id":"x","tool":"rd","arguments":{"a":"$ref:s"}}`, `{"id":"y","tool":"echo","arguments":{"n":"$ref:s.r.deep"}}`))
		require.Equal(t, []string{`impossible_ref /add/0/arguments/a write "$ref:in.r"`}, refused("p", `{"id":"x","tool":"rd","arguments":{"a":"$ref:in"}}`))
	}
	check()
	s.deploy("v2", takes, `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`, rd)
	s.orchestrator() // beside the first, which ends
	s.leave()
	check()
	_, err := s.client.Amend(ctx(t), "fits", client.Amendment{Add: raws(`{"id":"x","tool":"rd","arguments":{"a":"$ref:s.r"}}`)})
	require.NoError(t, err)
}

// TestAmendmentsTakeWhatWasTakenOver: what a run has from the one that it tries again is held against nothing that the
// tool declares by now.
func TestAmendmentsTakeWhatWasTakenOver(t *testing.T) {
	t.Parallel()
	s := start(t)
	rd := func(json.RawMessage) (string, error) { return `{"r":7}`, nil }
	takes := `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`
	s.deploy("v1", takes, `{"type":"object","properties":{"r":{"type":"integer"}},"required":["r"],"additionalProperties":false}`, rd)
	run := s.submit(`{"open":true,"steps":[{"id":"s","tool":"rd","arguments":{"a":1}},{"id":"wait","tool":"gate","depends_on":["s"]}]}`, "first")
	<-s.tools.begun
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "first", "")))
	s.wait(run)
	s.deploy("v2", takes, `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":false}`, rd)
	require.Eventually(t, func() bool { // until orchestrators know of it
		report, err := s.client.DryRun(ctx(t), []byte(`{"steps":[{"id":"s","tool":"rd","arguments":{"a":1}},{"id":"x","tool":"rd","arguments":{"a":"$ref:s.r"}}]}`))
		return err == nil && len(report.Problems) > 0
	}, time.Minute, 50*time.Millisecond)
	again, err := s.client.Retry(ctx(t), "first", client.RetryOptions{})
	require.NoError(t, err)
	<-s.tools.begun
	x := raws(`{"id":"x","tool":"rd","arguments":{"a":"$ref:s.r"}}`, `{"id":"y","tool":"rd","arguments":{"a":"$ref:x.r"}}`)
	_, err = s.client.Amend(ctx(t), again.ID(), client.Amendment{Add: x})
	require.Equal(t, fault.ImpossibleRef, fault.CodeOf(err), "%v", err)
	var list wire.AmendProblems
	require.NoError(t, json.Unmarshal(fault.As(err).Details, &list), "%v", err)
	require.Len(t, list.Problems, 1)
	require.Equal(t, "/add/1/arguments/a", list.Problems[0].Path)
	_, err = s.client.Amend(ctx(t), again.ID(), client.Amendment{Add: x[:1]})
	require.NoError(t, err)
}
