package kv

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Beats are how workers say that they live, and how others hear of it. Nothing is stored and nothing rests on it: who
// comes asks all workers to beat now, and has heard of those that are well within AnswerWithin; who stays hears each
// again every wire.BeatEvery.
type Beats struct{ *account }

// Beats returns the way by which workers say that they live.
func (s *Store) Beats() Beats { return Beats{s.account} }

const (
	// AnswerWithin is how long a worker that is well may take to beat when it is asked to, with room for a busy one.
	AnswerWithin = time.Second
	// beatsGone is for how long nothing may be heard of a worker before it is gone.
	beatsGone = wire.MissedBeats*wire.BeatEvery + time.Second
	// answersSoon is how long an Ear waits for what workers answer that are not busy, and earFor for how long it goes on
	// listening: whoever looks once looks again.
	answersSoon, earFor = 300 * time.Millisecond, time.Minute
	// maxWorkers bounds the workers that one listener remembers, maxOfUser those of one user, so that one that beats
	// under ever new names hides no others but its own.
	maxWorkers, maxOfUser = 10_000, 2_000
)

// Say says once that a worker lives. It does nothing while there is no connection: what was true then is not told late.
func (b Beats) Say(worker string, beat wire.Beat) error {
	if !b.nc.IsConnected() {
		return nil
	}
	m := &nats.Msg{Subject: subjects.Beat(b.nc.Opts.InboxPrefix, worker), Header: wire.Versioned(), Data: beat.Body()}
	if err := b.nc.PublishMsg(m); err != nil {
		return Fault(err)
	}
	return nil
}

// Asked calls now whenever somebody asks for beats, until stop is called.
func (b Beats) Asked(now func()) (stop func(), err error) {
	sub, err := b.nc.Subscribe(subjects.AskBeats, func(*nats.Msg) { now() })
	if err != nil {
		return nil, Fault(err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // a closed connection has none left to end
}

// Refused returns why the server does not let a worker say that it lives; nil if it does, or has not been asked lately.
func (b Beats) Refused(worker string) error {
	if f := b.denied.of(subjects.Beat(b.nc.Opts.InboxPrefix, worker)); f != nil {
		return f
	}
	return nil
}

// Tell says once how far an attempt is, to whoever watches its run. It does nothing while there is no connection.
func (b Beats) Tell(of subjects.Attempt, p outcome.Progress) error {
	if !b.nc.IsConnected() {
		return nil
	}
	m := &nats.Msg{Subject: subjects.Progress(of), Header: wire.Versioned(), Data: wire.ProgressBody(p)}
	if err := b.nc.PublishMsg(m); err != nil {
		return Fault(err)
	}
	return nil
}

// Write tells once what the handler of an attempt is writing, to whoever watches its run; heard says that somebody may.
// Errors: not_found where no orchestrator takes such, those of a request.
func (b Beats) Write(ctx context.Context, of subjects.Attempt, t wire.Token) (heard bool, err error) {
	m, err := b.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subjects.Token(of), Header: wire.Versioned(), Data: t.Body()})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return false, fault.New(fault.NotFound, "no orchestrator passes on what handlers are writing")
	case err != nil:
		if f := b.denied.of(subjects.Token(of)); f != nil {
			return false, f
		}
		return false, Fault(err)
	}
	return wire.KindToken.Known(m.Header) && wire.ParseTokenReply(m.Data).Heard, nil
}

// HandOver hands over steps of a planner's answer before that is whole, and returns which of them have begun. Errors: not_found
// where no orchestrator takes such, already_finished where the attempt may hand over none any more, those of a request.
func (b Beats) HandOver(ctx context.Context, of subjects.Attempt, h wire.HandOver) (over wire.HandedOver, err error) {
	body, err := h.Body()
	if err != nil {
		return over, err
	}
	m, err := b.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subjects.Stream(of), Header: wire.Versioned(), Data: body})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return over, fault.New(fault.NotFound, "no orchestrator takes steps before an answer is whole")
	case err != nil:
		if f := b.denied.of(subjects.Stream(of)); f != nil {
			return over, f
		}
		return over, Fault(err)
	}
	if err := wire.ParseRefusal(m.Header, m.Data); err != nil {
		return over, err
	}
	over, ok := wire.ParseHandedOver(m.Data)
	if !ok {
		return over, fault.New(fault.Internal, "the answer to steps that were handed over can't be read")
	}
	return over, nil
}

// Untold returns why the server did not let it be told how far an attempt is; nil if it did, or has not been asked
// lately.
func (b Beats) Untold(of subjects.Attempt) error {
	if f := b.denied.of(subjects.Progress(of)); f != nil {
		return f
	}
	return nil
}

// Workers are the live workers, as far as they were heard.
type Workers struct {
	stop func()

	mu     sync.Mutex
	now    func() time.Time // time.Now, but in tests
	heard  map[workerKey]tool.Worker
	ofUser map[string]int
	missed int
}

// workerKey tells workers apart: processes may have been given one name.
type workerKey struct {
	user, name, host string
	pid              int
}

func newWorkers(now func() time.Time) *Workers {
	return &Workers{now: now, heard: map[workerKey]tool.Worker{}, ofUser: map[string]int{}, stop: func() {}}
}

