package tool

import (
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// container builds an object or an array, unless it would lie in too many others.
func (m *maker) container(kind string, flat []*jsonschema.Schema) (any, bool) {
	if m.depth == sampleDepth {
		return nil, false
	}
	for _, x := range flat {
		if m.within[x] > m.limit {
			m.again = true
			return nil, false
		}
	}
	enter := func(n int) {
		m.depth += n
		for _, x := range flat {
			m.within[x] += n
		}
	}
	enter(1)
	defer enter(-1)
	if kind == "object" {
		return m.object(flat)
	}
	return m.array(flat)
}

// object builds an object of the properties that are required, and of as many more as there have to be.
func (m *maker) object(flat []*jsonschema.Schema) (any, bool) {
	p := properties{flat: slices.Clone(flat), there: map[string]bool{}}
	if !p.gather() || !m.fill(&p) {
		return nil, false
	}
	v := make(map[string]any, len(p.names))
	for _, name := range p.names {
		schemas, possible := memberSchemas(p.flat, name)
		if m.size -= len(name) + 1; !possible || m.size < 0 {
			return nil, false
		}
		member, ok := m.value(schemas, anyValue)
		if !ok {
			return nil, false
		}
		v[name] = member
	}
	return v, true
}

// properties are those that an object is built of.
type properties struct {
	flat  []*jsonschema.Schema // that hold for it, with those that a property brings along
	names []string
	there map[string]bool
	least int // how many there have to be
}

func (p *properties) add(names ...string) {
	for _, name := range names {
		if !p.there[name] {
			p.there[name] = true
			p.names = append(p.names, name)
		}
	}
}

// gather adds what is required, and what that requires in turn. It returns false where there is no end to it.
func (p *properties) gather() bool {
	done := 0
	for i := 0; i < len(p.flat); i++ {
		if i > sampleDepth*sampleDepth {
			return false
		}
		if n := p.flat[i].MinProperties; n != nil {
			p.least = max(p.least, *n)
		}
		p.add(p.flat[i].Required...)
		if i < len(p.flat)-1 {
			continue
		}
		for ; done < len(p.names); done++ {
			p.bring(p.names[done])
		}
	}
	return true
}

// bring adds what schemas ask for where a property is there.
func (p *properties) bring(name string) {
	for _, x := range p.flat {
		p.add(x.DependentRequired[name]...)
		schema := x.DependentSchemas[name]
		switch old := x.Dependencies[name].(type) { // of the drafts before 2019-09
		case []string:
			p.add(old...)
		case *jsonschema.Schema:
			schema = old
		}
		if schema != nil && !slices.Contains(p.flat, schema) {
			p.flat = append(p.flat, schema)
		}
	}
}

// fill adds properties that aren't required until there are enough: those that are declared, then made up.
func (m *maker) fill(p *properties) bool {
	for _, x := range p.flat {
		for _, name := range slices.Sorted(maps.Keys(x.Properties)) {
			if len(p.names) < p.least && possible(x.Properties[name]) {
				p.add(name)
			}
		}
	}
	for i := 0; len(p.names) < p.least; i++ {
		if m.steps--; m.steps < 0 {
			return false
		}
		p.add(m.madeUp(p.flat, i))
	}
	return true
}

func possible(x *jsonschema.Schema) bool { return x.Bool == nil || *x.Bool }

// madeUp returns the i-th name of a property that is not declared.
func (m *maker) madeUp(flat []*jsonschema.Schema, i int) string {
	for _, x := range flat {
		for _, re := range sortedPatterns(x.PatternProperties) {
			if name, ok := m.matching(re, i, 1); ok && re.MatchString(name) {
				return name
			}
		}
	}
	return "p" + itoa(i)
}

// memberSchemas returns the schemas of a property's value; false where there can be none.
func memberSchemas(flat []*jsonschema.Schema, name string) (all []*jsonschema.Schema, possible bool) {
	for _, x := range flat {
		known := false
		if p := x.Properties[name]; p != nil {
			all, known = append(all, p), true
		}
		for _, re := range sortedPatterns(x.PatternProperties) {
			if re.MatchString(name) {
				all, known = append(all, x.PatternProperties[re]), true
			}
		}
		switch other := x.AdditionalProperties.(type) {
		case bool:
			if !known && !other {
				return nil, false
			}
		case *jsonschema.Schema:
			if !known {
				all = append(all, other)
			}
		}
	}
	return all, true
}

func sortedPatterns(of map[jsonschema.Regexp]*jsonschema.Schema) []jsonschema.Regexp {
	return slices.SortedFunc(maps.Keys(of), func(a, b jsonschema.Regexp) int {
		return strings.Compare(a.String(), b.String())
	})
}

// array builds a list of as few items as there may be.
func (m *maker) array(flat []*jsonschema.Schema) (any, bool) {
	least, differ := 0, false
	for _, x := range flat {
		if x.MinItems != nil {
			least = max(least, *x.MinItems)
		}
		least, differ = max(least, containing(x)), differ || x.UniqueItems
	}
	if least > m.size {
		return nil, false
	}
	v := make([]any, 0, least)
	written := map[string]bool{}
	before := m.from
	defer func() { m.from = before }()
	for i := range least {
		schemas, possible := itemSchemas(flat, i)
		if m.size--; !possible || m.size < 0 {
			return nil, false
		}
		if differ {
			m.from = before + i
		}
		item, ok := m.value(schemas, func(x any) bool {
			return !differ || !written[string(writeSample(x))]
		})
		if !ok {
			return nil, false
		}
		if v = append(v, item); differ {
			written[string(writeSample(item))] = true
		}
	}
	return v, true
}

// containing returns how many items have to fit "contains".
func containing(x *jsonschema.Schema) int {
	switch {
	case x.Contains == nil:
		return 0
	case x.MinContains != nil:
		return *x.MinContains
	}
	return 1
}

// itemSchemas returns the schemas of the i-th item of a list; false where there can be none.
func itemSchemas(flat []*jsonschema.Schema, i int) (all []*jsonschema.Schema, possible bool) {
	for _, x := range flat {
		if i < containing(x) {
			all = append(all, x.Contains)
		}
		first, rest := x.PrefixItems, any(nil)
		if x.Items2020 != nil {
			rest = x.Items2020
		}
		switch old := x.Items.(type) { // of the drafts before 2020-12
		case []*jsonschema.Schema:
			first, rest = old, x.AdditionalItems
		case *jsonschema.Schema:
			rest = old
		}
		if i < len(first) {
			all = append(all, first[i])
			continue
		}
		switch rest := rest.(type) {
		case bool:
			if !rest {
				return nil, false
			}
		case *jsonschema.Schema:
			all = append(all, rest)
		}
	}
	return all, true
}
