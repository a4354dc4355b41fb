package ui

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// asking is a question without what it shows, which may be large.
type asking struct {
	Key        string               `json:"key"`
	Run        string               `json:"run"`
	Tenant     string               `json:"tenant"`
	Generation uint64               `json:"generation"`
	Step       string               `json:"step"`
	Number     int                  `json:"number"`
	Kind       outcome.QuestionKind `json:"kind"`
	Tool       string               `json:"tool,omitempty"`
	Text       string               `json:"text,omitempty"`
	Items      int                  `json:"items,omitempty"`
	Revision   int                  `json:"revision,omitempty"` // of the amendment that it is about
	Round      *int                 `json:"round,omitempty"`    // of the agent's round that it is about
	Attempt    int                  `json:"attempt,omitempty"`  // that ended with it, where the step's tool asks
	By         string               `json:"by,omitempty"`
	Verified   bool                 `json:"verified,omitempty"`
	Reason     string               `json:"reason,omitempty"`
	Digest     string               `json:"digest"`
	Since      time.Time            `json:"since"`
	Until      *time.Time           `json:"until,omitempty"`
	OnTimeout  string               `json:"on_timeout,omitempty"`
}

func askingOf(q *outcome.Question) asking {
	return asking{
		Key: subjects.NewRun(q.Tenant, q.Run).Key(), Run: q.Run, Tenant: q.Tenant, Generation: q.Generation, Step: q.Step,
		Number: q.Number, Kind: q.Kind, Tool: q.Tool, Text: q.Text, Items: q.Items, Revision: q.Revision, Round: q.Round,
		Attempt: q.Attempt, By: q.By,
		Verified: q.Verified, Reason: q.Reason, Digest: q.Digest, Since: q.Since, Until: q.Until, OnTimeout: q.OnTimeout,
	}
}

// asked knows what is asked: each question is read once, when it is written, since it holds what it shows, up to hundreds
// of kilobytes. What is kept of it is its line of the list. Which of them are open still is asked for by their names,
// once a second at most, by whoever looks.
type asked struct {
	store *kv.Store
	turn  chan struct{} // who holds it asks, or takes what was told
	all   []asking
	at    time.Time
	old   atomic.Bool // one was answered since

	reading *kv.Cursor // nil: none was begun. Of whose turn it is
	lost    *atomic.Bool

	mu    sync.Mutex
	known map[string]entry // by key, also of those that are open no more until somebody looks
}

// entry is a line, and the sequence of what it was read of.
type entry struct {
	asking
	seq uint64
}

// askedFor is for how long what was told is as good as new.
const askedFor = time.Second

func newAsked(store *kv.Store) *asked { return &asked{store: store, turn: make(chan struct{}, 1)} }

// list returns what is asked in all tenants, the longest first. It is the caller's to read, not to change.
func (a *asked) list(ctx context.Context) ([]asking, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if !a.old.Swap(false) && time.Since(a.at) < askedFor {
		return a.all, nil
	}
	all, err := a.look(ctx)
	if err != nil {
		a.old.Store(true)
		return nil, err
	}
	a.all, a.at = all, time.Now()
	return all, nil
}

// look lists what is open, and forgets what is not.
func (a *asked) look(ctx context.Context) ([]asking, error) {
	if err := a.follow(ctx); err != nil {
		return nil, err
	}
	open, last, err := a.store.Archive.QuestionKeys(ctx)
	if err != nil {
		return nil, err
	}
	if last > 0 {
		if err := a.reading.Passed(ctx, last); err != nil {
			return nil, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []asking
	for key, q := range a.known {
		if open[key] {
			all = append(all, q.asking)
		}
	}
	// Of one that was written since the names were read nobody knows that it is gone.
	maps.DeleteFunc(a.known, func(key string, q entry) bool { return !open[key] && q.seq <= last })
	slices.SortFunc(all, func(x, y asking) int {
		return cmp.Or(x.Since.Compare(y.Since), cmp.Compare(x.Key, y.Key), cmp.Compare(x.Number, y.Number), cmp.Compare(x.Step, y.Step))
	})
	return all, nil
}

// follow begins to read what is asked, where nobody does: the first time, and when the stream was lost.
func (a *asked) follow(ctx context.Context) (err error) {
	if a.reading != nil && !a.lost.Load() {
		return nil
	}
	if a.reading != nil {
		a.reading.Stop()
		a.reading = nil
	}
	lost := new(atomic.Bool)
	a.mu.Lock()
	known := map[string]entry{}
	a.known = known
	a.mu.Unlock()
	tell := func(key string, seq uint64, q *outcome.Question) {
		a.mu.Lock()
		defer a.mu.Unlock()
		known[key] = entry{askingOf(q), seq}
	}
	// It goes on after this request, until the store is closed.
	a.reading, err = a.store.Archive.FollowQuestions(context.WithoutCancel(ctx), tell, nil, func(error) { lost.Store(true) })
	a.lost = lost
	return err
}

// forget has it asked anew what is open: one was answered.
func (a *asked) forget() { a.old.Store(true) }
