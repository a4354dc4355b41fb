package group

import (
	"cmp"
	"slices"

	"github.com/stepjet/stepjet/tool"
)

// Set is all groups that there are, as of one moment. It is never changed.
type Set struct{ all []*Definition }

// NewSet returns the set of some definitions that were parsed.
func NewSet(all []*Definition) *Set {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b *Definition) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Provider, b.Provider))
	})
	return &Set{sorted}
}

// All returns the definitions: by role, those of one in the order in which they count.
func (s *Set) All() []*Definition { return s.all }

// Roles returns the roles of all groups, sorted.
func (s *Set) Roles() []string {
	var roles []string
	for _, d := range s.all {
		roles = append(roles, d.Role)
	}
	return slices.Compact(roles)
}

// Live is a tool that is registered.
type Live struct {
	Name  string
	Hints *tool.Annotations
}

// Resolve returns the definition that counts for a role, and its tools, sorted by name: the first by priority of which
// one tool at least is live. Without such a one it is the first, with no tools; nil for a role that nobody defines.
func (s *Set) Resolve(role string, live []Live) (d *Definition, tools []string) {
	for _, x := range s.all {
		if x.Role != role {
			continue
		}
		for _, t := range live {
			if x.Holds(t.Name, t.Hints) {
				tools = append(tools, t.Name)
			}
		}
		if d == nil || len(tools) > 0 {
			d = x
		}
		if len(tools) > 0 {
			slices.Sort(tools)
			return d, slices.Compact(tools)
		}
	}
	return d, nil
}

// Permissions returns what it takes to call a tool: those of all groups that hold it, sorted; nil for nothing.
func (s *Set) Permissions(name string, hints *tool.Annotations) (all []string) {
	for _, d := range s.all {
		if len(d.Permissions) > 0 && d.Holds(name, hints) {
			all = append(all, d.Permissions...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Guarding returns the definitions that need permissions, which is what a run keeps that was submitted with some.
func (s *Set) Guarding() (all []*Definition) {
	for _, d := range s.all {
		if len(d.Permissions) > 0 {
			all = append(all, d)
		}
	}
	return all
}

// Permits is what a run may call that was submitted with permissions. nil permits everything.
type Permits struct {
	has []string
	of  *Set
}

// Permit returns the permits of a run with these permissions, by these groups. A run that was submitted without any list
// has no permits (nil), one with an empty list may call only what needs none.
func Permit(has []string, s *Set) *Permits { return &Permits{has, s} }

// Lacks returns the permissions that a tool needs and the run has not, sorted; nil where it may call it.
func (p *Permits) Lacks(name string, hints *tool.Annotations) []string {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(p.of.Permissions(name, hints), func(x string) bool { return slices.Contains(p.has, x) })
}
