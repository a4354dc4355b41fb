package server

import (
	"sync"

	"github.com/stepjet/stepjet/catalog/search"
	"github.com/stepjet/stepjet/tool"
)

// shelf holds a tenant's tools as they stand in the registry.
type shelf struct {
	mu        sync.Mutex
	tools     []*tool.Definition
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
	s.tools, s.index, s.exposed, s.revisions = tools, index, exposed, revisions
	return before
}

// one returns the exposed tool of a name on the wire.
func (s *shelf) one(name string) *tool.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.exposed[name]
}

// find searches the tenant's tools, those of a group where one is named. Errors: InvalidArguments for a group that there
// is not.
func (s *shelf) find(query string, most int, in *role) ([]*tool.Definition, error) {
	s.mu.Lock()
	index, tools := s.index, s.tools
	s.mu.Unlock()
	if in == nil {
		return index.Search(query, most), nil
	}
	held, err := in.holds(tools)
	if err != nil {
		return nil, err
	}
	return index.SearchAmong(query, most, func(d *tool.Definition) bool { return held[d.Name] }), nil
}
