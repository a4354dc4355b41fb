package orchestrator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// takenOver returns what a run takes over of the one that it tries again, in the machine's form.
func takenOver(u *wire.Reuse, p *plan.Plan) map[int]*machine.Result {
	if u == nil {
		return nil
	}
	all := make(map[int]*machine.Result, len(u.Steps))
	for id, x := range u.Steps {
		if i, ok := p.Index(id); ok {
			all[i] = reusedResult(x, machine.Call{Step: i})
		}
	}
	return all
}

// takenOverWithin is takenOver for the steps of composites, by token.
func takenOverWithin(u *wire.Reuse) map[string]*machine.Result {
	var all map[string]*machine.Result
	if u == nil {
		return all
	}
	for token, x := range u.Steps {
		if strings.IndexByte(token, '/') < 0 {
			continue
		}
		if all == nil {
			all = map[string]*machine.Result{}
		}
		all[token] = reusedResult(x, machine.Call{Step: machine.NotYet})
	}
	return all
}

// tried is a finished run that a plan tries again.
type tried struct {
	doc     *outcome.Run
	again   map[int]bool    // steps to execute again though they succeeded
	done    map[string]bool // steps whose results are taken over
	problem *fault.Problem  // why it can't be tried again
}

// tries reads the run that a plan tries again; nil for a plan that can't be read, which is refused for that.
func (j *judge) tries(ctx context.Context, id subjects.Run, x identity) (*tried, error) {
	p, _ := plan.Parse(x.body, nil)
	if p == nil {
		return nil, nil
	}
	source := subjects.NewRun(id.Tenant, x.retryOf.Of)
	if !source.Valid() { // it becomes a part of subjects, of which the server takes no endless ones
		none := x.retryOf.NoRun()
		return &tried{problem: &none}, nil
	}
	doc, err := j.store.History(ctx, source)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return &tried{problem: &fault.Problem{
			Code: fault.NotFound, Message: fmt.Sprintf("there is no finished run %q to try again", text.Clip(x.retryOf.Of, 128)),
			Hint: "a run is kept for its retention once it is over; a run that goes on can't be tried again yet",
		}}, nil
	case err != nil:
		return nil, err
	case !bytes.Equal(doc.Plan, bytes.TrimSpace(x.body)): // the document keeps no white space around it
		return &tried{problem: &fault.Problem{
			Code: fault.Conflict, Message: fmt.Sprintf("the run %q was of another plan", text.Clip(x.retryOf.Of, 128)),
			Hint: "a run is tried again with the same bytes; submit a changed plan as a run of its own",
		}}, nil
	}
	if len(doc.Templates) > 0 {
		if p = plan.Accepted(x.body, doc.Templates); p == nil {
			return nil, nil
		}
	}
	again := unfinished(doc.Steps, p)
	if x.retryOf.From != "" {
		from, ok := p.Index(x.retryOf.From)
		if !ok {
			return &tried{problem: &fault.Problem{
				Code: fault.InvalidValue, Message: fmt.Sprintf("the plan has no step %q to begin from", text.Clip(x.retryOf.From, 80)),
				Hint: "name one of the plan's steps, or none to execute again only what did not succeed",
			}}, nil
		}
		descendants(p, from, again)
	}
	return &tried{doc: doc, again: again, done: done(doc, p, again)}, nil
}

// done returns the steps of a finished run whose results are taken over. Whether their blobs are still there is not
// looked into.
func done(doc *outcome.Run, p *plan.Plan, again map[int]bool) map[string]bool {
	done := map[string]bool{}
	for i := range doc.Steps {
		st := &doc.Steps[i]
		at, ok := p.Index(st.ID)
		if !ok || again[at] || p.Steps[at].Value || st.Status != outcome.StepSucceeded || st.FailedWithin() {
			continue
		}
		inOutcome := false
		if doc.Outcome != nil {
			_, inOutcome = doc.Outcome.Results.Get(st.ID)
		}
		done[st.ID] = st.Result != nil || st.Blob != nil || inOutcome
	}
	return done
}

