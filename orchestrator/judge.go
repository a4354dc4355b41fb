package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// opened is what a job found out about a run.
type opened struct {
	before  *outcome.Run // a run of this id has finished already
	newer   bool         // it was finished by a newer Stepjet
	start   *wire.Start  // read from a start record that lay in a blob
	plan    *plan.Plan
	schemas schemas
	agents  *agentsOf // nil for a run without agents
	gone    bool      // the plan doesn't stand any more
	wait    bool      // the registry lost its tools: nobody can say yet whether the plan is valid
	err     error
}

// judge finds out, in jobs, what a plan or a start record stands for: whether the plan is valid, what is frozen for it,
// and what it takes over from an earlier run.
type judge struct {
	*env
	reg    *registry
	values *values
}

// resume prepares a run that was started before. Its plan was accepted then, so only its form is read, in the language
// of then.
func (j *judge) resume(ctx context.Context, body []byte, e *entry) opened {
	start, err := j.decodeStart(ctx, e)
	if err != nil || start.Rejected() || !j.cfg.Store.Knows.All(start.Needs) {
		return opened{start: start, err: err} // of a run that is left alone the plan may be nothing that can be read
	}
	templates, err := j.reg.templates(ctx, start)
	if err != nil {
		return opened{err: err}
	}
	p, report := plan.ParseLimited(body, nil, plan.Limits{
		Templates: templates, Language1: !slices.Contains(start.Needs, plan.Language2), Unheld: !slices.Contains(start.Needs, plan.StateSchema),
	})
	if p == nil {
		return opened{err: fault.New(fault.Internal, "an accepted plan can't be read: %v", report.Problems)}
	}
	a, err := j.agents(ctx, start)
	if err != nil {
		return opened{err: err}
	}
	s, err := j.reg.schemasFor(ctx, p, start, a)
	return opened{start: start, plan: p, schemas: s, agents: a, err: err}
}

// agents returns what an owner has of the agents of a run; nil for a run without.
func (j *judge) agents(ctx context.Context, start *wire.Start) (*agentsOf, error) {
	if !slices.Contains(start.Needs, wire.Agents) {
		return nil, nil
	}
	set, err := j.reg.agents(ctx, start)
	if err != nil {
		return nil, err
	}
	return &agentsOf{agentSet: set}, nil
}

func (j *judge) decodeStart(ctx context.Context, e *entry) (*wire.Start, error) {
	s, blob, err := j.reg.starts.Parse(e.Header, e.Data)
	if blob == nil {
		return s, err
	}
	body, err := j.values.blob(ctx, blob)
	if err != nil {
		return nil, err
	}
	s, _, err = wire.ParseStart(nil, body)
	return s, err
}

// inspect meets a plan that has no start yet.
func (j *judge) inspect(ctx context.Context, id subjects.Run, generation uint64, asked identity, isNew bool) opened {
	var rejected *outcome.Run
	if !isNew {
		doc, err := j.store.History(ctx, id)
		switch {
		case err == nil && free(doc, generation):
			rejected = doc
		case err == nil:
			return opened{before: doc}
		case fault.CodeOf(err) == fault.NewerVersion:
			return opened{newer: true}
		case !errors.Is(err, &fault.Error{Code: fault.NotFound}):
			return opened{err: err}
		}
	}
	p, start, s, err := j.verdict(ctx, id, generation, asked, rejected)
	switch {
	case err != nil:
		return opened{err: err}
	case start == nil:
		return opened{wait: true}
	}
	// What a run needs is recorded before it is started: whoever takes it over has to know. If this process dies in
	// between, it is recorded for no run, which keeps nobody from anything who knows it.
	if err := j.store.RecordNeeds(ctx, start.Needs); err != nil {
		return opened{err: err}
	}
	h, data, err := j.encodeStart(ctx, id, generation, start)
	if err != nil {
		return opened{err: err}
	}
	subject := subjects.StartRecord(id, generation, j.store.Shards())
	// The fence and the record are one write: an owner that slept through the end of the run can't start it again.
	fence := &kv.Fence{Subject: subjects.PlanRecord(id, j.store.Shards()), Seq: generation}
	decision, _, err := j.store.Create(ctx, subject, h, data, fence)
	if err != nil || decision != kv.Written {
		start = nil // the stored one counts
	}
	o := opened{plan: p, schemas: s, start: start, gone: err == nil && decision == kv.Gone, err: err}
	if err == nil && start != nil && !start.Rejected() {
		o.agents, o.err = j.agents(ctx, start)
	}
	return o
}

