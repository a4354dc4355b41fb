package machine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// Values gives the JSON of a successful step's result; the shell reads it from a blob where the machine holds a handle.
type Values func(step int) []byte

// Value returns what references to a successful step see, as far as the machine itself holds it: nil where it, or an
// item's, lies in a blob or was let go of. That of a for_each step is put together once: all who refer to it share it.
func (r *Run) Value(step int) []byte {
	res := r.Result(Call{Step: step})
	n, isList := r.Items(step)
	switch {
	case res == nil:
		return nil
	case !isList && res.Parts != nil:
		return together(r, step, res.Parts)
	case !isList:
		return res.Value
	}
	if r.entries[step] == nil {
		if r.entries == nil {
			r.entries = map[int][]byte{}
		}
		r.entries[step] = entriesOf(n, func(i int) *Result { return r.Decided(Call{step, i + 1}) })
	}
	return r.entries[step]
}

// together puts together what a step has that stands for an earlier round; nil where something of it lies in a blob.
func together(r *Run, step int, parts []Part) []byte {
	if r.entries[step] != nil {
		return r.entries[step]
	}
	value := []byte{'{'}
	for n, p := range parts {
		one := r.Value(p.Step)
		if one == nil {
			return nil
		}
		if n > 0 {
			value = append(value, ',')
		}
		value = append(append(append(append(value, '"'), p.ID...), '"', ':'), one...)
	}
	value = append(value, '}')
	if r.entries == nil {
		r.entries = map[int][]byte{}
	}
	r.entries[step] = value
	return value
}

// entriesOf puts together what references to a for_each step see.
func entriesOf(n int, item func(i int) *Result) []byte {
	entries := make([]plan.Item, n)
	for i := range entries {
		x := item(i)
		if x.Handle != nil || x.Away {
			return nil
		}
		entries[i] = plan.Item{Data: x.Value, Error: x.Error}
	}
	value, _ := plan.Entries(entries)
	return value
}

// Status returns what the run came to, or Running.
func (r *Run) Status() outcome.RunStatus {
	if !r.finished {
		return outcome.Running
	}
	if r.stop != nil {
		return r.stop.Reason
	}
	if x := r.root.output; x != nil && x.Error != nil {
		return outcome.Failed
	}
	if !r.root.standing(r).bad() {
		return outcome.Succeeded
	}
	for _, o := range r.root.plan.Outputs {
		if r.calls[r.root.at(o)].state == succeeded {
			return outcome.Partial
		}
	}
	return outcome.Failed
}

// Outcome returns the compact outcome: the results asked for, every step that did not succeed, and the figures. run is
// the run's id as its submitter wrote it. A plan that has an output comes to that in place of results; one that lies in
// a blob is for the shell to add.
func (r *Run) Outcome(run string, value Values) *outcome.Outcome {
	o := &outcome.Outcome{Run: run, Status: r.Status(), Stats: r.Stats()}
	steps := r.root.plan.Steps
	outputs := r.root.plan.Outputs
	if x := r.root.output; x != nil {
		o.Output, outputs = x.Value, nil
	}
	for _, n := range outputs {
		switch i := r.root.at(n); r.calls[i].state {
		case succeeded:
			o.Results = append(o.Results, outcome.Result{Step: steps[n].ID, JSON: value(i)})
		case notTaken:
			o.Results = append(o.Results, outcome.Result{Step: steps[n].ID, JSON: []byte("null")})
		default: // its error says why there is none
		}
	}
	r.root.account(r, o)
	if x := r.root.output; x != nil && x.Error != nil {
		o.Errors = append(o.Errors, outcome.StepError{
			Step: subjects.RootScope, Code: x.Error.Code, Message: x.Error.Message, Hint: x.Error.Hint,
		})
	}
	return o
}

// account adds the steps of a scope that were not taken, or did not succeed: each before those that it is made of.
func (sc *scope) account(r *Run, o *outcome.Outcome) {
	for n := range sc.plan.Steps {
		i := sc.at(n)
		c := r.calls[i].Call
		if r.calls[i].state == notTaken && !summary(r, r.calls[i].Call) && sc.asksFor == nil { // of those most rounds have one
			o.NotTaken = append(o.NotTaken, r.Token(c))
		}
		if err := r.stepError(i); err != nil && sc.iteration == 0 && !r.calls[i].discarded.unbegun() { // of an iteration its loop has it
			e := outcome.StepError{
				Step: r.Token(c), Code: err.Code, ToolCode: err.ToolCode, Message: err.Message, Hint: err.Hint, Attempts: r.executed(i),
			}
			if by := sc.standing(r).handler(n); by != "" {
				e.HandledBy = subjects.InScope(sc.token, by)
			} else {
				e.HandledBy = sc.toldTo(r)
			}
			o.Errors = append(o.Errors, e)
		}
		if sc.plan.Steps[n].Plan == nil {
			continue
		}
		count, _ := r.Items(i)
		for c.Item = 0; c.Item <= count; c.Item++ {
			for inner := range r.within(c) {
				inner.account(r, o)
			}
		}
	}
}

