package tool

import (
	"encoding/json"
	"math/big"
	"reflect"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// comparison holds two schemas against each other.
type comparison struct{ left int }

// maxCompareDepth bounds how deep two schemas are compared.
const maxCompareDepth = 24

// disjoint reports that no value fits both schemas. It reports false wherever it isn't certain.
func (c *comparison) disjoint(a, b *jsonschema.Schema, depth int) bool {
	if c.left--; c.left < 0 || depth > maxCompareDepth || a == nil || b == nil || a.Bool != nil || b.Bool != nil {
		return false
	}
	a, b = alone(a), alone(b)
	common, known := commonTypes(a, b)
	if known && len(common) == 0 || c.noValueOf(a, b) || c.noValueOf(b, a) {
		return true
	}
	if c.branchesDisjoint(a, b, depth) || c.branchesDisjoint(b, a, depth) {
		return true
	}
	if len(common) != 1 {
		return false
	}
	switch common[0] {
	case "object":
		return c.objectsDisjoint(a, b, depth) || c.objectsDisjoint(b, a, depth)
	case "array":
		return (least(a) > 0 || least(b) > 0) && c.disjoint(items(a), items(b), depth+1)
	}
	return false
}

// commonTypes returns the types that a value of both schemas may have; known says that at least one of them names any.
func commonTypes(a, b *jsonschema.Schema) (common []string, known bool) {
	if a.Types == nil && b.Types == nil {
		return nil, false
	}
	for _, t := range []string{"null", "boolean", "integer", "number", "string", "array", "object"} {
		if hasType(a, t) && hasType(b, t) {
			common = append(common, t)
		}
	}
	return common, true
}

// hasType reports whether a schema takes values of a type; of numbers the integers are some.
func hasType(x *jsonschema.Schema, t string) bool {
	if x.Types == nil {
		return true
	}
	names := x.Types.ToStrings()
	return slices.Contains(names, t) || t == "integer" && slices.Contains(names, "number")
}

// noValueOf reports that a has a list of values, none of which fits b.
func (c *comparison) noValueOf(a, b *jsonschema.Schema) bool {
	var values []any
	switch {
	case a.Const != nil:
		values = []any{*a.Const}
	case a.Enum != nil:
		values = a.Enum.Values
	default:
		return false
	}
	if c.left -= len(values); c.left < 0 {
		return false
	}
	return !slices.ContainsFunc(values, func(v any) bool { return c.mayBe(v, b) })
}

// mayBe reports whether a value fits a schema, as far as types and lists of values tell.
func (c *comparison) mayBe(v any, x *jsonschema.Schema) bool {
	t := ""
	switch v := v.(type) {
	case nil:
		t = "null"
	case bool:
		t = "boolean"
	case string:
		t = "string"
	case []any:
		t = "array"
	case map[string]any:
		t = "object"
	case json.Number:
		t = "number"
		if r, ok := new(big.Rat).SetString(string(v)); !ok || r.IsInt() {
			t = "integer"
		}
	default:
		return true
	}
	if !hasType(x, t) {
		return false
	}
	var values []any
	switch {
	case x.Const != nil:
		values = []any{*x.Const}
	case x.Enum != nil:
		values = x.Enum.Values
	default:
		return true
	}
	if c.left -= len(values); c.left < 0 || t == "array" || t == "object" || t == "integer" || t == "number" {
		return true // 1 and 1.0 are equal
	}
	return slices.ContainsFunc(values, func(w any) bool { return reflect.DeepEqual(v, w) })
}

// branchesDisjoint compares what stands under anyOf, oneOf, allOf and $ref of a with b.
func (c *comparison) branchesDisjoint(a, b *jsonschema.Schema, depth int) bool {
	for _, some := range [][]*jsonschema.Schema{a.AnyOf, a.OneOf} {
		if len(some) > 0 && !slices.ContainsFunc(some, func(x *jsonschema.Schema) bool {
			return !c.disjoint(x, b, depth+1)
		}) {
			return true
		}
	}
	for _, all := range append(slices.Clip(a.AllOf), a.Ref) {
		if all != nil && c.disjoint(all, b, depth+1) {
			return true
		}
	}
	return false
}

// objectsDisjoint reports that an object of both schemas lacks a property that a requires, or has one that fits
// neither.
func (c *comparison) objectsDisjoint(a, b *jsonschema.Schema, depth int) bool {
	for _, name := range a.Required {
		if closedFor(a, name) || closedFor(b, name) || c.disjoint(property(a, name), property(b, name), depth+1) {
			return true
		}
	}
	return false
}

func closedFor(x *jsonschema.Schema, name string) bool {
	return x.Properties[name] == nil && x.AdditionalProperties == false && len(x.PatternProperties) == 0
}

// property returns the schema of a property, where one is declared for it or for all others.
func property(x *jsonschema.Schema, name string) *jsonschema.Schema {
	if p := x.Properties[name]; p != nil || len(x.PatternProperties) > 0 {
		return p
	}
	more, _ := x.AdditionalProperties.(*jsonschema.Schema)
	return more
}

func least(x *jsonschema.Schema) int {
	if x.MinItems == nil {
		return 0
	}
	return *x.MinItems
}

// items returns the schema of all items; nil where they may differ.
func items(x *jsonschema.Schema) *jsonschema.Schema {
	if len(x.PrefixItems) > 0 {
		return nil
	}
	if all, old := x.Items.(*jsonschema.Schema); old {
		return all
	}
	return x.Items2020
}
