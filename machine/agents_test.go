package machine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// agents are those that the plans of scenarios may call.
var agents = map[string]*plan.Template{"agent": {Name: "agent", Agent: &plan.Agent{Planner: "planner", MaxRounds: 4}},
	"careful":   {Name: "careful", Agent: &plan.Agent{Planner: "planner", MaxRounds: 4, Approval: &plan.Approval{}}},
	"lenient":   {Name: "lenient", Agent: &plan.Agent{Planner: "planner", MaxRounds: 4, Approval: &plan.Approval{Timeout: time.Hour, ApproveOnTimeout: true}}},
	"hurried":   {Name: "hurried", Agent: &plan.Agent{Planner: "planner", MaxRounds: 2, Approval: &plan.Approval{Timeout: time.Minute}}},
	"watched":   {Name: "watched", Agent: &plan.Agent{Planner: "planner", MaxRounds: 4, Guards: words{}}},
	"responder": {Name: "responder", Agent: &plan.Agent{Planner: "planner", MaxRounds: 2, Responds: true}},
	"consults": {Name: "consults", Agent: &plan.Agent{Planner: "planner", MaxRounds: 4, GuardTools: []string{"judge", "judge", "jury", "judge"}, Guards: asking{
		{plan.OnCall, "", "judge", "reject"}, {plan.OnResult, "", "judge", "ask"}, {plan.OnCall, "", "jury", "fail"}, {plan.OnOutput, "odd", "", "ask"}, {plan.OnOutput, "", "judge", "reject"}}}},
	"greets": {Name: "greets", Agent: &plan.Agent{Planner: "planner", MaxRounds: 3, Responds: true, GuardTools: []string{"judge"}, Guards: asking{
		{plan.OnInput, "bad", "", "reject"}, {plan.OnInput, "odd", "", "ask"}, {plan.OnInput, "", "judge", "ask"}, {plan.OnCall, "odd", "", "ask"}, {plan.OnResult, "odd", "", "ask"}}}},
	"typed":     {Name: "typed", Output: numbered(), Agent: &plan.Agent{Planner: "planner", MaxRounds: 9}},
	"opened":    {Name: "opened", Plan: []byte(`{"open":true,"open_for":"5m","steps":[{"id":"e","tool":"t"}]}`)},
	"forgetful": {Name: "forgetful", Agent: &plan.Agent{Planner: "planner", Summary: "digest", MaxRounds: 9}}}

