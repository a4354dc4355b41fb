package ui

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

const (
	// mostHeads is how many runs that go on a list may ask about at once.
	mostHeads = 100
	// headFor is for how long a head is as good as a new one, however many look; headWithin is how long the owner has for
	// its answer. An orchestrator that knows of no heads says nothing.
	headFor    = time.Second
	headWithin = time.Second
)

// counts asks the owners of runs that go on for their counts. Those who look at once share one request for each run.
type counts struct {
	store *kv.Store
	life  context.Context // ends with the server
	done  *sync.WaitGroup

	mu   sync.Mutex
	kept map[string]*told
}

// told is a head that was asked for, or is.
type told struct {
	done chan struct{}
	of   *outcome.Head // nil where the owner said nothing, or that the run is over
	at   time.Time     // when it was asked for
}

// heads tells the counts of the runs in the body that go on; of others nothing.
func (h *counts) heads(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		Keys []string `json:"keys"`
	}
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	if len(in.Keys) > mostHeads {
		return nil, fault.New(fault.InvalidValue, "%d runs are asked about, at most %d may be", len(in.Keys), mostHeads)
	}
	asked := map[string]*told{}
	for _, key := range in.Keys {
		run, err := named(r, key)
		if err != nil {
			return nil, err
		}
		asked[key] = h.ask(run)
	}
	out := map[string]*outcome.Head{}
	for key, one := range asked {
		select {
		case <-one.done:
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
		if one.of != nil {
			out[key] = one.of
		}
	}
	return map[string]any{"heads": out, "now": time.Now().UTC()}, nil
}

// ask returns the head of a run as it was told lately, or asks for it.
func (h *counts) ask(run subjects.Run) *told {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if one := h.kept[run.Key()]; one != nil && now.Sub(one.at) < headFor {
		return one
	}
	for key, one := range h.kept { // nobody looks at them any more
		if now.Sub(one.at) > headFor+headWithin {
			delete(h.kept, key)
		}
	}
	one := &told{done: make(chan struct{}), at: now}
	h.kept[run.Key()] = one
	h.done.Go(func() {
		defer close(one.done)
		ctx, cancel := context.WithTimeout(h.life, headWithin)
		defer cancel()
		m, err := h.store.Requests.Request(ctx, subjects.API(run, subjects.VerbHead), nil)
		if err != nil {
			return // nobody answers: what is shown stays as it is
		}
		if said, err := wire.ParseHeadReply(m); err == nil {
			one.of = &said
		}
	})
	return one
}
