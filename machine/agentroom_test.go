package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// TestARunHasRoomForSoManyRounds: an agent fails once the run has no room for the calls of a round, or for the next call of its
// planner, and its error tells what came of its rounds; what it had come to before its last answer was to be asked for it comes to.
func TestARunHasRoomForSoManyRounds(t *testing.T) {
	t.Parallel()
	templates := map[string]*plan.Template{"agent": {Name: "agent", Agent: &plan.Agent{Planner: "planner", MaxRounds: 10_000, Responds: true}}}
	p, report := plan.ParseLimited([]byte(`{"steps":[{"id":"a","tool":"agent"}]}`), nil, plan.Limits{Templates: templates})
	if p == nil {
		t.Fatal(report.Problems)
	}
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1}, "planner": {MaxAttempts: 1}, "agent": {MaxAttempts: 1}}
	for _, c := range []struct {
		steps    int // of the second round; the run has had room for 4 before
		formerly bool
		code     fault.Code
		details  string
	}{
		{9_997, false, fault.LimitExceeded, `{"rounds":1,"last":{"x":7}}`},  // there is none for its calls
		{9_996, false, fault.LimitExceeded, `{"rounds":2,"last":{"s0":1}}`}, // nor for what its planner would be asked then
		{9_997, true, fault.LimitExceeded, ``},
		{9_995, false, "", ``},
	} {
		r := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts, AgentEnds: !c.formerly})
		var out machine.Effects
		r.Begin(&out)
		seq := uint64(0)
		take := func(rec machine.Record) {
			seq += 10
			rec.Seq, rec.Time = seq, epoch
			r.Apply(rec, epoch, &out)
		}
		ok := func(token, value string) {
			take(machine.Record{Result: &machine.Result{Call: machine.Call{Step: machine.NotYet}, Token: &token, Attempt: 1, Body: []byte(value)}})
		}
		fragment := func(body string) *plan.Plan {
			x, report := plan.ParseLimited([]byte(body), nil, plan.Limits{Templates: templates, Language2: true})
			if x == nil {
				t.Fatal(report.Problems)
			}
			return x
		}
		ok("a/=0/=plan", `{}`)
		take(machine.Record{Round: &machine.Round{Scope: "a/=0", Contracts: contracts, Plan: fragment(`{"steps":[{"id":"x","tool":"t"}]}`)}})
		ok("a/=0/x", `7`)
		ok("a/=1/=plan", `{}`)
		var steps []string
		settled := map[string]*machine.Result{}
		for i := range c.steps {
			id := fmt.Sprintf("s%d", i)
			steps = append(steps, fmt.Sprintf(`{"id":%q,"tool":"t","optional":true}`, id))
			if settled[id] = (&machine.Result{Error: fault.New(fault.Locked, "not yet")}); i == 0 {
				settled[id] = &machine.Result{Value: []byte(`1`)}
			}
		}
		take(machine.Record{Round: &machine.Round{Scope: "a/=1", Contracts: contracts, Settled: settled, Plan: fragment(`{"steps":[` + strings.Join(steps, ",") + `]}`)}})
		if c.code == "" { // its planner is asked for the third time, and there is room for no fourth
			ok("a/=2/=plan", `{}`)
			take(machine.Record{Round: &machine.Round{Scope: "a/=2", Contracts: contracts, Ends: true, Output: &machine.Result{Value: []byte(`"done"`)}}})
		}
		if !r.Finished() {
			t.Fatalf("%d steps: not over", c.steps)
		}
		err := r.Step(machine.Call{}, time.Time{}).Error
		if c.code == "" {
			if got := string(r.Value(0)); err != nil || got != `"done"` {
				t.Errorf("with an output, and no room for a last answer: %v, %s", err, got)
			}
			continue
		}
		if err == nil || err.Code != c.code || string(err.Details) != c.details {
			t.Errorf("%d steps: %v, %s", c.steps, err, errDetails(err))
		}
	}
}

func errDetails(err *fault.Error) json.RawMessage {
	if err == nil {
		return nil
	}
	return err.Details
}

// TestErrorsOfAgentsTellOfTheirRounds: of one that has used up its budget, and of one that took too long, how many were decided
// and what the last one came to. In a run of before the former says that its planner failed, and no more.
func TestErrorsOfAgentsTellOfTheirRounds(t *testing.T) {
	t.Parallel()
	p, report := plan.ParseLimited([]byte(`{"steps":[{"id":"a","tool":"agent","timeout":"1m"}]}`), nil, plan.Limits{Templates: agents})
	if p == nil {
		t.Fatal(report.Problems)
	}
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1}, "planner": {MaxAttempts: 1}, "agent": {MaxAttempts: 1}}
	begun := func(formerly bool) (*machine.Run, func(machine.Record), *machine.Effects) {
		r := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts, AgentEnds: !formerly})
		out, seq := &machine.Effects{}, uint64(0)
		r.Begin(out)
		return r, func(rec machine.Record) {
			seq += 10
			rec.Seq, rec.Time = seq, epoch
			r.Apply(rec, epoch, out)
		}, out
	}
	result := func(token, value string, err *fault.Error) machine.Record {
		return machine.Record{Result: &machine.Result{Call: machine.Call{Step: machine.NotYet}, Token: &token, Attempt: 1, Body: []byte(value), Error: err, ByOwner: err != nil}}
	}
	one := func(take func(machine.Record)) {
		x, _ := plan.ParseLimited([]byte(`{"steps":[{"id":"x","tool":"t"},{"id":"y","tool":"t","optional":true}]}`), nil, plan.Limits{Templates: agents, Language2: true})
		take(result("a/=0/=plan", `{}`, nil))
		take(machine.Record{Round: &machine.Round{Scope: "a/=0", Contracts: contracts, Plan: x}})
		take(result("a/=0/x", `7`, nil))
	}
	const last = `{"rounds":1,"last":{"x":7}}`
	for formerly, want := range map[bool]string{false: "the budget of steps is used up " + last, true: "the planner, in round 1: the budget of steps is used up "} {
		r, take, _ := begun(formerly)
		one(take)
		take(result("a/=0/y", `"z"`, fault.New(fault.ToolFailed, "no")))
		take(result("a/=1/=plan", ``, fault.New(fault.BudgetExceeded, "the budget of steps is used up")))
		err := r.Step(machine.Call{}, time.Time{}).Error
		if err == nil || err.Message+" "+string(err.Details) != want {
			t.Errorf("formerly %v: %v, %s", formerly, err, errDetails(err))
		}
	}
	for rounds, want := range map[int]string{0: `{"rounds":0}`, 1: last} {
		r, take, out := begun(false)
		if rounds > 0 {
			one(take)
		}
		out.Decide = nil
		r.Tick(epoch.Add(2*time.Minute), out)
		if len(out.Decide) != 1 || out.Decide[0].Error.Code != fault.Timeout || string(out.Decide[0].Error.Details) != want {
			t.Errorf("after %d rounds: %+v", rounds, out.Decide)
		}
	}
}
