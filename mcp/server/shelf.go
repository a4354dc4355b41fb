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

// all returns the tools that there are.
func (s *shelf) all() []*tool.Definition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// find searches the tenant's tools: of these that a caller sees, those of a group where one is named. Errors: InvalidArguments for a group that there
// is not.
func (s *shelf) find(query string, most int, in *role, b *bound) ([]*tool.Definition, error) {
	s.mu.Lock()
	index, tools := s.index, s.tools
	s.mu.Unlock()
	if in == nil && b == nil {
		return index.Search(query, most), nil
	}
	var held map[string]bool
	if in != nil {
		var err error
		if held, err = in.holds(tools); err != nil {
			return nil, err
		}
	}
	return index.SearchAmong(query, most, func(d *tool.Definition) bool { return (in == nil || held[d.Name]) && b.sees(d) }), nil
}