// admit validates a plan against the registry as it is now and freezes what the run needs of it. There is no start
// where the registry has lost tools that the plan names.
func (j *judge) admit(ctx context.Context, id subjects.Run, asked identity, again *tried) (*plan.Plan, *wire.Start, schemas, error) {
	if problem := badName(id); problem != nil {
		return nil, &wire.Start{Problems: []fault.Problem{*problem}}, nil, nil
	}
	kept, err := j.reg.permit(ctx, asked.permissions)
	if err != nil {
		return nil, nil, nil, err
	}
	permits, err := permitted(kept)
	if err != nil {
		return nil, nil, nil, err
	}
	catalog := j.reg.catalog(id.Tenant)
	catalog.permits = permits
	var limits plan.Limits
	if again != nil {
		limits.Done = again.done
	}
	var p *plan.Plan
	var report plan.Report
	err = catalog.read(ctx, func() bool {
		p, report = plan.ParseLimited(asked.body, catalog, limits)
		return p != nil
	})
	if err != nil {
		return nil, nil, nil, err
	}
	start := &wire.Start{Problems: report.Problems, Warnings: report.Warnings}
	if p == nil && unknownTools(report.Problems) && j.reg.lost(ctx, catalog.missing()) {
		return nil, nil, nil, nil
	}
	if p == nil {
		if again != nil && again.problem == nil {
			start.Problems = append([]fault.Problem{again.outgrown(asked.retryOf.Of, report.Problems)}, start.Problems...)
		}
		return nil, start, nil, nil
	}
	var s schemas
	start.Tools, s = catalog.freeze(p)
	roles := catalog.roles.Frozen()
	start.Groups, start.Search = roles.Roles, roles.Search
	needs := slices.Concat(p.Needs(), needsOf(start.Tools), catalog.needsOfAgents(start.Tools), j.cfg.Store.Knows.Of(asked.body))
	if start.Permits = kept; kept != nil {
		needs = append(needs, wire.Permissions)
		if wire.NamesGroups(kept.Permissions) {
			needs = append(needs, wire.OnlyGroups)
		}
	}
	start.Needs = slices.Compact(slices.Sorted(slices.Values(needs)))
	return p, start, s, nil
}

// needsOf returns what has to be known to follow the contracts of a run's tools.
func needsOf(tools map[string]*wire.FrozenTool) (needs []string) {
	for _, t := range tools {
		if t.Contract.Approval != "" {
			needs = append(needs, plan.Language2)
			break
		}
	}
	return append(needs, workersNeeds(tools)...)
}

// workersNeeds returns what has to be known of what the workers of some tools do: that they rely on notes, and that they
// ask people.
func workersNeeds(tools map[string]*wire.FrozenTool) (needs []string) {
	note, asks := false, false
	for _, t := range tools {
		note, asks = note || t.Contract.Note, asks || t.Contract.Asks
	}
	if note {
		needs = append(needs, wire.Notes)
	}
	if asks {
		needs = append(needs, wire.Asking)
	}
	return needs
}

// badName finds a tenant or run id that no client of ours would have made.
func badName(id subjects.Run) *fault.Problem {
	if id.Valid() {
		return nil
	}
	p := &fault.Problem{Code: fault.InvalidID, Path: "", Message: "the run id token " + strconv.Quote(id.ID) + " in the subject is not canonical"}
	p.Hint = "write [A-Za-z0-9_-] as they are and every other byte as =XX in upper-case hex; 1 to 128 bytes"
	if !subjects.ValidTenant(id.Tenant) {
		p.Message = "the tenant " + strconv.Quote(id.Tenant) + " in the subject is not valid"
		p.Hint = "a tenant is 1 to 64 of [A-Za-z0-9_-]"
	}
	return p
}

func (j *judge) encodeStart(ctx context.Context, id subjects.Run, generation uint64, start *wire.Start) (h map[string][]string, body []byte, err error) {
	h, body, err = start.Message()
	if err != nil || len(body) <= wire.InlineLimit {
		return h, body, err
	}
	handle, err := j.values.put(ctx, start.Bucket, func(unique string) string { return subjects.RunBlobName(id, generation, "start", unique) }, body)
	if err != nil {
		return nil, nil, err
	}
	return start.Handled(handle), nil, nil
}

// ended returns the history of a run that is over; nil for one that goes on, as far as can be seen.
func (j *judge) ended(ctx context.Context, id subjects.Run, generation uint64) *outcome.Run {
	doc, err := j.store.History(ctx, id)
	if err != nil || doc.Generation != generation {
		return nil
	}
	return doc
}