// numbered is the schema of {"n": 1}.
func numbered() *tool.Schema {
	s, err := tool.CompileSchema(json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`))
	if err != nil {
		panic(err)
	}
	return s
}

// asking are guards of which each has a tool, or a word that may not be in what it looks at.
type asking []struct{ on, word, tool, otherwise string }

func (g asking) refusal(n int, format string, args ...any) *plan.Refusal {
	return &plan.Refusal{Guard: n, Err: fault.New(fault.Rejected, format, args...), Asks: g[n].otherwise == "ask", Ends: g[n].otherwise == "fail"}
}

func (g asking) Refuses(on string, from int, seen map[string]json.RawMessage) *plan.Refusal {
	for n := from; n < len(g); n++ {
		x := map[string]string{plan.OnInput: "input", plan.OnCall: "args", plan.OnResult: "result", plan.OnOutput: "output"}[on]
		if g[n].on == on && g[n].tool == "" && strings.Contains(string(seen[x]), g[n].word) {
			return g.refusal(n, "the %s has %s", on, g[n].word)
		}
	}
	return nil
}

func (g asking) Asks(on string) bool {
	return slices.ContainsFunc(g, func(x struct{ on, word, tool, otherwise string }) bool {
		return x.on == on && x.tool == "" && x.otherwise == "ask"
	})
}

func (g asking) Tool(on string, from int) (guard, tool int, ok bool) {
	for n, x := range g {
		switch {
		case x.tool == "":
		case n >= from && x.on == on:
			return n, tool, true
		default:
			tool++
		}
	}
	return 0, 0, false
}

func (g asking) Said(guard int, of string, value []byte, failed *fault.Error) *plan.Refusal {
	switch {
	case failed != nil:
		return g.refusal(guard, "guard %d of '%s' failed: %s", guard, of, failed.Message)
	case string(value) == "true":
		return nil
	}
	return g.refusal(guard, "guard %d of '%s' says %s", guard, of, value)
}

func (asking) Rejected(guard int, why *fault.Error) *fault.Error {
	err := *why
	err.Message += fmt.Sprintf(" (guard %d)", guard)
	return &err
}

func (asking) Ends(*fault.Error) bool { return false }

// words are guards that let nothing pass which has "no" in it, or "never", with which an agent ends; nothing that can't be
// looked at, and no call of the tool "banned".
type words struct{}

func (words) Refuses(on string, from int, seen map[string]json.RawMessage) *plan.Refusal {
	if from > 0 {
		return nil
	}
	for _, word := range []string{"input", "args", "result", "output"} {
		v, is := seen[word]
		switch text := string(v); {
		case !is || word == "input" && on != plan.OnInput:
		case v == nil:
			return &plan.Refusal{Err: fault.New(fault.Rejected, "%s: too large", on)}
		case strings.Contains(text, "never"):
			return &plan.Refusal{Err: fault.New(fault.Rejected, "%s: never, in round %s", on, seen["round"]), Ends: true}
		case strings.Contains(text, "no"):
			return &plan.Refusal{Err: fault.New(fault.Rejected, "%s: no, in round %s", on, seen["round"])}
		}
	}
	if string(seen["tool"]) == `"banned"` && on == plan.OnResult {
		return &plan.Refusal{Err: fault.New(fault.Rejected, "result: of banned")}
	}
	return nil
}

func (words) Asks(string) bool { return false }

func (words) Tool(string, int) (guard, tool int, ok bool) { return 0, 0, false }

func (words) Said(int, string, []byte, *fault.Error) *plan.Refusal { return nil }

func (words) Rejected(_ int, why *fault.Error) *fault.Error { return why }

func (words) Ends(err *fault.Error) bool {
	return err.Code == fault.Rejected && strings.Contains(err.Message, "decided by the owner")
}

// admitted is what was decided of the steps that an amendment adds to a round.
func admitted(settled map[string]json.RawMessage, locked []string, earlier, reaches map[string][]string) *machine.Admitted {
	x := &machine.Admitted{
		Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}}, Templates: agents, Settled: map[string]*machine.Result{},
		Name: func(s *plan.Step) { s.Tool = strings.TrimPrefix(s.Tool, "as-") },
	}
	for id, value := range settled {
		x.Settled[id] = &machine.Result{Value: value}
	}
	for _, id := range locked {
		x.Settled[id] = &machine.Result{Error: fault.New(fault.Locked, "call another first")}
	}
	for id, ids := range earlier {
		x.Earlier = append(x.Earlier, machine.Earlier{Step: id, IDs: ids})
	}
	for id, ids := range reaches {
		x.Reaches = append(x.Reaches, machine.Earlier{Step: id, IDs: ids})
	}
	return x
}

// roundOf is the record of a round: its scope, and what its input says.
func roundOf(t *testing.T, d *datadriven.TestData) *machine.Round {
	var said struct {
		Plan          json.RawMessage
		Settled       map[string]json.RawMessage
		Locked        []string
		Rest, Direct  []string
		Earlier       map[string][]string
		Ends, Invalid bool
		Formerly      bool
		After         map[string]string
		Output        json.RawMessage
		Error         string
		Asks          string
	}
	if err := json.Unmarshal([]byte(d.Input), &said); err != nil {
		d.Fatalf(t, "%v", err)
	}
	x := &machine.Round{Formerly: said.Formerly, Rest: said.Rest, Direct: said.Direct, Ends: said.Ends, Invalid: said.Invalid, Settled: map[string]*machine.Result{}, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1}, "again": {MaxAttempts: 3, Backoff: tool.Backoff{Initial: time.Second, Max: time.Second, Strategy: tool.Constant}}}}
	for _, arg := range d.CmdArgs {
		if arg.Key == "scope" {
			arg.Scan(t, 0, &x.Scope)
		}
	}
	if said.Plan != nil {
		p, report := plan.ParseLimited(said.Plan, nil, plan.Limits{Templates: agents, Language2: true})
		if p == nil {
			d.Fatalf(t, "%v", report.Problems)
		}
		for step, other := range said.After {
			at := p
			above, id, within := strings.Cut(step, "/")
			if within {
				i, _ := p.Index(above)
				at, step, other = p.Steps[i].Plan, id, other[len(above)+1:]
			}
			i, _ := at.Index(step)
			k, _ := at.Index(other)
			plan.Order(at, i, k)
		}
		x.Plan = p
	}
	if said.Asks != "" {
		x.Approval, x.Digest = agents[said.Asks].Agent.Approval, fmt.Sprintf("%x", said.Plan)
	}
	for id, value := range said.Settled {
		x.Settled[id] = &machine.Result{Value: value}
	}
	for _, id := range said.Locked {
		x.Settled[id] = &machine.Result{Error: fault.New(fault.Locked, "call another first")}
	}
	for id, steps := range said.Earlier {
		x.Earlier = append(x.Earlier, machine.Earlier{Step: id, Round: int(id[len(id)-1] - '0'), IDs: steps})
	}
	if said.Output != nil {
		x.Output = &machine.Result{Value: said.Output}
	}
	if said.Error != "" {
		x.Error = fault.New(fault.Code(said.Error), "it is over")
	}
	return x
}

// TestApprovedRoundsAreReadInAnyOrder: what people say of rounds counts where it stands, however the records come, and
// nothing of a round is entered before.
func TestApprovedRoundsAreReadInAnyOrder(t *testing.T) {
	t.Parallel()
	p, report := plan.ParseLimited([]byte(`{"steps":[{"id":"a","tool":"careful"}]}`), nil, plan.Limits{Templates: agents})
	if p == nil {
		t.Fatal(report.Problems)
	}
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1}, "planner": {MaxAttempts: 1}, "careful": {MaxAttempts: 1}}
	digests := map[int]string{} // of what is asked, by the place of the answer
	ok := func(token, value string) machine.Record {
		return machine.Record{Result: &machine.Result{Call: machine.Call{Step: machine.NotYet}, Token: &token, Attempt: 1, Body: []byte(value)}}
	}
	round := func(n int, fragment string) machine.Record {
		x, r := plan.ParseLimited([]byte(fragment), nil, plan.Limits{Templates: agents, Language2: true})
		if x == nil {
			t.Fatal(r.Problems)
		}
		return machine.Record{Round: &machine.Round{
			Scope: fmt.Sprintf("a/=%d", n), Contracts: contracts, Plan: x, Approval: &plan.Approval{}, Digest: fmt.Sprint(n),
		}}
	}
	records := func() []machine.Record {
		all := []machine.Record{
			ok("a/=0/=plan", `{}`), round(0, `{"steps":[{"id":"x","tool":"t"}]}`), {Answer: &machine.Answer{Number: 1, Decision: machine.Reject}},
			ok("a/=1/=plan", `{}`), round(1, `{"steps":[{"id":"x","tool":"t"}],"output":"$ref:x"}`),
			{Answer: &machine.Answer{Number: 2, Digest: "of another", Decision: machine.Approve}},
			{Say: &machine.Say{Agent: "a", ID: "m", Content: []byte(`"No."`), Interrupt: true}},
			ok("a/=2/=plan", `{}`), round(2, `{"steps":[{"id":"x","tool":"t"}],"output":"$ref:x"}`),
			{Answer: &machine.Answer{Number: 4, Decision: machine.Approve}}, ok("a/=2/x", `7`),
		}
		for i := range all {
			all[i].Seq, all[i].Time = uint64(10*(i+1)), epoch
			if a := all[i].Answer; a != nil && a.Digest == "" {
				a.Digest = digests[i]
			}
		}
		return all
	}
	run := func(shift int) *machine.Run {
		r := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts})
		var out machine.Effects
		r.Begin(&out)
		all := records()
		for i := range all {
			rec := all[(i+shift)%len(all)]
			if q := r.Question(machine.Call{}); rec.Answer != nil && rec.Answer.Digest == "" && q != nil {
				rec.Answer.Digest, digests[i] = q.Digest, q.Digest
			}
			r.Apply(rec, epoch, &out)
		}
		return r
	}
	want := ""
	for shift := range len(records()) { // without one, what is asked is found out
		r := run(shift)
		if !r.Finished() {
			t.Fatalf("not over where %d records come late", shift)
		}
		got := string(r.Outcome("r", r.Value).JSON())
		if want == "" {
			want = got
		}
		if got != want || !strings.Contains(got, `"results":{"a":7}`) {
			t.Fatalf("%s\n%s", got, want)
		}
	}
}

// TestRoundsAreReadInAnyOrder: the same records, words to the agent among them, lead to the same outcome however they come.
func TestRoundsAreReadInAnyOrder(t *testing.T) {
	t.Parallel()
	p, report := plan.ParseLimited([]byte(`{"steps":[{"id":"a","tool":"agent"},{"id":"b","tool":"t","arguments":{"x":"$ref:a"}}]}`), nil, plan.Limits{Templates: agents})
	if p == nil {
		t.Fatal(report.Problems)
	}
	contracts := map[string]*tool.Contract{"t": {MaxAttempts: 1}, "planner": {MaxAttempts: 1}, "agent": {MaxAttempts: 1}}
	fragment := func(body string) *plan.Plan {
		x, r := plan.ParseLimited([]byte(body), nil, plan.Limits{Templates: agents, Language2: true})
		if x == nil {
			t.Fatal(r.Problems)
		}
		return x
	}
	ok := func(token, value string) machine.Record {
		return machine.Record{Result: &machine.Result{Call: machine.Call{Step: machine.NotYet}, Token: &token, Attempt: 1, Body: []byte(value)}}
	}
	replan := func(token string) machine.Record {
		rec := ok(token, "")
		rec.Result.Error = fault.New(fault.Replan, "it has changed")
		return rec
	}
	b := "b"
	records := func() []machine.Record {
		all := []machine.Record{
			ok("a/=0/=plan", `{}`),
			{Round: &machine.Round{Scope: "a/=0", Contracts: contracts, Plan: fragment(`{"steps":[{"id":"x","tool":"t"},{"id":"y","tool":"t","arguments":{"x":"$ref:x"}},
				{"id":"w","tool":"t"},{"id":"v","tool":"t","arguments":{"x":"$ref:y"}}],"output":"$ref:x"}`)}},
			ok("a/=0/x", `{"n":1}`), replan("a/=0/y"), ok("a/=0/w", `2`),
			{Say: &machine.Say{Agent: "a", ID: "m1", Content: []byte(`"Hurry."`)}},
			ok("a/=1/=plan", `{}`),
			{Say: &machine.Say{Agent: "a", ID: "m2", Content: []byte(`"No."`), Interrupt: true}},
			ok("a/=2/=plan", `{}`),
			{Say: &machine.Say{Agent: "a", ID: "m3", Content: []byte(`"Well."`)}},
			{Round: &machine.Round{Scope: "a/=2", Contracts: contracts, Earlier: []machine.Earlier{{Step: "r0", Round: 0, IDs: []string{"x"}}},
				Plan: fragment(`{"steps":[{"id":"z","value":{"$calc":"$ref:r0.x.n + 1"}},{"id":"k","tool":"t"},{"id":"r0","tool":"r0"}],"output":{"n":"$ref:z"}}`)}},
			{Amendment: &machine.Amendment{
				Scope: "a/=2", Revision: 1, Digest: "d", Add: []json.RawMessage{[]byte(`{"id":"also","value":{"w":"$ref:r0.w"}}`)}, Admitted: admitted(nil, nil, nil, map[string][]string{"r0": {"w"}}),
			}},
			ok("a/=2/k", `{}`), ok("a/=3/=plan", `{}`),
			{Round: &machine.Round{Scope: "a/=3", Contracts: contracts, Earlier: []machine.Earlier{{Step: "r2", Round: 2, IDs: []string{"also"}}},
				Plan: fragment(`{"steps":[{"id":"q","value":{"n":"$ref:r2.also.w"}},{"id":"r2","tool":"r2"}],"output":"$ref:q"}`)}},
			ok(b, `3`),
		}
		all[len(all)-1].Result.Token = nil
		all[len(all)-1].Result.Step = 1
		for i := range all {
			all[i].Seq, all[i].Time = uint64(10*(i+1)), epoch
		}
		return all
	}
	want := ""
	for shift := range len(records()) {
		r := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts})
		var out machine.Effects
		r.Begin(&out)
		all := records()
		for i := range all { // the first ones come last
			r.Apply(all[(i+shift)%len(all)], epoch, &out)
		}
		if !r.Finished() {
			t.Fatalf("not over where %d records come late", shift)
		}
		heard := ""
		for _, s := range machine.AllSaid(r, machine.Call{}) {
			heard += fmt.Sprintf(" %s:%d", s.ID, s.Round)
		}
		if heard != " m1:2 m2:2 m3:3" {
			t.Fatalf("where %d records come late, the agent heard%s", shift, heard)
		}
		got := string(r.Outcome("r", r.Value).JSON())
		if want == "" {
			want = got
		}
		if got != want || !strings.Contains(got, `"results":{"a":{"n":2},"b":3}`) {
			t.Fatalf("%s\n%s", got, want)
		}
	}
}

// TestGuardsAreReadInAnyOrder: what guards and people say counts where it stands, however the records come.
func TestGuardsAreReadInAnyOrder(t *testing.T) {
	t.Parallel()
	p, report := plan.ParseLimited([]byte(`{"steps":[{"id":"a","tool":"consults"}]}`), nil, plan.Limits{Templates: agents})
	if p == nil {
		t.Fatal(report.Problems)
	}
	contracts := map[string]*tool.Contract{}
	for _, name := range []string{"t", "planner", "judge", "jury"} {
		contracts[name] = &tool.Contract{MaxAttempts: 1}
	}
	digests := map[int]string{} // of what is asked, by the place of the answer
	ok := func(token, value string) machine.Record {
		return machine.Record{Result: &machine.Result{Call: machine.Call{Step: machine.NotYet}, Token: &token, Attempt: 1, Body: []byte(value)}}
	}
	records := func() []machine.Record {
		fragment, r := plan.ParseLimited([]byte(`{"steps":[{"id":"x","tool":"t"},{"id":"y","tool":"t","arguments":{"x":"$ref:x"}}]}`), nil, plan.Limits{Templates: agents, Language2: true})
		if fragment == nil {
			t.Fatal(r.Problems)
		}
		all := []machine.Record{
			ok("a/=0/=plan", `{}`), {Round: &machine.Round{Scope: "a/=0", Contracts: contracts, Plan: fragment}}, ok("a/=0/=guard-0", `true`), ok("a/=0/=guard-6", `true`),
			ok("a/=0/x", `1`), ok("a/=0/=guard-9", `false`), {Answer: &machine.Answer{Token: "a/=0/x", Call: machine.Call{Step: machine.NotYet}, Number: 1, Decision: machine.Approve}},
			ok("a/=0/=guard-12", `true`), ok("a/=0/=guard-18", `true`), ok("a/=0/y", `2`), ok("a/=0/=guard-21", `true`),
			ok("a/=1/=plan", `{}`), {Round: &machine.Round{Scope: "a/=1", Ends: true, Output: &machine.Result{Value: []byte(`"odd"`)}}},
			{Answer: &machine.Answer{Number: 1, Decision: machine.Approve}}, ok("a/=1/=guard-3", `true`),
		}
		for i := range all {
			all[i].Seq, all[i].Time = uint64(10*(i+1)), epoch
			if a := all[i].Answer; a != nil {
				a.Digest = digests[i]
			}
		}
		return all
	}
	for shift := range len(records()) { // without one, what is asked is found out
		r := machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts})
		var out machine.Effects
		r.Begin(&out)
		all := records()
		for i := range all {
			rec := all[(i+shift)%len(all)]
			if a := rec.Answer; a != nil && shift == 0 {
				c := a.Call
				if a.Token != "" {
					c, _ = r.Find(a.Token)
				}
				a.Digest = r.Question(c).Digest
				digests[i] = a.Digest
			}
			r.Apply(rec, epoch, &out)
		}
		if got := string(r.Outcome("r", r.Value).JSON()); !r.Finished() || !strings.Contains(got, `"results":{"a":"odd"}`) {
			t.Fatalf("where %d records come late: %s", shift, got)
		}
	}
}
