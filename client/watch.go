package client

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Watcher follows one run. It is made before the run is submitted, so that nothing is missed; Close it after use.
type Watcher struct {
	c        *Client
	name     subjects.Run
	run      string
	messages chan *nats.Msg
	sub      *nats.Subscription

	told  map[string]bool   // steps, and items of steps, whose end was reported
	heard map[string]bool   // calls by which agents told people what was reported
	stand map[string]string // where steps that are not over were last seen: status and what they wait for
	over  int               // the steps among them
	at    map[string]int    // the last amendment that was reported, by whose plan it is
	// inForce is the last amendment that is in force, likewise, of a plan that was submitted for an approval; else nil.
	inForce map[string]int
	begun   bool // the start was reported
	// patient is whether some time has passed: what is out at the first look has most often just been sent.
	patient bool

	alone time.Time // since when its owner leaves the run alone; zero where it does not

	generation uint64 // of the plan that is watched, where it is known
	odd        int    // reads that found an earlier plan's rejection
}

// eventBuffer is the number of events kept for a slow reader; those past it are lost, and made up for at the end.
const eventBuffer = 8192

// NewWatcher subscribes to the events of a run, which need not be there yet. Errors: InvalidID, NoConnection.
func (c *Client) NewWatcher(ctx context.Context, run string) (*Watcher, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	w := &Watcher{c: c, name: name, run: run, messages: make(chan *nats.Msg, eventBuffer), told: map[string]bool{}, heard: map[string]bool{}, stand: map[string]string{}, at: map[string]int{}}
	if w.sub, err = c.nc.ChanSubscribe(subjects.EventFilter(name), w.messages); err != nil {
		return nil, kv.Fault(err)
	}
	if err := heard(ctx, c.store, subjects.EventFilter(name)); err != nil {
		w.Close()
		return nil, kv.Fault(err)
	}
	return w, nil
}

// Of says which plan is watched: what is left of an earlier one of the same id, which was rejected, is not reported.
func (w *Watcher) Of(r *Run) { w.generation = r.Generation() }

// Close ends the subscription.
func (w *Watcher) Close() { _ = w.sub.Unsubscribe() } // a closed connection has none left to end

// Watch reports what happens to a run until it is over: first what has happened already, then what comes. The last
// event has the kind EventEnd and the whole outcome. Now and then the run is looked at, and what a step that is out
// waits for is reported where that has changed. A run whose owner is older than what was written of it, and leaves it alone,
// is waited for up to MostAlone, and that is reported: in an upgrade or a step back a newer one is there soon. each is called
// from this goroutine. Errors: NotFound, ctx's own, those of Get.
func (c *Client) Watch(ctx context.Context, run string, each func(Event)) error {
	w, err := c.NewWatcher(ctx, run)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := c.exists(ctx, w.name); err != nil {
		return err
	}
	return w.Follow(ctx, each)
}

// Follow is Watch for a watcher. A run that is not there yet is waited for. Each step is reported once it is over, even
// if its event was lost; attempts that failed in between, and the items of a for_each, are reported as they are seen.
func (w *Watcher) Follow(ctx context.Context, each func(Event)) error {
	if over, err := w.catchUp(ctx, each); over || err != nil {
		return err
	}
	w.patient = true
	reads := 0
	t := time.NewTimer(pauses[0])
	defer t.Stop()
	for {
		select {
		case m := <-w.messages:
			if over, err := w.take(ctx, m, each); over || err != nil {
				return err
			}
		case <-t.C:
			if over, err := w.catchUp(ctx, each); over || err != nil {
				return err
			}
			reads++
			t.Reset(pauses[min(reads, len(pauses)-1)])
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.c.ctx.Done():
			return context.Cause(w.c.ctx)
		}
	}
}

// errBegun ends a watch that is only to see whether a plan was rejected.
var errBegun = errors.New("the run has begun")

