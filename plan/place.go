package plan

import "github.com/stepjet/stepjet/internal/jsontape"

// place is a JSON pointer that is put together only when somebody asks for it.
type place struct {
	steps  string // pointer of the array of steps; empty for the plan itself
	step   int
	fields [3]string
}

var planPlace = place{}

// stepAt returns the place of a step.
func (p *parser) stepAt(i int) place { return place{steps: p.stepsAt, step: i} }

// in returns the place of a field, at most three deep.
func (a place) in(field string) place {
	for i := range a.fields {
		if a.fields[i] == "" {
			a.fields[i] = field
			break
		}
	}
	return a
}

// below returns the place of a field's value, under the name that the plan gives it.
func (p *parser) below(a place, n int32) place {
	if object := p.inside[n]; object != "" {
		a = a.in(object)
	}
	return a.in(p.keyName(n - 1))
}

func (a place) String() string {
	var b []byte
	if a.steps != "" {
		b = jsontape.AppendIndex([]byte(a.steps), a.step)
	}
	for _, f := range a.fields {
		if f != "" {
			b = jsontape.AppendToken(b, f)
		}
	}
	return string(b)
}
