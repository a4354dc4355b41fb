package machine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// TestScenarios plays the files of testdata. Each command is one event; what follows it is what the machine asked for
// and where the steps stand. "go test ./machine -rewrite" writes the answers anew, for review as a diff.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &scenario{}
		datadriven.RunTest(t, path, s.command)
	})
}

type scenario struct {
	run     *machine.Run
	plan    *plan.Plan
	now     time.Time
	seq     uint64
	effects machine.Effects
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (s *scenario) command(t *testing.T, d *datadriven.TestData) string {
	s.effects.Reset()
	var name, code, value, wait string
	attempt, seq, item, count, holds := 1, 0, -1, 0, false
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "step":
			arg.Scan(t, 0, &name)
		case "attempt":
			arg.Scan(t, 0, &attempt)
		case "code":
			arg.Scan(t, 0, &code)
		case "by":
			arg.Scan(t, 0, &value)
		case "after":
			arg.Scan(t, 0, &wait)
		case "seq":
			arg.Scan(t, 0, &seq)
		case "item":
			arg.Scan(t, 0, &item)
		case "n":
			arg.Scan(t, 0, &count)
		case "holds":
			arg.Scan(t, 0, &holds)
		case "decision", "number", "stale", "reason", "scope", "revision", "approved", "approves", "own":
		}
	}
	if wait != "" {
		x, err := time.ParseDuration(wait)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		s.now = s.now.Add(x)
	}
	s.seq += 10
	rec := machine.Record{Seq: s.seq, Time: s.now}
	if seq > 0 {
		rec.Seq = uint64(seq)
	}
	switch d.Cmd {
	case "plan":
		return s.begin(t, d)
	case "ok":
		rec.Result = &machine.Result{Call: machine.Call{Step: s.index(t, d, name), Item: item + 1}, Attempt: attempt, Body: []byte(d.Input), Worker: "w"}
	case "asks":
		rec.Result = &machine.Result{Call: machine.Call{Step: s.index(t, d, name), Item: item + 1}, Attempt: attempt, Asks: &machine.Asks{Body: []byte(d.Input)}, Worker: "w"}
	case "own":
		rec.Result = &machine.Result{Call: machine.Call{Step: s.index(t, d, name), Item: item + 1}, Attempt: attempt, Body: []byte(d.Input), ByOwner: true}
	case "fail":
		rec.Result = &machine.Result{Call: machine.Call{Step: s.index(t, d, name), Item: item + 1}, Attempt: attempt, Error: fault.New(fault.Code(code), "it broke"), Worker: "w"}
	case "withdrawn":
		rec.Result = &machine.Result{Call: machine.Call{Step: s.index(t, d, name), Item: item + 1}, Attempt: attempt, Error: fault.New(fault.Code(code), "decided by the owner"), ByOwner: true}
		rec.Result.Error.Retryable = false
	case "blob":
		rec.Result = &machine.Result{Call: machine.Call{Step: s.index(t, d, name), Item: item + 1}, Attempt: attempt, Worker: "w", Handle: &outcome.Handle{Name: name, Size: 1 << 20, Checked: true}}
	case "told":
		rec.Told = &machine.Told{Call: s.call(t, d, name, item), Holds: holds}
		if code != "" {
			rec.Told.Error = fault.New(fault.Code(code), "it can't be read")
		}
	case "until":
		rec.Told = &machine.Told{Call: s.call(t, d, name, item), Until: true, Holds: holds}
	case "worth":
		value := &machine.Result{Value: []byte(strings.TrimSpace(d.Input)), Size: int64(len(strings.TrimSpace(d.Input)))}
		if code != "" {
			value = &machine.Result{Error: fault.New(fault.Code(code), "it can't be read")}
		}
		rec.Told = &machine.Told{Call: s.call(t, d, name, item), Value: value}
	case "fits":
		rec.Told = &machine.Told{Call: s.call(t, d, name, item), Fits: true}
		if code != "" {
			rec.Told.Error = fault.New(fault.Code(code), "it does not fit")
		}
	case "weighed":
		rec.Told = &machine.Told{Call: s.call(t, d, name, item), Approval: true, Holds: holds}
		if code != "" {
			rec.Told.Error = fault.New(fault.Code(code), "it can't be read")
		}
	case "answer":
		rec.Answer = s.answering(t, d, s.call(t, d, name, item))
		if code != "" {
			rec.Answer.Error = fault.New(fault.Code(code), "there is nothing to show")
		}
	case "shaped":
		of := rootCall
		if name != "" {
			of = s.call(t, d, name, item)
		}
		rec.Told = &machine.Told{Call: of, Output: &machine.Result{Body: []byte(d.Input), ByOwner: true}}
	case "amend":
		rec.Amendment = s.amending(t, d)
	case "round":
		rec.Round = roundOf(t, d)
	case "say":
		rec.Say = &machine.Say{Agent: name, ID: value, Content: []byte(`"a word"`), Interrupt: code == "interrupt"}
	case "said":
		var b strings.Builder
		for _, x := range machine.AllSaid(s.run, s.call(t, d, name, item)) {
			fmt.Fprintf(&b, "%s: round %d\n", x.ID, x.Round)
		}
		return fmt.Sprintf("%shears: %v\n", b.String(), machine.Hears(s.run, s.call(t, d, name, item)))
	case "cancel":
		rec.Stop = &machine.Stop{Reason: outcome.Cancelled, By: value}
	case "expire":
		rec.Stop = &machine.Stop{Reason: outcome.Expired, By: "deadline"}
	case "enter":
		s.run.Enter(s.call(t, d, name, item), s.now, &s.effects)
		return s.answer()
	case "expand":
		if d.Input != "" {
			s.run.Elements(s.index(t, d, name), elementsOf(t, d))
		}
		s.run.Expand(s.index(t, d, name), count, s.now, &s.effects)
		return s.answer()
	case "tick":
		s.run.Tick(s.now, &s.effects)
		return s.answer()
	case "outstanding":
		s.run.Outstanding(s.now, &s.effects)
		return s.answer()
	case "waiting":
		var b strings.Builder
		for i := range s.plan.Steps {
			fmt.Fprintf(&b, "%s: %s\n", s.plan.Steps[i].ID, s.run.Step(machine.Call{Step: i}, s.now).Waiting)
			n, _ := s.run.Items(i)
			for item := range n {
				x := s.run.Step(machine.Call{Step: i, Item: item + 1}, s.now)
				fmt.Fprintf(&b, "  %s: %s %s\n", x.ID, x.Status, x.Waiting)
			}
		}
		return b.String()
	case "why":
		c, _ := s.run.Find(d.CmdArgs[0].Vals[0])
		x := s.run.Step(c, s.now)
		if x.Error != nil {
			return fmt.Sprintf("%s: %s: %s\n", x.Status, x.Error.Message, x.Error.Hint)
		}
		return fmt.Sprintf("%s: waits for %s\n", x.Status, x.Waiting)
	case "outcome":
		return strings.ReplaceAll(string(s.run.Outcome("r", s.run.Value).JSON()), `,"`, ",\n \"") + "\n"
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	proposed := s.proposed()
	s.run.Apply(rec, s.now, &s.effects)
	if a := rec.Amendment; a != nil {
		return verdict(s.run, a) + s.answer()
	}
	if proposed != nil && !proposed.Waits() {
		return verdict(s.run, proposed) + s.answer()
	}
	return s.answer()
}