// outgrown says that what is left of a run doesn't fit what its tools declare now.
func (t *tried) outgrown(run string, problems []fault.Problem) fault.Problem {
	var steps []string
	for _, p := range problems {
		if p.Step != "" && !slices.Contains(steps, p.Step) {
			steps = append(steps, p.Step)
		}
	}
	which := ""
	if more := len(steps) - maxOutgrown; more > 0 {
		steps = append(steps[:maxOutgrown], fmt.Sprintf("%d more", more))
	}
	if len(steps) > 0 {
		which = " (" + strings.Join(steps, ", ") + ")"
	}
	return fault.Problem{
		Code:    fault.Conflict,
		Message: fmt.Sprintf("the run %q can't be tried again by the definitions that its tools have now: they refuse what is left of it%s", text.Clip(run, 128), which),
		Hint:    "submit a plan that fits them as a run of its own, or try again once workers have the definitions of before",
	}
}

// maxOutgrown is the most steps that one message names.
const maxOutgrown = 12

// takeOver gathers the successes of a finished run.
func (j *judge) takeOver(ctx context.Context, id subjects.Run, generation uint64, p *plan.Plan, start *wire.Start, x identity, t *tried) (*wire.Reuse, error) {
	u := &wire.Reuse{Of: x.retryOf.Of, From: x.retryOf.From, Steps: map[string]wire.ReusedResult{}, Rounds: map[string]wire.ReusedResult{}}
	f := &filler{values: j.values, ctx: ctx, bucket: start.Bucket, blobName: func(unique string) string { return subjects.RunBlobName(id, generation, "reuse", unique) }}
	return u, (&takeover{j, u, t.doc, f, start.Tools}).steps(ctx, t.doc.Steps, p, t.again)
}

// descendants marks a step and all that depend on it.
func descendants(p *plan.Plan, from int, marked map[int]bool) {
	work := []int{from}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if !marked[i] {
			marked[i] = true
			work = append(work, p.Dependents(i)...)
		}
	}
}

// reusedInline bounds, in bytes, the results that a start record holds itself; each of the others gets a blob.
const reusedInline = 16 << 20

// filler takes results over into a start record: the first ones inline, each of the others in a blob. Blobs are copied,
// since the other run's may expire before this one is over.
type filler struct {
	values   *values
	ctx      context.Context
	bucket   string
	blobName func(string) string
	inline   int
}

func (f *filler) take(value []byte) (x wire.ReusedResult, err error) {
	x.Size = int64(len(value))
	if f.inline+len(value) > reusedInline || len(value) > wire.InlineLimit {
		x.Blob, err = f.values.put(f.ctx, f.bucket, f.blobName, value)
		return x, err
	}
	f.inline += len(value)
	x.Value = value
	return x, nil
}

// takeover puts into a start record what is taken over of a finished run.
type takeover struct {
	*judge
	u   *wire.Reuse
	doc *outcome.Run
	f   *filler

	tools map[string]*wire.FrozenTool // of the run that tries it again
}

// steps takes over the results of all successful steps of a plan but those to be executed again, and of those what they
// allow.
func (x *takeover) steps(ctx context.Context, steps []outcome.Step, p *plan.Plan, again map[int]bool) error {
	for i := range steps {
		st := &steps[i]
		at, ok := indexOf(p, st)
		if !ok || p.Steps[at].Value { // values are derived anew
			continue
		}
		if err := x.step(ctx, st, &p.Steps[at], again[at]); err != nil {
			return err
		}
	}
	return nil
}