// toldTo returns the token of the innermost agent above a scope that has succeeded: what failed in its rounds was told to its
// planner. Empty where there is none.
func (sc *scope) toldTo(r *Run) string {
	for ; sc.outer != nil; sc = sc.outer {
		if sc.round > 0 && r.Result(sc.of) != nil {
			return r.Token(sc.of)
		}
	}
	return ""
}

// Stats counts steps and bytes so far: those of the plan, and of all scopes that were entered.
func (r *Run) Stats() outcome.Stats {
	st := outcome.Stats{Steps: int(r.steps)}
	output := make([]bool, r.root.at(len(r.root.plan.Steps)-1)+1)
	for _, n := range r.root.plan.Outputs {
		output[r.root.at(n)] = true
	}
	for i := range r.calls {
		switch s := &r.calls[i]; {
		case s.state == absent:
		case s.Item > 0:
			st.Items++
			if s.state.terminal() && s.state != succeeded {
				st.ItemsFailed++
			}
		default:
			r.count(&st, i, i < len(output) && output[i])
		}
	}
	if r.root.plan.Output != nil {
		all := st.BytesReturned + st.BytesKeptOut
		st.BytesReturned = 0
		if x := r.root.output; x != nil {
			st.BytesReturned = x.Size
		}
		st.BytesKeptOut = max(all-st.BytesReturned, 0)
	}
	st.TokensKeptOut = st.BytesKeptOut / 4
	st.ElapsedMS = float64(r.lastTime.Sub(r.start.Submitted).Microseconds()) / 1000
	return st
}

// count counts a step. What a composite came to is made of what its steps did, so that it counts only where it goes back.
func (r *Run) count(st *outcome.Stats, i int, isOutput bool) {
	switch s := &r.calls[i]; s.state {
	case succeeded:
		st.Succeeded++
		if isOutput {
			st.BytesReturned += s.result.Size
		} else if r.stepOf(i).Plan == nil {
			st.BytesKeptOut += s.result.Size
		}
	case failed:
		st.Failed++
	case skipped:
		st.Skipped++
	case cancelled:
		st.Cancelled++
	case notTaken:
		st.NotTaken++
	default: // it is not over
	}
}

// executed counts the executions of a call, those of its items and iterations included.
func (r *Run) executed(i int) int {
	s := &r.calls[i]
	n := int(s.executed)
	if s.items != nil {
		for c := s.first; c < s.first+s.count; c++ {
			n += r.executed(c)
		}
	}
	if r.stepOf(i).Repeat != nil {
		for sc := range r.within(s.Call) {
			n += int(r.calls[sc.first].executed)
		}
	}
	return n
}

// stepError says why a call did not succeed; nil while it may, and for a success.
func (r *Run) stepError(i int) *fault.Error {
	switch s := &r.calls[i]; s.state {
	case failed:
		return s.result.Error
	case cancelled:
		if s.Item > 0 && !r.scopeOf(i).stopping {
			return r.itemCancelledError(i)
		}
		return r.cancelledError(i)
	case skipped:
		sc := r.scopeOf(i)
		spoiler := sc.standing(r).spoiler(sc.numberOf(i))
		if r.calls[sc.at(spoiler)].discarded > discardedOver {
			return fault.New(fault.Skipped, "Skipped because dependency '%s' was discarded", sc.plan.Steps[spoiler].ID)
		}
		return fault.New(fault.Skipped, "Skipped because dependency '%s' failed", sc.plan.Steps[spoiler].ID)
	default: // it did not fail
	}
	return nil
}

var statusNames = [...]outcome.StepStatus{
	waiting: outcome.StepWaiting, held: outcome.StepWaiting, judging: outcome.StepWaiting, deriving: outcome.StepWaiting,
	weighing: outcome.StepWaiting, asking: outcome.StepAsking, expanding: outcome.StepReady, spread: outcome.StepRunning,
	entered: outcome.StepRunning, closing: outcome.StepRunning, fitting: outcome.StepRunning, guarded: outcome.StepWaiting, ready: outcome.StepReady,
	retrying: outcome.StepRetrying, succeeded: outcome.StepSucceeded, failed: outcome.StepFailed, skipped: outcome.StepSkipped,
	cancelled: outcome.StepCancelled, notTaken: outcome.StepNotTaken,
}

// StepStatus returns where a step stands.
func (r *Run) StepStatus(i int) outcome.StepStatus { return statusNames[r.calls[i].state] }

