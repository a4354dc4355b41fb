package provider

import "sync"

// mostRefused bounds the schemas that are remembered of a model: agents with tools of their own, and callers with schemas of
// their own, make new ones as long as a worker runs.
const mostRefused = 1_000

// refusedSchemas are those that a model takes none of answers by, as its provider has said; the last of them, where there are too
// many. One that was forgotten is asked by once more, and refused. The zero value is none.
type refusedSchemas struct {
	mu    sync.Mutex
	all   map[string]bool
	order []string // as a ring, once it is full
	next  int      // the oldest of a full ring
}

func (s *refusedSchemas) has(schema string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[schema]
}

func (s *refusedSchemas) add(schema string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all[schema]: // two requests by it were refused at once
		return
	case s.all == nil:
		s.all = map[string]bool{}
	}
	if len(s.order) < mostRefused {
		s.order = append(s.order, schema)
	} else {
		delete(s.all, s.order[s.next])
		s.order[s.next] = schema
		s.next = (s.next + 1) % mostRefused
	}
	s.all[schema] = true
}
