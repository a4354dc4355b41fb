package tool

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Sample is a value that nobody returned: what a schema says, made into one, to show what a plan would do with it.
type Sample struct {
	// JSON is the value, which the schema accepts; nil where none was found, which doesn't mean that there is none.
	JSON []byte
	// Example says that the schema's author wrote the value, as a whole: it is the first of "examples" that the schema
	// accepts, or its "const". Any other is the least that could be put together.
	Example bool
}

// Bounds of making one sample. A schema of a few lines can ask for a list of a billion items, or for 2^64 combinations.
const (
	sampleSteps = 20_000   // of building
	sampleCheck = 32 << 10 // bytes of a value whose check may take as long as all checks together
	sampleSize  = 1 << 18  // bytes of text, and parts, of all that is built
	sampleDepth = 60       // of nesting; a result may have 64
)

// SampleOf makes a value that a schema accepts: an example of the author's, else the least that the schema asks for.
// That has required properties only, as few items as may be, and at each place what the schema has there in
// "examples", "const", "default" or first in "enum", else 0, "", false, or the nearest to it that is allowed; a value
// other than null where there is a choice. The same schema has the same sample everywhere.
//
// It is a search, whose work is bounded: patterns that need more than their shortest text, "not", "contains" and
// properties that depend on each other may come to nothing. nil has no sample.
func SampleOf(s *Schema) (sample Sample) {
	switch {
	case s == nil:
		return Sample{}
	case s.s == nil:
		return Sample{JSON: []byte("{}")}
	}
	defer func() { // the validator is not ours
		if recover() != nil {
			sample = Sample{}
		}
	}()
	steps := maxSteps
	s.budget.start(sampleCheck, maxSteps)
	defer func() { s.budget.end(&steps) }()
	if v, ok := authored(s.s); ok {
		return Sample{JSON: writeSample(v), Example: true}
	}
	m := maker{steps: sampleSteps, checks: s.budget, size: sampleSize, within: map[*jsonschema.Schema]int{}}
	// The flattest first: a schema may refer to itself.
	for again := true; again && m.steps > 0 && s.budget.left > 0; m.limit++ {
		m.again = false
		if v, ok := m.value([]*jsonschema.Schema{s.s}, anyValue); ok {
			return Sample{JSON: writeSample(v)}
		}
		again = m.again
	}
	return Sample{}
}

// authored returns what the author of a schema wrote as a value of it.
func authored(root *jsonschema.Schema) (v any, ok bool) {
	for x, hops := root, 0; x != nil && hops < maxRefs; x, hops = x.Ref, hops+1 {
		all := x.Examples
		if x.Const != nil {
			all = append(all[:len(all):len(all)], *x.Const)
		}
		for _, v := range all {
			if fits(v, []*jsonschema.Schema{root}) {
				return v, true
			}
		}
	}
	return nil, false
}

// fits reports whether all of some schemas accept a value.
func fits(v any, all []*jsonschema.Schema) bool {
	for _, x := range all {
		if x.Validate(v) != nil {
			return false
		}
	}
	return true
}

func anyValue(any) bool { return true }

// writeSample writes a decoded value: keys sorted, numbers and text as they are.
func writeSample(v any) []byte {
	b, _ := jsontape.Marshal(v) // it was decoded, or made of the same
	return b
}