// Step returns the full account of a call, without arguments and result. What a step that is out waits for is for the
// shell to say.
func (r *Run) Step(c Call, now time.Time) outcome.Step {
	i, ok := r.index(c)
	if !ok {
		return outcome.Step{}
	}
	s, p := &r.calls[i], r.stepOf(i)
	st := outcome.Step{
		ID: r.Token(c), Tool: p.Tool, Status: r.StepStatus(i), Attempts: int(s.executed), Ready: s.ready.time(), Decided: s.decided.time(),
		Error: r.stepError(i), Reused: s.reused, Answer: cmp.Or(r.AccountOf(c), accountOfRound(&r.tree, i)), Answers: r.Inquiries(c), Discarded: s.discarded != notDiscarded,
	}
	if c.Item == 0 || p.Repeat != nil {
		st.Attempts = r.executed(i)
	}
	if !s.state.terminal() {
		st.Waiting = r.waitingFor(i, now)
	}
	if res := s.result; res != nil {
		if !res.ByOwner { // no worker decided it: an orchestrator is none
			st.Worker = res.Worker
		}
		st.Started, st.Ended = res.Started, res.Ended
		if s.state == succeeded {
			st.Bytes = res.Size
		}
		if s.state == retrying {
			st.Error = res.Error
		}
	}
	return st
}

// waitingFor says what a call that is not over waits for, as far as the machine knows: "" for a worker.
func (r *Run) waitingFor(i int, now time.Time) string {
	s := &r.calls[i]
	switch s.state {
	case retrying:
		if at := s.at.time(); at.After(now) {
			return fmt.Sprintf("backoff until %s, then attempt %d", at.Format("15:04:05.000"), s.attempt)
		}
	case expanding:
		if r.isComposite(i) {
			return "its input to be read"
		}
		return "its list to be read"
	case held:
		return fmt.Sprintf("room: %d calls are out (concurrency)", r.scopeOf(i).bounded().taken)
	case ready:
		if at := s.at.time(); at.After(now) {
			return "its time, " + at.Format("15:04:05.000")
		}
	case entered:
		sc := r.inside(s.Call)
		if repeat := r.stepOf(i).Repeat; repeat != nil {
			return fmt.Sprintf("iteration %d of at most %d", sc.iteration, repeat.Max)
		}
		return sc.waitsFor()
	case closing:
		sc := r.inside(s.Call)
		switch {
		case sc.shaping:
			return "its output to be made"
		case sc.round > 0 && r.proposed[s.Call] != nil && r.proposed[s.Call].open:
			return fmt.Sprintf("%s of round %d", r.waitsForPerson(s.Call), sc.round-1)
		}
		return "whether it goes on"
	case guarded:
		return "what a guard says"
	case fitting:
		return "whether its result fits the state"
	case judging:
		return "its condition to be read"
	case deriving:
		return "its value to be built"
	case weighing:
		return "whether it needs an approval"
	case asking:
		return r.waitsForPerson(s.Call)
	case spread:
		return fmt.Sprintf("%d of %d items", s.left, s.count)
	case waiting:
		if s.Item > 0 {
			return ""
		}
		if r.Question(Call{Step: ThePlan}) != nil {
			return r.waitsForPerson(Call{Step: ThePlan}) + " of the plan"
		}
		if open := r.openDeps(i); open != "" {
			return open
		}
		if sc := r.scopeOf(i); sc.round > 0 && s.Step == sc.first {
			return "what guards say of the agent's input"
		}
		return fmt.Sprintf("wave %d", r.stepOf(i).Depth)
	default: // nothing: it is at work, or over
	}
	return ""
}

// waitsFor says what a scope waits for.
func (sc *scope) waitsFor() string {
	if isBegun(sc) && sc.remaining == 0 {
		return "what its planner writes"
	}
	if sc.remaining == 0 && sc.plan.Open {
		return "an amendment, until " + sc.amended.until.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%d of %d steps", sc.remaining, len(sc.plan.Steps))
}

func (r *Run) openDeps(i int) string {
	const most = 5
	var names []string
	more, sc := 0, r.scopeOf(i)
	for _, d := range r.stepOf(i).Deps {
		switch {
		case r.calls[sc.at(d)].state.terminal():
		case len(names) < most:
			names = append(names, sc.plan.Steps[d].ID)
		default:
			more++
		}
	}
	s := strings.Join(names, ", ")
	if more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// StopOf returns the stop that ends a run early; nil for none, and for one that came behind its last record.
func StopOf(r *Run) *Stop { return r.stop }

// StoppedBy says who stopped the run early, or "".
func (r *Run) StoppedBy() string {
	if r.stop == nil {
		return ""
	}
	return r.stop.By
}

// Started returns the ledger's time of the start record.
func (r *Run) Started() time.Time { return r.start.Started }

// LastTime returns the ledger's time of the last record that counted.
func (r *Run) LastTime() time.Time { return r.lastTime }
