package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// staleRuns looks into runs that are not over, have had no record for long and have nothing on its way to a worker.
// Whether a step of theirs was lost only their owner can tell; it compares by itself, again and again.
func (d *doctor) staleRuns(ctx context.Context) error {
	if d.shards == 0 || d.info(subjects.BucketStream(subjects.HistoryBucket)) == nil {
		return nil
	}
	runs, err := d.s.Ledger.ActiveRuns(ctx, "*")
	if err != nil {
		return err
	}
	pending, err := d.pendingRuns(ctx)
	if err != nil {
		return err
	}
	asked, err := askedRuns(ctx, d)
	if err != nil {
		return err
	}
	stale, named, people, worst := 0, 0, 0, Notable
	for _, r := range runs[:min(len(runs), maxLook)] {
		if pending[r] {
			continue
		}
		idle, err := d.idle(ctx, r)
		if err != nil {
			return err
		}
		if idle < d.o.Stale {
			continue
		}
		if asked[r] && d.members > 0 {
			people++
			continue
		}
		if stale++; named < maxNamed {
			named++
			if d.stale(ctx, r, idle) == Broken {
				worst = Broken
			}
		}
	}
	if stale > named {
		d.add(Finding{Health: worst, Found: fmt.Sprintf("%d more runs like these", stale-named)}, nil)
	}
	if people > 0 {
		d.add(Finding{
			Health: Notable, Found: fmt.Sprintf("%s with a question that nobody has answered for %v", text.Count(people, "run"), d.o.Stale),
			Means: "they go on when somebody answers, or when the time for it is over",
			Fix:   "stepjet questions list, with --tenant for another than default",
		}, nil)
	}
	d.fine(fmt.Sprintf("%s in the ledger, none without a sign of life for %v", text.Count(len(runs), "run"), d.o.Stale))
	return nil
}

// idle returns how long an unfinished run has had no record; 0 for one that is over.
func (d *doctor) idle(ctx context.Context, r subjects.Run) (time.Duration, error) {
	last, err := d.s.Ledger.Read(ctx, subjects.RunFilter(r, d.shards))
	if fault.CodeOf(err) == fault.NotFound {
		return 0, nil
	}
	if err != nil || time.Since(last.Time) < d.o.Stale {
		return 0, err
	}
	generation := last.Seq
	if rec, ok := subjects.ParseRecord(last.Subject); ok && rec.Generation > 0 {
		generation = rec.Generation
	}
	over, err := d.over(ctx, r, generation)
	if over || err != nil {
		return 0, err
	}
	return time.Since(last.Time), nil
}

// pendingRuns returns the runs that have a step in a step stream: dispatched, leased or scheduled.
func (d *doctor) pendingRuns(ctx context.Context) (map[subjects.Run]bool, error) {
	pending := map[subjects.Run]bool{}
	for shard := range d.stepShards {
		if d.info(subjects.StepsStream(shard)) == nil {
			continue
		}
		info, err := d.in.Subjects(ctx, subjects.StepsStream(shard), subjects.AllSteps(shard))
		if err != nil {
			return nil, err
		}
		for subject := range info {
			if a, _, ok := subjects.ParseStep(subject); ok {
				pending[a.Run] = true
			}
		}
	}
	return pending, nil
}

// askedRuns returns the runs that wait for people to say something, as far as they are listed.
func askedRuns(ctx context.Context, d *doctor) (map[subjects.Run]bool, error) {
	asked := map[subjects.Run]bool{}
	stream := subjects.BucketStream(subjects.QuestionsBucket)
	if d.info(stream) == nil {
		return asked, nil
	}
	prefix := subjects.BucketSubject(subjects.QuestionsBucket, "")
	info, err := d.in.Subjects(ctx, stream, prefix+">")
	if err != nil {
		return nil, err
	}
	for subject := range info {
		if r, _, _, ok := subjects.ParseQuestionKey(strings.TrimPrefix(subject, prefix)); ok {
			asked[r] = true
		}
	}
	return asked, nil
}

// stale reports one run, with what its owner says of it, and returns how bad that is.
func (d *doctor) stale(ctx context.Context, r subjects.Run, idle time.Duration) Health {
	f := Finding{
		About: "run " + r.Plain() + " of tenant " + r.Tenant, Health: Broken,
		Expected: "a step on its way, or a record within " + d.o.Stale.String(),
		Found:    fmt.Sprintf("no record for %v, and no step on its way", idle.Round(time.Second)),
		Fix:      "stepjet get " + r.Plain() + " --tenant " + r.Tenant,
	}
	waiting, err := d.waiting(ctx, r)
	switch {
	case d.members == 0:
		f.Means, f.Fix = "no orchestrator is alive, so nothing goes on", startOrchestrator
	case fault.CodeOf(err) == fault.NewerVersion:
		f.Health, f.Found = Notable, f.Found+"; its owner leaves it alone, since a newer version of Stepjet wrote it"
		f.Means = "an orchestrator that knows its version goes on with it; none of this version ever does"
		f.Fix = fmt.Sprintf("upgrade the orchestrators; or, if nobody of yours wrote it, remove it: nats stream purge %s --subject '%s'",
			subjects.LedgerStream(subjects.LedgerShard(r.Partition(), d.shards)), subjects.RunFilter(r, d.shards))
	case err != nil:
		f.Means = "its owner does not answer; after three seconds without a sign of life another takes the run over"
	case waiting != "":
		f.Health, f.Found = Notable, f.Found+"; its owner says: "+waiting
		f.Means = "it goes on when that is over"
	default:
		f.Means = "a step may have been lost; the sweep of its owner sends it again within its interval (10 s unless set otherwise)"
	}
	d.add(f, nil)
	return f.Health
}

// waiting asks the owner of a run what its first unfinished step waits for.
func (d *doctor) waiting(ctx context.Context, r subjects.Run) (string, error) {
	var doc outcome.Run
	if err := d.ask(ctx, subjects.API(r, subjects.VerbGet), &doc); err != nil {
		return "", err
	}
	if doc.Blob != nil { // it is too large for a message
		body, err := d.s.Archive.Blob(ctx, doc.Blob)
		if err == nil {
			err = json.Unmarshal(body, &doc)
		}
		if err != nil {
			return "", err
		}
	}
	if opened(&doc) {
		return "its plan is open, and waits for amendments", nil
	}
	var all []string
	for _, st := range doc.Steps {
		if st.Waiting != "" && st.Status != outcome.StepWaiting && len(all) < maxNamed {
			all = append(all, st.ID+": "+st.Waiting)
		}
	}
	return strings.Join(all, "; "), nil
}

// opened reports whether a run waits for amendments alone: its plan, or that of a step, is open, and no call is left to
// be made.
func opened(doc *outcome.Run) bool {
	p := plan.Accepted(doc.Plan, doc.Templates)
	if p == nil || !p.Open && !slices.ContainsFunc(slices.Collect(p.All()), func(s *plan.Step) bool { return s.Plan != nil && s.Plan.Open }) {
		return false
	}
	return !slices.ContainsFunc(doc.Steps, callLeft)
}

// callLeft reports whether a step, or one that it is made of, is ready and not over.
func callLeft(s outcome.Step) bool {
	if parts := slices.Concat(s.Items, s.Steps); len(parts) > 0 {
		return slices.ContainsFunc(parts, callLeft)
	}
	return !s.Status.Terminal() && s.Status != outcome.StepWaiting
}
