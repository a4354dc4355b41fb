package tool

import (
	"errors"
	"regexp/syntax"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// budget bounds the work of one check, in steps that are the same on every machine and under every load: a verdict must
// not depend on them. A schema of a few lines can ask for 2^64 evaluations, as in a chain of definitions that each
// refer twice to the next, or for as many as there are keywords and items together. The validator offers no way to stop
// it, but asks every subschema's format before it goes into a value, and goes no deeper where that fails. Type, const
// and enum come before the format; so each subschema pays in advance for those of the ones that it hands the value's
// parts to.
type budget struct {
	mu    sync.Mutex // held during a check: the formats know no other
	given int
	left  int
}

var errBudget = errors.New("too many steps")

// The steps of a check: a fixed number, so many for each byte of the value, and never more than maxSteps: a few seconds
// of work for the largest value that there is.
const (
	fixedSteps   = 100_000
	stepsPerByte = 8
	maxSteps     = 64 << 20
)

// price is what one evaluation of a subschema costs.
type price struct {
	fixed int  // whatever the value is
	item  int  // for each item of an array
	prop  int  // for each property of an object
	char  int  // for each 16 bytes of a string
	deep  bool // for each part of the value, however deep: its items must differ
}

func (b *budget) install(all map[string]*jsonschema.Schema) {
	for _, s := range all {
		if s.Bool != nil {
			continue
		}
		own, p := s.Format, priceOf(s)
		f := &jsonschema.Format{Name: "budget", Validate: func(v any) error { return b.spend(v, p) }}
		if own != nil {
			f.Name = own.Name
			f.Validate = func(v any) error {
				if err := b.spend(v, p); err != nil {
					return err
				}
				return own.Validate(v)
			}
		}
		s.Format = f
	}
}

func (b *budget) spend(v any, p *price) error {
	if b.left < 0 {
		return errBudget
	}
	b.left -= p.fixed
	switch v := v.(type) {
	case map[string]any:
		b.left -= len(v) * p.prop
	case []any:
		b.left -= len(v) * p.item
		if p.deep && b.left >= 0 {
			b.left -= parts(v, b.left+1)
		}
	case string:
		b.left -= len(v) / 16 * p.char
	}
	if b.left < 0 {
		return errBudget
	}
	return nil
}

// parts counts the values within a value, up to about most.
func parts(v any, most int) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			if n += parts(x, most-n); n > most {
				break
			}
		}
	case []any:
		for _, x := range v {
			if n += parts(x, most-n); n > most {
				break
			}
		}
	}
	return n
}

// priceOf works out what an evaluation of a subschema costs.
func priceOf(s *jsonschema.Schema) *price {
	p := &price{fixed: 1 + len(s.Required) + len(s.DependentRequired) + len(s.Dependencies), item: 1, prop: 1, char: 1,
		deep: s.UniqueItems}
	for _, same := range [][]*jsonschema.Schema{{s.Not, s.If, s.Then, s.Else, s.Ref, s.RecursiveRef, s.ContentSchema},
		s.AllOf, s.AnyOf, s.OneOf} {
		for _, x := range same {
			p.fixed += entry(x)
		}
	}
	if s.DynamicRef != nil {
		p.fixed += entry(s.DynamicRef.Ref)
	}
	for _, x := range s.DependentSchemas {
		p.fixed += entry(x)
	}
	most := 0
	for _, x := range append(anySchemas(s.Items), s.PrefixItems...) {
		most = max(most, entry(x))
	}
	p.item += most + entry(s.Items2020) + entry(s.Contains) + entry(s.UnevaluatedItems)
	for _, x := range anySchemas(s.AdditionalItems) {
		p.item += entry(x)
	}
	most = 0
	for _, x := range s.Properties {
		most = max(most, entry(x))
	}
	p.prop += most + entry(s.PropertyNames) + entry(s.UnevaluatedProperties)
	for re, x := range s.PatternProperties {
		p.prop += entry(x) + regexpSteps(re)
	}
	for _, x := range anySchemas(s.AdditionalProperties) {
		p.prop += entry(x)
	}
	if s.Pattern != nil {
		p.fixed += regexpSteps(s.Pattern)
		p.char += regexpSteps(s.Pattern)
	}
	return p
}

// entry is what a subschema costs before its own format is asked: its type, and the values that it allows.
func entry(s *jsonschema.Schema) int {
	if s == nil {
		return 0
	}
	n := 1
	if s.Const != nil {
		n += parts(*s.Const, MaxSchema)
	}
	if s.Enum != nil {
		n += parts(s.Enum.Values, MaxSchema)
	}
	return n
}

func anySchemas(v any) []*jsonschema.Schema { return appendAny(nil, v) }

// regexpSteps is what a pattern costs for a short text.
func regexpSteps(re jsonschema.Regexp) int {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return MaxPatternSize
	}
	return 1 + patternSize(tree, MaxPatternSize)/8
}

// start begins a check of a value of so many bytes, with no more than most steps.
func (b *budget) start(size, most int) {
	b.mu.Lock()
	b.given = max(min(fixedSteps+stepsPerByte*size, most), 0)
	b.left = b.given
}

// end ends the check, takes what it used from steps, and reports whether that was enough.
func (b *budget) end(steps *int) bool {
	enough := b.left >= 0
	*steps -= b.given - max(b.left, 0)
	b.mu.Unlock()
	return enough
}
