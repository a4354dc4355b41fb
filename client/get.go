package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// MaxArguments bounds the resolved arguments that Get recomputes for one run, in bytes: references can repeat a large
// result in many steps. Steps past it have no Arguments.
const MaxArguments = 64 << 20

// Get returns the full document of a run: of a finished one what the history holds, of an active one what its owner
// knows now. The resolved arguments of the steps that ran are computed from the plan and the results. Errors: NotFound,
// InvalidID, Permission, NotReady where the run is not over and no orchestrator answers.
func (c *Client) Get(ctx context.Context, run string) (*outcome.Run, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	doc, err := c.get(ctx, name, ownerWithin)
	if err != nil {
		return nil, err
	}
	addArguments(ctx, c.store.Archive, doc)
	return doc, nil
}

func (c *Client) get(ctx context.Context, name subjects.Run, within time.Duration) (*outcome.Run, error) {
	doc, active, err := c.latest(ctx, name)
	if active == 0 && fault.CodeOf(err) != fault.NotFound {
		return doc, err
	}
	doc, err = c.ask(ctx, name, within)
	if fault.CodeOf(err) != fault.NotFound {
		return doc, err
	}
	// It may have ended between the two.
	doc, active, err = c.latest(ctx, name)
	switch {
	case active > 0:
		return nil, fault.New(fault.NotReady, "the plan of run %q was stored a moment ago, and no orchestrator has read it yet", name.Plain()).
			WithHint("ask again in a moment; a plan of the same id before it was rejected")
	case fault.CodeOf(err) == fault.NotFound:
		return nil, notFound(name)
	}
	return doc, err
}

// ask gets an active run from its owner. A document too large for a message comes as a handle on a blob.
func (c *Client) ask(ctx context.Context, name subjects.Run, within time.Duration) (*outcome.Run, error) {
	body, err := c.ofOwner(ctx, name, 0, subjects.VerbGet, nil, within)
	if err != nil {
		return nil, err
	}
	doc, err := parseRun(body)
	if err != nil || doc.Blob == nil {
		return doc, err
	}
	if body, err = c.store.Archive.Blob(ctx, doc.Blob); err != nil {
		return nil, err
	}
	return parseRun(body)
}

// Blob reads a large value that a document names by its handle. Errors: NotFound where it is no longer kept.
func (c *Client) Blob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
	return c.store.Archive.Blob(ctx, h)
}

func parseRun(body []byte) (*outcome.Run, error) {
	var doc outcome.Run
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading the document of a run")
	}
	return &doc, nil
}

// addArguments computes what each step that ran was given. It is what the orchestrator computed: the arguments are a
// pure function of the plan and the recorded results.
func addArguments(ctx context.Context, archive *kv.Archive, doc *outcome.Run) {
	if len(doc.Plan) == 0 {
		return
	}
	p := plan.Accepted(doc.Plan, doc.Templates)
	if p == nil || len(p.Steps) != len(doc.Steps) {
		return
	}
	blob := func(h *outcome.Handle) ([]byte, error) { return archive.Blob(ctx, h) }
	a := argued{resolver: p.NewResolver().Fates(fates(doc)), results: newResults(p, doc, blob), left: MaxArguments}
	for i := range doc.Steps {
		s := &doc.Steps[i]
		if p.Steps[i].ForEach != nil {
			a.items(i, s.Items)
		} else {
			a.step(s, func() ([]byte, *fault.Error) { return a.resolver.Arguments(i, a.results.of) })
		}
	}
}

// argued computes arguments, as long as there is room for them.
type argued struct {
	resolver *plan.Resolver
	results  *results
	left     int
}

// fates tells how the steps of a document ended.
func fates(doc *outcome.Run) func(step int) plan.Fate {
	return func(step int) plan.Fate {
		s := &doc.Steps[step]
		return plan.Fate{Status: string(s.Status), Error: s.Error}
	}
}

func (a *argued) step(s *outcome.Step, compute func() ([]byte, *fault.Error)) {
	if s.Answer != nil && s.Answer.Arguments != nil { // a person gave it others
		s.Arguments = s.Answer.Arguments
	}
	if s.Attempts == 0 || s.Arguments != nil || a.left < 0 {
		return
	}
	args, err := compute()
	if err != nil || a.results.failed {
		a.results.failed = false
		return
	}
	if a.left -= len(args); a.left >= 0 {
		s.Arguments = args
	}
}

func (a *argued) items(step int, items []outcome.Step) {
	if len(items) == 0 {
		return
	}
	list, err := a.resolver.Items(step, a.results.of)
	if err != nil || a.results.failed || len(list) != len(items) {
		a.results.failed = false
		return
	}
	for i := range items {
		a.step(&items[i], func() ([]byte, *fault.Error) { return a.resolver.ItemArguments(step, list[i], a.results.of) })
	}
}

// results gives the results of a document's steps.
type results struct {
	doc    *outcome.Run
	blob   func(*outcome.Handle) ([]byte, error)
	kept   map[string][]byte // by step id: those of the outcome, and blobs that were read
	size   int64             // of the blobs
	failed bool              // one could not be read, so that what was computed with it is wrong
}

// of returns the result of one step: its own, the one that the outcome holds already, or the blob.
func (r *results) of(i int) ([]byte, bool) {
	s := &r.doc.Steps[i]
	if s.Status != outcome.StepSucceeded {
		return nil, false
	}
	if s.Result != nil {
		return s.Result, true
	}
	if v, ok := r.kept[s.ID]; ok {
		return v, true
	}
	v, err := r.fetch(s.Blob)
	if err == nil {
		if value, bad := plan.Output(v, s.Text); bad == nil {
			v = value
		}
	}
	if err != nil {
		r.failed = true
		return nil, false
	}
	r.kept[s.ID] = v
	return v, true
}

func newResults(p *plan.Plan, doc *outcome.Run, blob func(*outcome.Handle) ([]byte, error)) *results {
	r := &results{doc: doc, blob: blob, kept: map[string][]byte{}}
	if doc.Outcome == nil {
		return r
	}
	for _, v := range doc.Outcome.Results {
		r.kept[v.Step] = v.JSON
		if i, ok := p.Index(v.Step); ok && p.Steps[i].ForEach != nil {
			r.kept[v.Step] = entriesOf(v.JSON)
		}
	}
	return r
}

// entriesOf returns what references to a for_each step see of its envelope {"results": […], "summary": {…}}.
func entriesOf(envelope []byte) []byte {
	var in struct {
		Results json.RawMessage `json:"results"`
	}
	if json.Unmarshal(envelope, &in) != nil {
		return nil
	}
	return in.Results
}

func (r *results) fetch(h *outcome.Handle) ([]byte, error) {
	if h == nil {
		return nil, fault.New(fault.NotFound, "the result is not kept")
	}
	if r.size += h.Size; r.size > MaxArguments {
		return nil, fault.New(fault.TooLarge, "the results are over %d bytes", MaxArguments)
	}
	return r.blob(h)
}