// Judged waits until the plan was judged. It gives the outcome if the run is over by then, as that of a rejected plan
// always is, and nil for a run that has begun. Errors as those of Follow.
func (w *Watcher) Judged(ctx context.Context) (out *outcome.Outcome, err error) {
	ctx, begun := context.WithCancelCause(ctx)
	defer begun(nil)
	err = w.Follow(ctx, func(e Event) {
		switch e.Kind {
		case subjects.EventStart, subjects.EventStep:
			begun(errBegun)
		case subjects.EventEnd:
			out = e.Outcome
		}
	})
	if errors.Is(err, errBegun) {
		err = nil
	}
	return out, err
}

// take reports one message, if it says anything new.
func (w *Watcher) take(ctx context.Context, m *nats.Msg, each func(Event)) (over bool, err error) {
	e, ok := parseEvent(m.Subject, m.Data)
	if !ok || !wire.KindEvent.Known(m.Header) {
		return false, nil
	}
	switch e.Kind {
	case subjects.EventStart:
		w.start(e, each)
	case subjects.EventStep:
		w.step(e, each)
	case subjects.EventQuestion:
		w.stand[e.Step] = string(outcome.StepAsking)
		each(e)
	case subjects.EventAmend:
		w.amended(e, each)
	case subjects.EventProgress, subjects.EventToken:
		if !w.told[e.Step] {
			each(e)
		}
	case subjects.EventMessage:
		w.tellsPeople(e, each)
	case subjects.EventConflict:
		each(e)
	case subjects.EventEnd:
		// Where nothing was lost, the event itself is all that is needed.
		if e.Outcome != nil && e.Outcome.Status != outcome.Rejected && w.over == e.Outcome.Stats.Steps {
			each(e)
			return true, nil
		}
		return w.catchUp(ctx, each)
	}
	return false, nil
}

func (w *Watcher) start(e Event, each func(Event)) {
	if !w.begun {
		w.begun = true
		each(e)
	}
}

func (w *Watcher) step(e Event, each func(Event)) {
	if w.told[e.Step] {
		return
	}
	if e.Status.Terminal() {
		w.told[e.Step] = true
		if _, _, isItem := subjects.SplitItem(e.Step); !isItem {
			w.over++
		}
	}
	each(e)
}

// tellsPeople reports what an agent tells people, once: an owner that takes a run over may tell it again.
func (w *Watcher) tellsPeople(e Event, each func(Event)) {
	if !w.heard[e.Step] {
		w.heard[e.Step] = true
		each(e)
	}
}

// allTold reports what the agents at a step of the document, and within it, have told people.
func (w *Watcher) allTold(s *outcome.Step, each func(Event)) {
	for i := range s.Messages {
		w.tellsPeople(messageEvent(w.run, s.ID, &s.Messages[i]), each)
	}
	for _, list := range [][]outcome.Step{s.Items, s.Steps} {
		for i := range list {
			w.allTold(&list[i], each)
		}
	}
}

// amended reports an amendment, unless a later one of the same plan was reported.
func (w *Watcher) amended(e Event, each func(Event)) {
	if e.Revision > w.at[e.Step] {
		w.at[e.Step] = e.Revision
		each(e)
	}
}

// amendedTo reports the last amendment of a plan as the document has it: of an approved one the last that is in force.
func (w *Watcher) amendedTo(step string, revision int, each func(Event)) {
	if w.inForce != nil {
		revision = w.inForce[step]
	}
	w.amended(Event{Kind: subjects.EventAmend, Run: w.run, Step: step, Revision: revision}, each)
}

