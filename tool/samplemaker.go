package tool

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maker puts a sample together. At each place it takes the schemas that hold there together, follows their branches one
// after the other, and proposes values until one is accepted by all.
type maker struct {
	steps  int     // left
	checks *budget // of the checks of what is built
	size   int     // of text and parts, left
	from   int     // the first of the variants of a number or a text to propose: items of a list may have to differ

	depth  int                        // of the value that is being built
	within map[*jsonschema.Schema]int // how often it lies in a value of a schema
	limit  int                        // how often it may lie in another of the same schema
	again  bool                       // something was not built because of the limit
}

// variants is how many numbers or texts are proposed where the first is refused.
const variants = 8

// value returns the first value proposed that all schemas accept, and accept as well.
func (m *maker) value(all []*jsonschema.Schema, accept func(any) bool) (found any, ok bool) {
	groups := make([]group, len(all))
	for i, x := range all {
		groups[i] = group{{x}}
	}
	m.branches(groups, nil, func(flat []*jsonschema.Schema) bool {
		return m.propose(flat, func(v any) bool {
			if m.steps--; m.steps < 0 || !fits(v, all) || !accept(v) {
				return false
			}
			found, ok = v, true
			return true
		})
	})
	return found, ok
}

// group is several ways of which one has to be gone: each is some schemas that hold together.
type group [][]*jsonschema.Schema

// branches calls yield with the schemas that hold on each way through the branches of some, until it returns true.
func (m *maker) branches(todo []group, flat []*jsonschema.Schema, yield func([]*jsonschema.Schema) bool) bool {
	if m.steps--; m.steps < 0 || m.checks.left < 0 {
		return false
	}
	if len(todo) == 0 {
		return yield(flat)
	}
	for _, way := range todo[0] {
		rest, next, possible := slices.Clone(todo[1:]), slices.Clone(flat), true
		for _, x := range way {
			switch {
			case x == nil || slices.Contains(next, x):
			case x.Bool != nil:
				possible = possible && *x.Bool
			default:
				next = append(next, x)
				rest = append(rest, groupsOf(x)...)
			}
		}
		if possible && m.branches(rest, next, yield) {
			return true
		}
	}
	return false
}

// groupsOf returns the schemas that hold where x does, by its keywords that hand the same value on.
func groupsOf(x *jsonschema.Schema) (all []group) {
	for _, same := range append([]*jsonschema.Schema{x.Ref, x.RecursiveRef}, x.AllOf...) {
		if same != nil {
			all = append(all, group{{same}})
		}
	}
	if x.DynamicRef != nil {
		all = append(all, group{{x.DynamicRef.Ref}})
	}
	for _, some := range [][]*jsonschema.Schema{x.AnyOf, x.OneOf} {
		if len(some) > 0 {
			all = append(all, oneOf(some))
		}
	}
	if x.If != nil {
		all = append(all, group{{x.If, x.Then}, {x.Else}})
	}
	return all
}

// oneOf returns a group of single schemas, those of null alone last: they are what is there when nothing is.
func oneOf(some []*jsonschema.Schema) group {
	var g, last group
	for _, x := range some {
		if x.Types != nil && slices.Equal(x.Types.ToStrings(), []string{"null"}) {
			last = append(last, []*jsonschema.Schema{x})
			continue
		}
		g = append(g, []*jsonschema.Schema{x})
	}
	return append(g, last...)
}

// propose calls yield with values that schemas may accept together, until it returns true.
func (m *maker) propose(flat []*jsonschema.Schema, yield func(any) bool) bool {
	listed := false
	for _, x := range flat {
		for _, v := range x.Examples {
			if yield(v) {
				return true
			}
		}
		if x.Default != nil && yield(*x.Default) {
			return true
		}
	}
	for _, x := range flat {
		values := []any(nil)
		if x.Enum != nil {
			values = x.Enum.Values
		}
		if x.Const != nil {
			values = append(values[:len(values):len(values)], *x.Const)
		}
		listed = listed || values != nil
		if slices.ContainsFunc(values, yield) {
			return true
		}
	}
	return !listed && slices.ContainsFunc(kindsOf(flat), func(kind string) bool {
		return m.proposeKind(kind, flat, yield)
	})
}

// proposeKind proposes values of one type.
func (m *maker) proposeKind(kind string, flat []*jsonschema.Schema, yield func(any) bool) bool {
	switch kind {
	case "object", "array":
		v, ok := m.container(kind, flat)
		return ok && yield(v)
	case "string":
		return m.texts(flat, yield)
	case "number", "integer":
		return m.numbers(flat, kind == "integer", yield)
	case "boolean":
		return yield(m.from%2 == 1) || yield(m.from%2 == 0)
	}
	return yield(nil)
}

// kindsOf returns the types that are proposed, in this order: those that all schemas allow, null last; where none says
// anything, first those that a keyword is about.
func kindsOf(flat []*jsonschema.Schema) []string {
	all := []string{"object", "array", "string", "integer", "number", "boolean", "null"}
	typed := false
	for _, x := range flat {
		if x.Types == nil {
			continue
		}
		typed = true
		names := x.Types.ToStrings()
		all = slices.DeleteFunc(all, func(kind string) bool {
			return !contains(names, kind) && (kind != "integer" || !contains(names, "number"))
		})
	}
	if contains(all, "number") { // 0 is one, too
		all = slices.DeleteFunc(all, func(kind string) bool { return kind == "integer" })
	}
	if typed {
		return all
	}
	slices.SortStableFunc(all, func(a, b string) int { return about(flat, b) - about(flat, a) })
	return all
}

// about returns 1 where a keyword of some schemas speaks of values of a type, else 0.
func about(flat []*jsonschema.Schema, kind string) int {
	if slices.ContainsFunc(flat, func(x *jsonschema.Schema) bool {
		switch kind {
		case "object":
			return len(x.Properties)+len(x.Required)+len(x.PatternProperties) > 0 ||
				x.AdditionalProperties != nil || x.MinProperties != nil
		case "array":
			return x.Items2020 != nil || x.Items != nil || x.PrefixItems != nil ||
				x.Contains != nil || x.MinItems != nil
		case "string":
			return x.Pattern != nil || x.MinLength != nil || x.MaxLength != nil
		case "number", "integer":
			return x.Minimum != nil || x.Maximum != nil || x.ExclusiveMinimum != nil || x.ExclusiveMaximum != nil ||
				x.MultipleOf != nil
		}
		return false
	}) {
		return 1
	}
	return 0
}