// A rejected run leaves its id free. Its history stands until a later plan of the id has an outcome, which then takes
// its place; its plan leaves the ledger at once, so that the ledger takes the next one. Every plan has a higher
// generation than those before it, and all that is told of a run names its generation. So whoever submitted a plan
// knows the outcomes of earlier ones from its own, and owners who are late know what is none of theirs any more (ADR
// 10).

// rejectionStays is how long the same bytes get the same rejection again: whoever missed the answer to a submission
// sends the plan once more, and is to learn what became of it. Beyond that, the tool that was missing may be there.
const rejectionStays = 10 * time.Second

// free reports whether a document leaves its run id to a plan of a generation.
func free(doc *outcome.Run, generation uint64) bool {
	return doc.Status == outcome.Rejected && doc.Generation < generation
}

// sameAgain reports whether a plan gets a rejection again that an earlier one got. Both times are the ledger's, so that
// all owners come to the same.
func sameAgain(doc *outcome.Run, asked identity) bool {
	same := doc.Digest == asked.digest && (doc.Permissions == nil) == (asked.permissions == nil) && slices.Equal(doc.Permissions, asked.permissions)
	return same && doc.Outcome != nil && len(doc.Outcome.Problems) > 0 && asked.submitted.Sub(doc.Finished).Abs() < rejectionStays
}

// verdict is admit and extras together. before is the rejection that stands under the run id; nil where there is none.
func (j *judge) verdict(ctx context.Context, id subjects.Run, generation uint64, asked identity, before *outcome.Run) (*plan.Plan, *wire.Start, schemas, error) {
	bucket, err := j.store.BucketOf(ctx, id.Tenant, asked.submitted)
	if err != nil {
		return nil, nil, nil, err
	}
	if before != nil && sameAgain(before, asked) {
		return nil, &wire.Start{Bucket: bucket, Problems: before.Outcome.Problems, Warnings: before.Outcome.Warnings, Since: before.Finished, Later: true}, nil, nil
	}
	var again *tried
	if asked.retryOf.Of != "" {
		if again, err = j.tries(ctx, id, asked); err != nil {
			return nil, nil, nil, err
		}
	}
	p, start, s, err := j.admit(ctx, id, asked, again)
	if start == nil {
		return nil, nil, nil, err // without one it can't be judged yet
	}
	start.Later, start.Bucket = before != nil, bucket
	if p == nil {
		return nil, start, nil, nil
	}
	err = j.extras(ctx, id, generation, p, start, asked, again)
	if start.Rejected() {
		start.Needs = nil // whoever owns it may say so
	}
	return p, start, s, err
}

// extras adds the problems of what came with a plan, and what is taken over from the run that it tries again. The
// error is one that may pass.
func (j *judge) extras(ctx context.Context, id subjects.Run, generation uint64, p *plan.Plan, start *wire.Start, x identity, t *tried) error {
	start.Problems = append(start.Problems, contextProblems(p, x)...)
	if t != nil && t.problem != nil && !start.Rejected() {
		start.Problems = append(start.Problems, *t.problem)
	}
	if t == nil || start.Rejected() {
		return nil
	}
	var err error
	start.Reuse, err = j.takeOver(ctx, id, generation, p, start, x, t)
	if err == nil && len(start.Reuse.Rounds) > 0 {
		start.Needs = slices.Compact(slices.Sorted(slices.Values(append(start.Needs, wire.RoundsAgain))))
	}
	return err
}

// contextProblems finds context that can't be read, and context for steps that the plan doesn't have.
func contextProblems(p *plan.Plan, x identity) []fault.Problem {
	if x.unfit != nil {
		var f *fault.Error
		if !errors.As(x.unfit, &f) {
			f = fault.Wrap(fault.InvalidValue, x.unfit, "the context")
		}
		return []fault.Problem{{Code: f.Code, Message: f.Message, Hint: f.Hint}}
	}
	var problems []fault.Problem
	for _, step := range slices.Sorted(maps.Keys(x.context.Steps)) {
		if _, ok := p.Index(step); !ok {
			problems = append(problems, fault.Problem{
				Code: fault.InvalidValue, Message: fmt.Sprintf("there is context for the step %q, which the plan doesn't have", text.Clip(step, 80)),
				Hint: "context for a single step is given under the step's id",
			})
		}
	}
	return problems
}
