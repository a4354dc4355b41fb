package living

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// Client is one client of living runs. The first submits them, in lanes; the others take part in what is there. A client
// that was killed goes on where its journal ends, and asks once more for what it may have asked for before.
type Client struct {
	*client.Client
	Number int // from 0
	Lanes  int
	Runs   int // of each lane; 0: until it is told to end
	Of     func(run string) *Plan
	Events *journal.Log
	Past   []journal.Event // of the lives before
	// Submit submits a run, and Wait waits for its outcome; both note what came of it.
	Submit func(ctx context.Context, run string, body []byte) (*client.Run, error)
	Wait   func(*client.Run)
}

// Run takes part until ctx ends, and then goes through with the runs that it has begun.
func (l *Client) Run(ctx context.Context) {
	var all sync.WaitGroup
	for lane := range max(l.Lanes, 1) {
		all.Go(func() { l.lane(ctx, lane) })
	}
	all.Wait()
}

func (l *Client) lane(ctx context.Context, lane int) {
	for n := 0; ; n++ {
		run := fmt.Sprintf("%s-%d-%d", Kind, lane, n)
		switch begun := l.did(run, journal.Submit, journal.Join); {
		case l.did(run, journal.Outcome):
			continue
		case l.Number == 0 && l.Runs > 0 && n >= l.Runs:
			return
		case l.Number > 0 && !begun && !l.joins(ctx, run):
			return
		case ctx.Err() != nil && !begun:
			return
		}
		l.takePart(run)
	}
}

// did reports whether the client logged one of some kinds of events of a run in a life before.
func (l *Client) did(run string, kinds ...string) bool {
	return slices.ContainsFunc(l.Past, func(e journal.Event) bool { return e.Run == run && slices.Contains(kinds, e.Kind) })
}

// joins waits until a run is there. It reports false where the client is to end before.
func (l *Client) joins(ctx context.Context, run string) bool {
	for pause(ctx, 50*time.Millisecond) {
		if _, err := l.Get(ctx, run); err == nil {
			l.Events.Add(journal.Event{Kind: journal.Join, Run: run, Tenant: l.Tenant()})
			return true
		}
	}
	return false
}

// takePart goes through with a run.
func (l *Client) takePart(run string) {
	var r *client.Run
	for r == nil {
		if l.Number == 0 {
			r, _ = l.Submit(context.Background(), run, l.Of(run).Body)
		} else {
			r, _ = l.Attach(run)
		}
	}
	x := &taking{Client: l, run: run, plan: l.Of(run), at: map[string]int{}, news: make(chan struct{}, 1)}
	answering, end := context.WithCancel(context.Background())
	var answers sync.WaitGroup
	answers.Go(func() { x.answers(answering) })
	x.amends()
	l.Wait(r)
	end()
	answers.Wait()
}

// asked is an amendment that was asked for, and the event of how that ended.
type asked struct {
	client.Amendment
	journal.Event
}

// taking is a run in which a client takes part.
type taking struct {
	*Client
	run  string
	plan *Plan
	at   map[string]int // the last revision that is known, by scope
	told []asked        // of what it is known what became

	news chan struct{} // it is through with one more change
	mu   sync.Mutex
	made int // changes that it is through with
}

// amends asks for all that the client changes, one after the other.
func (x *taking) amends() {
	changes := x.plan.Changes[x.Number]
	for i := range changes {
		if !x.through(&changes[i]) && !x.change(&changes[i]) {
			return
		}
		x.mu.Lock()
		x.made = i + 1
		x.mu.Unlock()
		select {
		case x.news <- struct{}{}:
		default:
		}
	}
	x.asksAgain()
	if x.Number != 0 || !x.allDone() {
		return
	}
	closes := x.plan.closes()
	for i := range closes {
		if !x.through(&closes[i]) && !x.change(&closes[i]) {
			return
		}
	}
}

// through reports whether a life before was told what became of a change.
func (x *taking) through(c *Change) bool {
	return slices.ContainsFunc(x.Past, func(e journal.Event) bool {
		return e.Kind == journal.Amended && e.Run == x.run && e.Key == c.Label && (e.Code == "" || !c.must)
	})
}

