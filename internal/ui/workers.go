package ui

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// staff knows which workers live. It begins to listen when somebody first asks, and ends with the page.
type staff struct {
	store *kv.Store

	mu    sync.Mutex
	heard *kv.Workers
	until time.Time // before it, workers that are well may still be unheard
}

// listen returns the workers that live, as far as they were heard, and when those that are well have said so.
func (s *staff) listen(ctx context.Context) (heard *kv.Workers, by time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard == nil {
		if s.heard, err = s.store.Beats().Hear(ctx); err != nil {
			s.heard = nil
			return nil, by, err
		}
		s.until = time.Now().Add(kv.AnswerWithin)
	}
	return s.heard, s.until, nil
}

// hear returns the workers that live, after those that are well have had the time to say so.
func (s *staff) hear(ctx context.Context) (*kv.Workers, error) {
	heard, by, err := s.listen(ctx)
	if err != nil {
		return nil, err
	}
	rest := time.NewTimer(time.Until(by))
	defer rest.Stop()
	select {
	case <-rest.C:
		return heard, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// host is how much of a tool workers say they serve.
type host struct {
	Workers int `json:"workers"`
	Slots   int `json:"slots"`
	Busy    int `json:"busy,omitempty"`
	Held    int `json:"held,omitempty"` // workers that host it and take no calls of it; not among the others
}

// hosts adds up, by tool, what live workers say. It waits for nobody: nil says that it isn't known, or not yet. more says
// that there are others, for which there was no room.
func (s *staff) hosts(ctx context.Context) (of map[string]*host, more bool) {
	heard, by, err := s.listen(ctx)
	if err != nil || time.Now().Before(by) {
		return nil, false
	}
	all, missed := heard.List()
	of, more = map[string]*host{}, missed > 0
	for i := range all {
		if all[i].Leaving {
			continue
		}
		more = more || all[i].More > 0
		for _, t := range all[i].Tools {
			h := of[t.Tool]
			if h == nil {
				h = &host{}
				of[t.Tool] = h
			}
			if t.Held {
				h.Held++
				continue
			}
			h.Workers++
			h.Slots += t.Slots
			h.Busy += t.Busy
		}
	}
	return of, more
}

func (s *staff) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard != nil {
		s.heard.Stop()
	}
}

// member is a live orchestrator.
type member struct {
	ID         string `json:"id"`
	Version    string `json:"version,omitempty"`
	Partitions []int  `json:"partitions"`
	Leaving    bool   `json:"leaving,omitempty"`
}

// members returns the live orchestrators, by id.
func (s *staff) members(ctx context.Context) ([]member, error) {
	said, err := s.store.Members.Said(ctx)
	if err != nil {
		return nil, err
	}
	all := []member{}
	for id, m := range said {
		x := member{ID: id, Version: m.Version, Partitions: []int{}, Leaving: m.Leaving}
		for p := range subjects.Partitions {
			if m.Serves>>p&1 == 1 {
				x.Partitions = append(x.Partitions, p)
			}
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// workers lists who lives. Workers serve all tenants, and what they say tells of all: so it is for those who see all.
func (s *staff) workers(_ http.ResponseWriter, r *http.Request) (any, error) {
	if who := principal(r); who.Tenants != nil {
		return nil, fault.New(fault.Permission, "%s sees some tenants, and workers work for all", who.Name).
			WithHint(`a token with "tenants": ["*"] shows them`)
	}
	heard, err := s.hear(r.Context())
	if err != nil {
		return nil, err
	}
	all, missed := heard.List()
	if all == nil {
		all = []tool.Worker{}
	}
	out := struct {
		Workers       []tool.Worker `json:"workers"`
		Missed        bool          `json:"missed,omitempty"` // there are more than are listed
		Orchestrators []member      `json:"orchestrators,omitempty"`
		// Unknown says why the orchestrators are not known.
		Unknown *fault.Error `json:"unknown,omitempty"`
		Now     time.Time    `json:"now"`
	}{Workers: all, Missed: missed > 0, Now: time.Now().UTC()}
	if out.Orchestrators, err = s.members(r.Context()); err != nil {
		out.Orchestrators, out.Unknown = nil, fault.As(err)
	}
	return out, nil
}
