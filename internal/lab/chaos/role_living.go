package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// liver is one client of living runs. The first submits them, in lanes; the others take part in what is there. A client
// that was killed goes on where its log ends, and asks once more for what it may have asked for before.
type liver struct {
	*agent
	k    int
	past []Event // of the lives before
}

// living plays the role. Told to end, it goes through with the runs that it has begun.
func (r *Role) living(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	past, err := ReadLog(r.Log)
	if err != nil {
		return err
	}
	a, err := r.newAgent(ctx, nc, log)
	if err != nil {
		return err
	}
	defer a.c.Close()
	ready()
	l := &liver{agent: a, k: r.Client, past: past}
	var all sync.WaitGroup
	for lane := range max(r.Parallel, 1) {
		all.Go(func() { l.lane(ctx, lane) })
	}
	all.Wait()
	return nil
}

func (l *liver) lane(ctx context.Context, lane int) {
	for n := 0; ; n++ {
		run := fmt.Sprintf("%s-%d-%d", kindLiving, lane, n)
		switch begun := l.did(run, evSubmit, evJoin); {
		case l.did(run, evOutcome):
			continue
		case l.k == 0 && l.role.Runs > 0 && n >= l.role.Runs:
			return
		case l.k > 0 && !begun && !l.joins(ctx, run):
			return
		case ctx.Err() != nil && !begun:
			return
		}
		l.one(run)
	}
}

// did reports whether the client logged one of some kinds of events of a run in a life before.
func (l *liver) did(run string, kinds ...string) bool {
	return slices.ContainsFunc(l.past, func(e Event) bool { return e.Run == run && slices.Contains(kinds, e.Kind) })
}

// joins waits until a run is there. It reports false where the client is to end before.
func (l *liver) joins(ctx context.Context, run string) bool {
	for sleep(ctx, 50*time.Millisecond) == nil {
		if _, err := l.c.Get(ctx, run); err == nil {
			l.events.Add(Event{Kind: evJoin, Run: run, Tenant: l.c.Tenant()})
			return true
		}
	}
	return false
}

// one goes through with a run.
func (l *liver) one(run string) {
	var r *client.Run
	for r == nil {
		if l.k == 0 {
			r, _ = l.submit(context.Background(), run, WorkOf(run).Plan)
		} else {
			r, _ = l.c.Attach(run)
		}
	}
	x := &liverRun{liver: l, run: run, plan: WorkOf(run).living, at: map[string]int{}, news: make(chan struct{}, 1)}
	answering, end := context.WithCancel(context.Background())
	var answers sync.WaitGroup
	answers.Go(func() { x.answers(answering) })
	x.amends()
	l.wait(r)
	end()
	answers.Wait()
}

// asked is an amendment that was asked for, and the event of how that ended.
type asked struct {
	client.Amendment
	Event
}

// liverRun is a run in which a client takes part.
type liverRun struct {
	*liver
	run  string
	plan *living
	at   map[string]int // the last revision that is known, by scope
	told []asked        // of what it is known what became

	news chan struct{} // it is through with one more change
	mu   sync.Mutex
	made int // changes that it is through with
}

// amends asks for all that the client changes, one after the other.
func (x *liverRun) amends() {
	changes := x.plan.changes[x.k]
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
	if x.k != 0 || !x.allDone() {
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
func (x *liverRun) through(c *liveChange) bool {
	return slices.ContainsFunc(x.past, func(e Event) bool {
		return e.Kind == evAmended && e.Run == x.run && e.Key == c.label && (e.Code == "" || !c.must)
	})
}

// change asks for an amendment until it is known what became of it: whatever is lost, the same is asked for again. It
// reports false once the run is over.
func (x *liverRun) change(c *liveChange) bool {
	x.at[c.scope] = max(x.at[c.scope], x.lastAsked(c))
	for {
		ask := client.Amendment{Scope: c.scope, Revision: x.at[c.scope], Discard: c.discard, Close: strings.Contains(c.label, "close"), By: c.label}
		for _, s := range c.add {
			ask.Add = append(ask.Add, json.RawMessage(s))
		}
		e := Event{Kind: evAsk, Run: x.run, Tenant: x.c.Tenant(), Key: c.label, Step: c.scope, Revision: ask.Revision + 1}
		x.events.Add(e)
		told, err := x.ask(ask)
		now := wire.AmendConflict{Revision: -1}
		if err != nil {
			_ = json.Unmarshal(fault.As(err).Details, &now) // nothing there: it does not say
		}
		e.Kind, e.Code = evAmended, string(fault.CodeOf(err))
		again := false
		switch code := fault.CodeOf(err); {
		case err == nil && told.Waits:
			again = true
		case err == nil:
			x.at[c.scope] = told.Revision
		case code == fault.AlreadyFinished, code == fault.NotFound && c.scope == subjects.RootScope && x.isOver():
			return false
		case code == fault.Conflict && now.Revision > ask.Revision:
			x.at[c.scope] = now.Revision
			continue
		case code == fault.Overtaken, code == fault.Rejected:
			x.at[c.scope] = max(now.Revision, ask.Revision+1)
		case passes(code), code == fault.InvalidID: // the step whose plan it is has not begun
			again = true
		}
		if again {
			time.Sleep(30 * time.Millisecond)
			continue
		}
		x.events.Add(e)
		x.told = append(x.told, asked{ask, e})
		if err == nil || !c.must {
			return true
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func (x *liverRun) ask(a client.Amendment) (*client.Amended, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return x.c.Amend(ctx, x.run, a)
}

// asksAgain asks for some of what is known once more: another owner, of another version, says the same of it.
func (x *liverRun) asksAgain() {
	for _, t := range x.told {
		if lot(x.run, t.Key)%3 > 0 || !t.isKnown() {
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
				x.events.Add(t.Event)
			}
			break
		}
	}
}

// isKnown reports whether what a client was told is what became of an amendment that stands.
func (e *Event) isKnown() bool {
	return e.Code == "" || e.Code == string(fault.Overtaken) || e.Code == string(fault.Rejected)
}

// passes reports whether an amendment that was refused so may be made when it is asked for again: everything fell, or what
// is amended is not there yet.
func passes(code fault.Code) bool {
	return slices.Contains([]fault.Code{fault.NotReady, fault.NoConnection, fault.NoJetStream, fault.Internal, fault.Timeout, fault.NotFound,
		fault.NewerVersion, fault.Conflict, fault.Cancelled}, code)
}

// lastAsked is the revision that a life before asked for the change at last.
func (x *liverRun) lastAsked(c *liveChange) (revision int) {
	for _, e := range x.past {
		if e.Kind == evAsk && e.Run == x.run && e.Key == c.label {
			revision = e.Revision - 1
		}
	}
	return revision
}

// isOver reports whether the run has come to its outcome.
func (x *liverRun) isOver() bool {
	doc, err := x.c.Get(context.Background(), x.run)
	return err == nil && doc.Status != outcome.Running
}

// allDone waits until every client says that it is done. It reports false where the run is over before.
func (x *liverRun) allDone() bool {
	for {
		doc, err := x.c.Get(context.Background(), x.run)
		done := 0
		for i := range livingClients {
			if err == nil && slices.ContainsFunc(doc.Steps, func(s outcome.Step) bool { return s.ID == fmt.Sprint("done", i) }) {
				done++
			}
		}
		switch {
		case done == livingClients:
			return true
		case err == nil && doc.Status != outcome.Running:
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
}
