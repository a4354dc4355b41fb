package group

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/subjects"
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

// Keeping returns the definitions that a run keeps which was submitted with permissions: those that need some, and those of
// the groups among the permissions.
func (s *Set) Keeping(permissions []string) (all []*Definition) {
	for _, d := range s.all {
		if len(d.Permissions) > 0 || slices.Contains(permissions, subjects.GroupPermission+d.Role) {
			all = append(all, d)
		}
	}
	return all
}

// Permits is what a run may call that was submitted with permissions. nil permits everything.
type Permits struct {
	has   []string
	roles []string // of the groups whose tools it calls alone; nil: any tool
	of    *Set
}

// Permit returns the permits of a run with these permissions, by these groups. A run that was submitted without any list
// has no permits (nil), one with an empty list may call only what needs none. One with groups among them (group:web) may
// call only what a definition of one of these roles holds, whatever provider counts, and has what these definitions need.
func Permit(has []string, s *Set) *Permits {
	p := &Permits{of: s}
	for _, x := range has {
		if role, is := strings.CutPrefix(x, subjects.GroupPermission); is {
			p.roles = append(p.roles, role)
		} else {
			p.has = append(p.has, x)
		}
	}
	return p
}

// NoGroup stands among what a tool lacks for a run that calls the tools of some groups alone, of which it is in none.
const NoGroup = "of a group that holds it"

// Bounded reports whether only the tools of some groups may be called.
func (p *Permits) Bounded() bool { return p != nil && p.roles != nil }

// Lacks returns the permissions that a tool needs and the run has not, sorted; nil where it may call it.
func (p *Permits) Lacks(name string, hints *tool.Annotations) (lacks []string) {
	if p == nil {
		return nil
	}
	in := p.roles == nil
	for _, d := range p.of.all {
		own := slices.Contains(p.roles, d.Role)
		if !own && len(d.Permissions) == 0 || !d.Holds(name, hints) {
			continue
		}
		in = in || own
		for _, x := range d.Permissions {
			if !own && !slices.Contains(p.has, x) {
				lacks = append(lacks, x)
			}
		}
	}
	if !in {
		lacks = append(lacks, NoGroup)
	}
	slices.Sort(lacks)
	return slices.Compact(lacks)
}