// amending is the record of an amendment: the next of its scope, unless another revision is named. Its input is what is
// changed.
func (s *scenario) amending(t *testing.T, d *datadriven.TestData) *machine.Amendment {
	a := &machine.Amendment{Scope: subjects.RootScope, Contracts: map[string]*tool.Contract{"fresh": {MaxAttempts: 1}}}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "scope":
			arg.Scan(t, 0, &a.Scope)
		case "approved":
			a.Approved = true
		case "own":
			a.ByOwner = true
		case "approves": // what is asked about the plan, or something else
			a.Approved, a.Approves = true, "of something else"
			if q := s.run.Question(machine.Call{Step: machine.ThePlan}); q != nil && len(arg.Vals) == 0 {
				a.Approves = q.Digest
			}
		}
	}
	now, _ := machine.Revision(s.run, a.Scope)
	a.Revision = now + 1
	for _, arg := range d.CmdArgs {
		if arg.Key == "revision" {
			arg.Scan(t, 0, &a.Revision)
		}
		if arg.Key == "drops" {
			a.Drops = true
		}
	}
	var change struct {
		Add         []json.RawMessage
		Discard     []string
		Rest, Close bool
		Output      json.RawMessage
		OutputSteps []string `json:"output_steps"`

		Settled map[string]json.RawMessage
		Locked  []string
		After   map[string][]string
		Earlier map[string][]string
		Reaches map[string][]string
		Direct  []string
	}
	if err := json.Unmarshal([]byte(d.Input), &change); err != nil {
		d.Fatalf(t, "%v", err)
	}
	a.Add, a.Discard, a.Rest, a.Close = change.Add, change.Discard, change.Rest, change.Close
	a.Output, a.OutputSteps = change.Output, change.OutputSteps
	if subjects.IsIteration(a.Scope) { // of a round
		a.Admitted = admitted(change.Settled, change.Locked, change.Earlier, change.Reaches)
		a.Admitted.After, a.Admitted.Direct = change.After, change.Direct
	}
	return a
}