// Hear listens to beats until Stop, and asks for them once. Errors: Permission naming the subject; NoConnection; Timeout
// after ctx.
func (b Beats) Hear(ctx context.Context) (*Workers, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	w := newWorkers(time.Now)
	sub, err := b.nc.Subscribe(subjects.AllBeats, func(m *nats.Msg) { w.take(m) })
	if err != nil {
		return nil, Fault(err)
	}
	w.stop = func() { _ = sub.Unsubscribe() } // a closed connection has none left to end
	err = b.nc.PublishMsg(&nats.Msg{Subject: subjects.AskBeats, Header: wire.Versioned()})
	if err == nil {
		err = heard(ctx, b.account, []string{subjects.AllBeats, subjects.AskBeats})
	}
	if err != nil {
		w.Stop()
		return nil, Fault(err)
	}
	return w, nil
}

// Listen returns the workers that are heard within a time after they were asked, which is AnswerWithin for those that
// are well; one that can't be asked is heard within wire.BeatEvery. missed is that of Workers.List. Errors: those of
// Hear, and ctx's.
func (b Beats) Listen(ctx context.Context, within time.Duration) (all []tool.Worker, missed int, err error) {
	w, err := b.Hear(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer w.Stop()
	if !b.pause(ctx, within) {
		return nil, 0, b.explain(ctx, context.Cause(ctx))
	}
	all, missed = w.List()
	return all, missed, nil
}

// Stop ends the listening.
func (w *Workers) Stop() { w.stop() }

// List returns the workers that live, by name: one is gone when it says so, or when three of its beats were not heard.
// missed is how many beats there was no room for, of the 10,000 workers, or 2,000 of one user, that are remembered.
func (w *Workers) List() (all []tool.Worker, missed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire()
	for _, x := range w.heard {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b tool.Worker) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.User, b.User), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID))
	})
	return all, w.missed
}

func (w *Workers) expire() {
	now := w.now()
	for key, x := range w.heard {
		if now.Sub(x.Heard) > beatsGone {
			w.forget(key)
		}
	}
}

func (w *Workers) forget(key workerKey) {
	if _, there := w.heard[key]; !there {
		return
	}
	delete(w.heard, key)
	if w.ofUser[key.user]--; w.ofUser[key.user] == 0 {
		delete(w.ofUser, key.user)
	}
}

func (w *Workers) take(m *nats.Msg) {
	user, name, ok := subjects.ParseBeat(m.Subject)
	if !ok {
		return
	}
	beat := wire.ParseBeat(m.Header, m.Data)
	key := workerKey{user, name, beat.Worker.Host, beat.Worker.PID}
	w.mu.Lock()
	defer w.mu.Unlock()
	if beat.Gone {
		w.forget(key)
		return
	}
	if _, known := w.heard[key]; !known {
		if len(w.heard) >= maxWorkers || w.ofUser[user] >= maxOfUser {
			w.expire()
		}
		if len(w.heard) >= maxWorkers || w.ofUser[user] >= maxOfUser {
			w.missed++
			return
		}
		w.ofUser[user]++
	}
	x := beat.Worker
	x.Name, x.User, x.Heard = name, user, w.now().UTC()
	x.Since = x.Heard.Add(-beat.Up)
	w.heard[key] = x
}

// Ear hears beats only while somebody wants to know something of them, and for a while after that: of thousands of
// workers they are thousands of messages in a few seconds. It is safe for use by several goroutines.
type Ear struct {
	beats Beats

	mu      sync.Mutex
	heard   *Workers // nil: it doesn't listen
	begun   time.Time
	refused uint64 // how often the connection had been lost, and one more, when it might not listen; 0: it might
	end     *time.Timer
}

// Ear returns an ear that doesn't listen yet.
func (b Beats) Ear() *Ear { return &Ear{beats: b} }

// Holder returns a live worker that hosts a tool and takes no steps of it, and its word on that; nil where there is
// none, or another takes them. Errors: those of Hear; one that may not hear is told so once for each connection, and
// nil after that.
func (e *Ear) Holder(ctx context.Context, name string) (*tool.Worker, *tool.WorkerTool, error) {
	heard, fresh, err := e.listen(ctx)
	if err != nil || heard == nil {
		return nil, nil, err
	}
	if fresh > 0 && !e.beats.pause(ctx, fresh) {
		return nil, nil, e.beats.explain(ctx, context.Cause(ctx))
	}
	all, _ := heard.List()
	w := holderOf(all, name)
	if w == nil {
		return nil, nil, nil
	}
	return w, w.Of(name), nil
}

// holderOf returns the first worker that holds a tool and says why, or any that holds it; nil where another takes its
// steps.
func holderOf(all []tool.Worker, name string) (holder *tool.Worker) {
	for i := range all {
		t := all[i].Of(name)
		switch {
		case t == nil || all[i].Leaving:
		case !t.Held:
			return nil
		case holder == nil || holder.Of(name).Why == "":
			holder = &all[i]
		}
	}
	return holder
}

// listen has the ear listen for a while from now on. fresh is for how long yet not all have answered.
func (e *Ear) listen(ctx context.Context) (heard *Workers, fresh time.Duration, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard != nil {
		e.end.Reset(earFor)
		return e.heard, answersSoon - time.Since(e.begun), nil
	}
	life := e.beats.nc.Stats().Reconnects + 1
	if e.refused == life {
		return nil, 0, nil
	}
	if e.heard, err = e.beats.Hear(ctx); err != nil {
		e.heard = nil
		if fault.CodeOf(err) == fault.Permission {
			e.refused = life
		}
		return nil, 0, err
	}
	e.begun, e.end = time.Now(), time.AfterFunc(earFor, e.Stop)
	return e.heard, answersSoon, nil
}

// Stop ends the listening, until somebody wants to know something again.
func (e *Ear) Stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heard != nil {
		e.end.Stop()
		e.heard.Stop()
		e.heard = nil
	}
}
