package server

import (
	"sync"

	"github.com/stepjet/stepjet/catalog/search"
	"github.com/stepjet/stepjet/tool"
)

// shelf holds a tenant's tools as they stand in the registry.
type shelf struct {
	mu        sync.Mutex
	index     *search.Index
	exposed   map[string]*tool.Definition // by the name on the wire
	revisions map[string]uint64           // those of exposed, in the registry
}

// put takes new tools and returns what was exposed before.
func (s *shelf) put(tools []*tool.Definition, exposed map[string]*tool.Definition, revisions map[string]uint64) (before map[string]uint64) {
	index := search.New(tools)
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.revisions
	s.index, s.exposed, s.revisions = index, exposed, revisions
	return before
}

// one returns the exposed tool of a name on the wire.
func (s *shelf) one(name string) *tool.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exposed[name]
}

// find searches the tenant's tools.
func (s *shelf) find(query string, most int) []*tool.Definition {
	s.mu.Lock()
	index := s.index
	s.mu.Unlock()
	return index.Search(query, most)
}
