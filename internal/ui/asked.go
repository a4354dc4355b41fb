package ui

import (
	"context"
	"slices"
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
		Number: q.Number, Kind: q.Kind, Tool: q.Tool, Text: q.Text, Items: q.Items, Revision: q.Revision, By: q.By,
		Verified: q.Verified, Reason: q.Reason, Digest: q.Digest, Since: q.Since, Until: q.Until, OnTimeout: q.OnTimeout,
	}
}

// asked knows what is asked. Those who look at once share one reading of all questions, which hold what they show.
type asked struct {
	store *kv.Store
	turn  chan struct{} // who holds it reads, or takes what was read
	all   []asking
	at    time.Time
	old   atomic.Bool // one was answered since
}

// askedFor is for how long a reading is as good as a new one.
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
	var all []asking
	every := subjects.Run{Tenant: "*"}
	if err := a.store.Archive.Questions(ctx, every, func(q *outcome.Question) { all = append(all, askingOf(q)) }); err != nil {
		a.old.Store(true)
		return nil, err
	}
	slices.SortStableFunc(all, func(x, y asking) int { return x.Since.Compare(y.Since) })
	a.all, a.at = all, time.Now()
	return all, nil
}

// forget has the questions read anew: one was answered.
func (a *asked) forget() { a.old.Store(true) }