// proposed returns the amendment that a person is asked about; nil for none.
func (s *scenario) proposed() (a *machine.Amendment) {
	for _, x := range s.run.Amendments() {
		if x.Waits() {
			a = x
		}
	}
	return a
}

// verdict says what became of an amendment.
func verdict(r *machine.Run, a *machine.Amendment) string {
	switch {
	case r.Amendment(a.Scope, a.Revision) != a:
		return "void\n"
	case a.Stale() != nil:
		return fmt.Sprintf("stale: %s\n", a.Stale())
	case a.Waits():
		return fmt.Sprintf("revision %d waits\n", a.Revision)
	}
	return fmt.Sprintf("revision %d: %d steps\n", a.Revision, a.Steps())
}

// call returns the call of a step or an item, and the plan as a whole for "plan".
func (s *scenario) call(t *testing.T, d *datadriven.TestData, name string, item int) machine.Call {
	if name == "plan" {
		return machine.Call{Step: machine.ThePlan}
	}
	return machine.Call{Step: s.index(t, d, name), Item: item + 1}
}

// answering is the record of an answer: to what is asked, unless it is said to be stale. Its input is a value, or with a
// decision the arguments.
func (s *scenario) answering(t *testing.T, d *datadriven.TestData, c machine.Call) *machine.Answer {
	a := &machine.Answer{Call: c, Number: 1, Digest: "of something else", By: "ann"}
	if q := s.run.Question(c); q != nil {
		a.Number, a.Digest = q.Number, q.Digest
	}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "decision":
			arg.Scan(t, 0, &a.Decision)
		case "number":
			arg.Scan(t, 0, &a.Number)
		case "stale":
			a.Digest = "of something else"
		case "reason":
			arg.Scan(t, 0, &a.Reason)
		}
	}
	switch {
	case d.Input == "":
	case a.Decision == "":
		a.Value = []byte(d.Input)
	default:
		a.Arguments = []byte(d.Input)
	}
	return a
}

func (s *scenario) index(t *testing.T, d *datadriven.TestData, id string) int {
	c, ok := s.run.Find(id)
	if !ok {
		d.Fatalf(t, "no step %s", id)
	}
	return c.Step
}

// elementsOf reads the list of a composite's for_each.
func elementsOf(t *testing.T, d *datadriven.TestData) (list [][]byte) {
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(d.Input), &all); err != nil {
		d.Fatalf(t, "%v", err)
	}
	for _, x := range all {
		list = append(list, x)
	}
	return list
}

func (s *scenario) begin(t *testing.T, d *datadriven.TestData) string {
	p, report := plan.ParseLimited([]byte(d.Input), nil, plan.Limits{Templates: agents})
	if p == nil {
		d.Fatalf(t, "%v", report.Problems)
	}
	*s = scenario{plan: p, now: epoch}
	contracts := map[string]*tool.Contract{}
	for st := range p.All() {
		attempts := 1
		if st.Tool == "flaky" || st.Tool == "flakyasker" {
			attempts = 3
		}
		contracts[st.Tool] = &tool.Contract{Approval: approvals[st.Tool], ErrorPropagation: propagation[st.Tool], WaitTimeout: waits[st.Tool], Asks: strings.HasSuffix(st.Tool, "asker"), MaxAttempts: attempts, Backoff: tool.Backoff{Strategy: "constant", Initial: time.Second, Max: time.Second}}
	}
	s.run = machine.New(p, machine.Start{Key: "t/r/1", Submitted: epoch, Started: epoch, Contracts: contracts, AgentEnds: true})
	s.run.Begin(&s.effects)
	return s.answer()
}

