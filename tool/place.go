package tool

import (
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Elements of a path that go on with items of an array.
const (
	EveryItem = -3 // all of them: what they come to is a list
	AnyItem   = -4 // one of them, whichever
)

// Place is what a schema says of where a path leads to.
type Place struct {
	// Impossible is set where no valid value has anything there, Undeclared where the schema allows it, but declares
	// only other properties. At is the element of the path that leads nowhere, Names are the properties declared in its
	// place, sorted, Types the types of the value that it goes into.
	Impossible, Undeclared bool
	At                     int
	Names, Types           []string
	// Optional says that a valid value may have nothing there.
	Optional bool

	x    *jsonschema.Schema // of what is there; nil for one that nobody knows
	list bool               // what is there is a list of such values
}

// searchSteps bounds the work of one look at a schema, or of one comparison. Where it isn't enough, the answer is that
// everything is possible.
const searchSteps = 2000

// Find follows a path through the schema. It holds for every valid value: what it calls impossible is there in none.
func (s *Schema) Find(path []Elem) Place {
	if s == nil || s.s == nil || s.single != nil {
		return Place{}
	}
	f := search{path: path, left: searchSteps}
	return f.at(s.s, 0)
}

// TypePlace is a place of which nothing but the type of its value is known.
func TypePlace(name string, optional bool) Place {
	return Place{x: typeSchema(name), Optional: optional}
}

// Listed is the place of a list of what is at p.
func (p Place) Listed() Place {
	p.list, p.Optional = true, false
	return p
}

func typeSchema(name string) *jsonschema.Schema {
	var t jsonschema.Types
	t.Add(name)
	return &jsonschema.Schema{DraftVersion: 2020, Types: &t}
}

var anyArray = typeSchema("array")

// Kinds are the types that a value there may have; nil where it is left open.
func (p Place) Kinds() []string {
	switch {
	case p.list:
		return []string{"array"}
	case p.x == nil:
		return nil
	}
	return typesOf(alone(p.x))
}

// MayFit reports whether some value that may be at p fits the schema at q. Only where that is certain of no value, it
// reports false.
func (p Place) MayFit(q Place) bool {
	if q.x == nil || q.list || q.Impossible || p.Impossible {
		return true
	}
	x := p.x
	if p.list {
		x = anyArray
	}
	if x == nil {
		return true
	}
	c := comparison{left: searchSteps}
	return p.Optional && !c.disjoint(typeSchema("null"), q.x, 0) || !c.disjoint(x, q.x, 0)
}

// Fields returns paths to the declared properties of the value at p, and of objects among them, that may fit the schema
// at q: the shortest first, and no more than most.
func (p Place) Fields(q Place, most int) (all [][]string) {
	type way struct {
		x    *jsonschema.Schema
		path []string
	}
	if p.x == nil || p.list {
		return nil
	}
	left := searchSteps / 10
	for level := []way{{x: p.x}}; len(level) > 0 && len(level[0].path) < 3; {
		var next []way
		for _, w := range level {
			x := alone(w.x)
			for _, name := range slices.Sorted(maps.Keys(x.Properties)) {
				if left--; left < 0 || len(all) == most {
					return all
				}
				field := way{x.Properties[name], append(slices.Clip(w.path), name)}
				if there := (Place{x: field.x}); len(there.Kinds()) > 0 && there.MayFit(q) {
					all = append(all, field.path)
				}
				next = append(next, field)
			}
		}
		level = next
	}
	return all
}

// alone follows a schema that is nothing but a reference to another.
func alone(x *jsonschema.Schema) *jsonschema.Schema {
	for hops := 0; hops < maxRefs && x.Ref != nil && x.Types == nil && x.Properties == nil &&
		x.AdditionalProperties == nil &&
		x.Enum == nil && x.Const == nil && !branches(x) && x.Items2020 == nil && x.Items == nil &&
		len(x.Required) == 0; hops++ {
		x = x.Ref
	}
	return x
}

// search follows one path through a schema.
type search struct {
	path []Elem
	left int
}

// at returns what a schema says of the path from its i-th element on.
func (f *search) at(x *jsonschema.Schema, i int) Place {
	if f.left--; f.left < 0 || x == nil || x.Bool != nil {
		return Place{}
	}
	if x = alone(x); i == len(f.path) {
		return Place{x: x}
	}
	own := f.own(x, i)
	if own.Impossible {
		return own
	}
	for _, all := range append(slices.Clip(x.AllOf), x.Ref) {
		if all != nil {
			if there := f.at(all, i); there.Impossible {
				return there
			}
		}
	}
	for _, some := range [][]*jsonschema.Schema{x.AnyOf, x.OneOf} {
		if len(some) == 0 {
			continue
		}
		if there := f.oneOf(some, i); there.Impossible || own.x == nil && !own.list {
			return there
		}
	}
	if own.Undeclared && (branches(x) || refers(x)) {
		return Place{}
	}
	return own
}

// oneOf returns what alternatives say of the path: something only where no more than one of them leads anywhere.
func (f *search) oneOf(some []*jsonschema.Schema, i int) Place {
	var first, only Place
	possible := 0
	for n, x := range some {
		there := f.at(x, i)
		if n == 0 {
			first = there
		}
		if !there.Impossible {
			only = there
			possible++
		}
	}
	switch possible {
	case 0:
		return first
	case 1:
		only.Optional = true
		only.Undeclared = false
		return only
	}
	return Place{}
}

// own returns what a schema itself says of the path, whatever else has to hold.
func (f *search) own(x *jsonschema.Schema, i int) Place {
	types := x.Types
	object, array := true, true
	if types != nil {
		names := types.ToStrings()
		object, array = slices.Contains(names, "object"), slices.Contains(names, "array")
	}
	nowhere := Place{Impossible: true, At: i}
	if types != nil {
		nowhere.Types = types.ToStrings()
	}
	asObject, asArray := nowhere, nowhere
	if object {
		asObject = f.member(x, i, nowhere)
	}
	if array {
		asArray = f.item(x, i, nowhere)
	}
	switch {
	case !object:
		asArray.Optional = asArray.Optional || len(nowhere.Types) > 1
		return asArray
	case asArray.Impossible:
		asObject.Optional = asObject.Optional || types == nil || len(nowhere.Types) > 1
		return asObject
	case asObject.Impossible:
		asArray.Optional = asArray.Optional || types == nil || len(nowhere.Types) > 1
		return asArray
	}
	return Place{}
}

// member is own for a value that is an object.
func (f *search) member(x *jsonschema.Schema, i int, nowhere Place) Place {
	e := f.path[i]
	if !e.IsKey {
		return nowhere
	}
	if next := x.Properties[e.Key]; next != nil {
		there := f.at(next, i+1)
		there.Optional = there.Optional || !slices.Contains(x.Required, e.Key)
		return there
	}
	if len(x.PatternProperties) > 0 || x.UnevaluatedProperties != nil {
		return Place{}
	}
	nowhere.Names = slices.Sorted(maps.Keys(x.Properties))
	switch more := x.AdditionalProperties.(type) {
	case bool:
		if !more {
			return nowhere
		}
		return Place{}
	case *jsonschema.Schema:
		if more.Bool != nil && !*more.Bool {
			return nowhere
		}
		there := f.at(more, i+1)
		there.Optional = true
		return there
	}
	if len(x.Properties) == 0 {
		return Place{}
	}
	nowhere.Impossible, nowhere.Undeclared = false, true
	return nowhere
}

// item is own for a value that is an array.
func (f *search) item(x *jsonschema.Schema, i int, nowhere Place) Place {
	e := f.path[i]
	if e.IsKey && e.Index < 0 {
		return nowhere
	}
	if e.Index >= 0 && x.MaxItems != nil && *x.MaxItems <= e.Index {
		return nowhere
	}
	var next *jsonschema.Schema
	switch {
	case e.Index >= 0 && e.Index < len(x.PrefixItems):
		next = x.PrefixItems[e.Index]
	case e.Index >= 0 || len(x.PrefixItems) == 0:
		next = x.Items2020
		if all, old := x.Items.(*jsonschema.Schema); old {
			next = all
		}
	}
	there := f.at(next, i+1)
	if e.Index == EveryItem {
		return there.Listed()
	}
	there.Optional = true
	return there
}