// catchUp reports what the document of the run holds and was not reported yet; over says that the run has ended. A run
// that nobody knows yet, or whose owner is silent just now, is no error: the next read will tell. Nor is a connection
// that is down, as it is for a moment where the process ends that has a data folder, and another takes it over.
func (w *Watcher) catchUp(ctx context.Context, each func(Event)) (over bool, err error) {
	doc, err := w.c.get(ctx, w.name, 0)
	if err != nil {
		switch code := fault.CodeOf(err); {
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case errors.Is(err, errLeftAlone):
			return false, w.leftAlone(err, time.Now(), each)
		case code == fault.NotFound || code == fault.NotReady:
			return false, nil
		case (code == fault.NoConnection || code == fault.Timeout) && !w.c.nc.IsClosed() && w.c.ctx.Err() == nil:
			return false, nil
		}
		return false, err
	}
	w.alone = time.Time{}
	if doc.Status == outcome.Rejected && doc.Generation < w.generation {
		if w.odd++; w.odd < oddReads {
			return false, nil
		}
	}
	if doc.Status != outcome.Rejected && len(doc.Steps) > 0 {
		w.start(Event{Kind: subjects.EventStart, Run: w.run, Time: doc.Started, Steps: len(doc.Steps)}, each)
	}
	w.inForce = nil
	for i := range doc.Amendments {
		if w.inForce == nil {
			w.inForce = map[string]int{}
		}
		if a := &doc.Amendments[i]; !a.Waits && a.Error == nil {
			w.inForce[a.Step] = a.Revision
		}
	}
	w.amendedTo(subjects.RootScope, doc.Revision, each)
	for i := range doc.Steps {
		s := &doc.Steps[i]
		for k := range s.Items {
			w.seen(&s.Items[k], each)
		}
		w.rounds(s.Steps, each)
		w.allTold(s, each)
		w.seen(s, each)
		w.asking(s, each)
	}
	if doc.Outcome == nil || doc.Status == outcome.Running {
		return false, nil
	}
	each(Event{Kind: subjects.EventEnd, Run: w.run, Time: doc.Finished, Outcome: doc.Outcome})
	return true, nil
}

// MostAlone is how long a watcher waits for a run that orchestrators leave alone since they are older than what was written of it.
const MostAlone = time.Minute

// leftAlone reports that the owner leaves the run alone, once, and returns why as an error once it has done so for too long.
func (w *Watcher) leftAlone(why error, now time.Time, each func(Event)) error {
	if w.alone.IsZero() {
		w.alone = now
		each(Event{Kind: EventLeftAlone, Run: w.run, Time: now, Error: fault.As(why)})
	}
	if now.Sub(w.alone) >= MostAlone {
		return why
	}
	return nil
}

// asking reports what waits for a person inside a step: in the plan of one, in a round of an agent, in an item.
func (w *Watcher) asking(s *outcome.Step, each func(Event)) {
	for _, list := range [][]outcome.Step{s.Items, s.Steps} {
		for i := range list {
			if list[i].Status == outcome.StepAsking {
				w.seen(&list[i], each)
			}
			w.asking(&list[i], each)
		}
	}
}

// rounds reports the calls of an agent's rounds, as far as the document has them: they are what its step is about.
func (w *Watcher) rounds(steps []outcome.Step, each func(Event)) {
	if len(steps) == 0 || steps[0].ID != subjects.OwnCall(subjects.ScopeOf(steps[0].ID), "plan") {
		return // not of an agent, whose first call is always its planner's
	}
	for i := range steps {
		if subjects.IsIteration(subjects.ScopeOf(steps[i].ID)) {
			w.rounds(steps[i].Steps, each)
			w.seen(&steps[i], each)
		}
	}
}

// seen reports a step of the document, or an item of one, if it is over, or where it stands if that has changed. What
// waits for other steps, or for its own items, says nothing that the plan doesn't.
func (w *Watcher) seen(s *outcome.Step, each func(Event)) {
	w.amendedTo(s.ID, s.Revision, each)
	e := stepEvent(wire.StepEventOf(w.run, s, len(s.Items) > 0))
	switch {
	case s.Status.Terminal():
		w.step(e, each)
	case s.Status == outcome.StepAsking && w.stand[s.ID] == string(outcome.StepAsking): // told
	case s.Status == outcome.StepAsking: // whoever looks is to see at once that somebody has to answer
		w.stand[s.ID] = string(outcome.StepAsking)
		e.QueuedMS, e.MS, e.Waiting = 0, 0, s.Waiting
		each(e)
	case s.Status == outcome.StepWaiting || len(s.Items) > 0 || w.told[s.ID] || !w.patient:
	case s.Status == outcome.StepReady && s.Waiting == "": // not known yet
	default:
		if now := string(s.Status) + " " + s.Waiting; w.stand[s.ID] != now {
			w.stand[s.ID] = now
			e.QueuedMS, e.MS, e.Waiting = 0, 0, s.Waiting // it isn't over
			each(e)
		}
	}
}