// What tools of a name promise, where it isn't the default.
var (
	propagation = map[string]tool.Propagation{"partial": tool.PartialSuccess, "fast": tool.FailFast, "fastasker": tool.FailFast}
	approvals   = map[string]tool.Approval{"guarded": tool.AlwaysApprove, "guardedasker": tool.AlwaysApprove, "weighed": "$args.amount > 100"}
	waits       = map[string]time.Duration{"impatient": 5 * time.Second, "impatientasker": 5 * time.Second}
)

func (s *scenario) answer() string {
	var b strings.Builder
	id := func(i int) string {
		if i == machine.ThePlan {
			return subjects.RootScope
		}
		return s.run.Token(machine.Call{Step: i})
	}
	token := func(c machine.Call) string {
		if c.Step == machine.ThePlan {
			return subjects.RootScope
		}
		return s.run.Token(c)
	}
	for _, i := range s.effects.Expand {
		fmt.Fprintf(&b, "expand %s\n", id(i))
	}
	for _, i := range s.effects.Judge {
		fmt.Fprintf(&b, "judge %s\n", id(i))
	}
	for _, d := range s.effects.Derive {
		fmt.Fprintf(&b, "derive %s\n", id(d.Step))
	}
	for _, i := range s.effects.Fit {
		fmt.Fprintf(&b, "hold %s against the state\n", id(i))
	}
	for _, c := range s.effects.Round {
		fmt.Fprintf(&b, "decide the round of %s\n", token(c))
	}
	for _, c := range s.effects.Weigh {
		fmt.Fprintf(&b, "weigh %s\n", token(c))
	}
	for _, c := range s.effects.Ask {
		q := s.run.Question(c)
		fmt.Fprintf(&b, "ask %s number %d: %s", token(c), q.Number, q.Kind)
		if !q.Until.IsZero() {
			fmt.Fprintf(&b, " until +%s, then %s", q.Until.Sub(epoch), machine.Unanswered(s.run, q))
		}
		b.WriteByte('\n')
	}
	for _, q := range s.effects.Expire {
		fmt.Fprintf(&b, "expire %s number %d\n", token(q.Call), q.Number)
	}
	for _, c := range s.effects.Enter {
		fmt.Fprintf(&b, "enter %s\n", token(c))
	}
	for _, c := range s.effects.Shape {
		if b.WriteString("shape"); c != rootCall {
			b.WriteString(" " + token(c))
		}
		b.WriteByte('\n')
	}
	for _, c := range s.effects.Until {
		fmt.Fprintf(&b, "until %s\n", token(c))
	}
	for _, c := range s.effects.Close {
		fmt.Fprintf(&b, "close %s revision %d", c.Scope, c.Revision)
		if c.Fixed {
			b.WriteString(" as its owner")
		}
		b.WriteByte('\n')
	}
	for _, x := range s.effects.Late {
		fmt.Fprintf(&b, "late %s attempt %d: %s\n", token(x.Call), x.Attempt, s.run.LateError(x.Call))
	}
	for _, x := range s.effects.Dispatch {
		fmt.Fprintf(&b, "dispatch %s attempt %d", token(x.Call), x.Attempt)
		if name := s.run.PlanStep(x.Call.Step).Tool; strings.HasPrefix(name, "as-") { // a planner's name for a tool
			fmt.Fprintf(&b, " to nobody: %s", name)
		}
		if q, a := s.run.Inquiry(x.Call); q != nil {
			fmt.Fprintf(&b, " with %s to attempt %d", a.Value, q.Attempt)
		}
		if !x.At.IsZero() {
			fmt.Fprintf(&b, " at +%s", x.At.Sub(epoch))
		}
		b.WriteByte('\n')
	}
	for _, x := range s.effects.Decide {
		fmt.Fprintf(&b, "decide %s attempt %d: %s\n", token(x.Call), x.Attempt, x.Error)
	}
	if s.effects.Stop != nil {
		fmt.Fprintf(&b, "stop: %s by %s\n", s.effects.Stop.Reason, s.effects.Stop.By)
	}
	var states []string
	for i := range s.plan.Steps {
		states = append(states, id(i)+"="+string(s.run.StepStatus(i)))
	}
	for c := range s.run.All() { // of scopes below
		if c.Step >= len(s.plan.Steps) && c.Item == 0 {
			states = append(states, token(c)+"="+string(s.run.StepStatus(c.Step)))
		}
	}
	fmt.Fprintf(&b, "%s | %s\n", s.run.Status(), strings.Join(states, " "))
	if s.effects.Finished {
		b.WriteString("finished\n")
	}
	return b.String()
}