// change asks for an amendment until it is known what became of it: whatever is lost, the same is asked for again. It
// reports false once the run is over.
func (x *taking) change(c *Change) bool {
	x.at[c.Scope] = max(x.at[c.Scope], x.lastAsked(c))
	for {
		ask := client.Amendment{Scope: c.Scope, Revision: x.at[c.Scope], Discard: c.Discard, Close: strings.Contains(c.Label, "close"), By: c.Label}
		for _, s := range c.Add {
			ask.Add = append(ask.Add, json.RawMessage(s))
		}
		e := journal.Event{Kind: journal.Ask, Run: x.run, Tenant: x.Tenant(), Key: c.Label, Step: c.Scope, Revision: ask.Revision + 1}
		x.Events.Add(e)
		told, err := x.ask(ask)
		now := wire.AmendConflict{Revision: -1}
		if err != nil {
			_ = json.Unmarshal(fault.As(err).Details, &now) // nothing there: it does not say
		}
		e.Kind, e.Code = journal.Amended, string(fault.CodeOf(err))
		again := false
		switch code := fault.CodeOf(err); {
		case err == nil && told.Waits:
			again = true
		case err == nil:
			x.at[c.Scope] = told.Revision
		case code == fault.AlreadyFinished, code == fault.NotFound && c.Scope == subjects.RootScope && x.isOver():
			return false
		case code == fault.Conflict && now.Revision > ask.Revision:
			x.at[c.Scope] = now.Revision
			continue
		case code == fault.Overtaken, code == fault.Rejected:
			x.at[c.Scope] = max(now.Revision, ask.Revision+1)
		case passes(code), code == fault.InvalidID: // the step whose plan it is has not begun
			again = true
		}
		if again {
			time.Sleep(30 * time.Millisecond)
			continue
		}
		x.Events.Add(e)
		x.told = append(x.told, asked{ask, e})
		if err == nil || !c.must {
			return true
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func (x *taking) ask(a client.Amendment) (*client.Amended, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return x.Amend(ctx, x.run, a)
}

// asksAgain asks for some of what is known once more: another owner, of another version, says the same of it.
func (x *taking) asksAgain() {
	for _, t := range x.told {
		if lot(x.run, t.Key)%3 > 0 || !isKnown(&t.Event) {
			continue
		}
		for {
			_, err := x.ask(t.Amendment)
			code := fault.CodeOf(err)
			if passes(code) && code != fault.Conflict && !x.isOver() {
				time.Sleep(30 * time.Millisecond)
				continue
			}
			if !passes(code) && code != fault.AlreadyFinished || code == fault.Conflict {
				t.Event.Code, t.Attempt = string(code), 2
				x.Events.Add(t.Event)
			}
			break
		}
	}
}

// isKnown reports whether what a client was told is what became of an amendment that stands.
func isKnown(e *journal.Event) bool {
	return e.Code == "" || e.Code == string(fault.Overtaken) || e.Code == string(fault.Rejected)
}

// passes reports whether an amendment that was refused so may be made when it is asked for again: everything fell, or what
// is amended is not there yet.
func passes(code fault.Code) bool {
	return slices.Contains([]fault.Code{fault.NotReady, fault.NoConnection, fault.NoJetStream, fault.Internal, fault.Timeout, fault.NotFound,
		fault.NewerVersion, fault.Conflict, fault.Cancelled}, code)
}

// lastAsked is the revision that a life before asked for the change at last.
func (x *taking) lastAsked(c *Change) (revision int) {
	for _, e := range x.Past {
		if e.Kind == journal.Ask && e.Run == x.run && e.Key == c.Label {
			revision = e.Revision - 1
		}
	}
	return revision
}

// isOver reports whether the run has come to its outcome.
func (x *taking) isOver() bool {
	doc, err := x.Get(context.Background(), x.run)
	return err == nil && doc.Status != outcome.Running
}

// allDone waits until every client says that it is done. It reports false where the run is over before.
func (x *taking) allDone() bool {
	for {
		doc, err := x.Get(context.Background(), x.run)
		done := 0
		for i := range Clients {
			if err == nil && slices.ContainsFunc(doc.Steps, func(s outcome.Step) bool { return s.ID == fmt.Sprint("done", i) }) {
				done++
			}
		}
		switch {
		case done == Clients:
			return true
		case err == nil && doc.Status != outcome.Running:
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// pause waits; it reports false where ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