// step takes one over, or where it is to be executed again what it allows.
func (x *takeover) step(ctx context.Context, st *outcome.Step, s *plan.Step, again bool) error {
	isList := s.ForEach != nil
	if isList && (again || st.Status != outcome.StepSucceeded || st.FailedWithin()) {
		if err := x.fillItems(x.f, x.u, x.doc, st, !again); err != nil || again {
			return err
		}
		return x.withinItems(ctx, st, s)
	}
	var value []byte
	var err error
	if !again && st.Status == outcome.StepSucceeded && !st.FailedWithin() {
		if value, err = x.pastResult(ctx, x.doc, st, isList); err != nil {
			return err
		}
	}
	keepKeys(x.u, x.doc, st)
	switch {
	case value == nil && again: // to be executed again
		return nil
	case value == nil: // likewise, also what is too large to be kept even then
		return x.within(ctx, st, s)
	case isList:
		if err := x.fillItems(x.f, x.u, x.doc, st, false); err != nil {
			return err
		}
	}
	x.u.Steps[st.ID], err = x.f.take(value)
	return err
}

// within takes over what was done in the plan of a composite that is entered again, with the same input: nothing that it
// is made of is executed again. An input that a person may edit may be another, and so may the plan of a template.
func (x *takeover) within(ctx context.Context, st *outcome.Step, s *plan.Step) error {
	if s.Repeat != nil {
		return x.iterations(ctx, st, s)
	}
	if s.Plan == nil || s.Approval != nil || st.Answer != nil {
		return nil
	}
	if s.Agent() != nil {
		_, err := x.rounds(ctx, st, s.Tool)
		return err
	}
	if t := s.Template; t != nil && (x.tools[s.Tool].Contract.Approval != "" || !bytes.Equal(t.Plan, x.doc.Templates[s.Tool])) {
		return nil
	}
	return x.steps(ctx, st.Steps, s.Plan, unfinished(st.Steps, s.Plan))
}

// iterations takes over those of a loop up to the first that is not whole, of which what it allows: each is made of what
// the one before came to. A loop that failed though all of them succeeded would come to the same end with them; it begins
// anew.
func (x *takeover) iterations(ctx context.Context, st *outcome.Step, s *plan.Step) error {
	if st.Status == outcome.StepFailed && !st.FailedWithin() {
		return nil
	}
	for i := range st.Steps {
		each := &st.Steps[i]
		if err := x.step(ctx, each, s.Does(), false); err != nil {
			return err
		}
		if _, done := x.u.Steps[each.ID]; !done {
			return nil
		}
	}
	return nil
}

// withinItems is within for the items of a list that are entered again.
func (x *takeover) withinItems(ctx context.Context, st *outcome.Step, s *plan.Step) error {
	list := x.u.ItemsOf(st.ID)
	for i := range st.Items {
		if list == nil {
			return nil
		}
		if _, done := list.Results[i]; done {
			continue
		}
		if err := x.within(ctx, &st.Items[i], s); err != nil {
			return err
		}
	}
	return nil
}

// indexOf returns the number of the step that an account is of, in the plan that it stands in.
func indexOf(p *plan.Plan, st *outcome.Step) (int, bool) {
	return p.Index(st.ID[strings.LastIndexByte(st.ID, '/')+1:])
}

// pastResult returns the JSON that references to a step of a finished run saw; nil where it isn't to be had any more.
func (j *judge) pastResult(ctx context.Context, doc *outcome.Run, st *outcome.Step, isList bool) ([]byte, error) {
	switch {
	case st.Result != nil:
		return st.Result, nil
	case st.Blob != nil:
		body, err := j.values.blob(ctx, st.Blob)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			return nil, nil
		}
		value, bad := plan.Output(body, st.Text)
		if bad != nil {
			return nil, nil // no success came of this
		}
		return value, nil
	case doc.Outcome == nil:
		return nil, nil
	}
	raw, ok := doc.Outcome.Results.Get(st.ID)
	if !ok || !isList {
		return raw, nil
	}
	var in struct {
		Results json.RawMessage `json:"results"`
	}
	if json.Unmarshal(raw, &in) != nil {
		return nil, nil
	}
	return in.Results, nil
}
