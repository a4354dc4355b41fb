package reference

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// A value is derived where all that it refers to is over, without any record but that of one that reads a blob.

// maxValues is the most bytes of all values of a run.
const maxValues = 64 << 20

var errValue = errors.New("invalid_value")

// parseValue reads a step's value, and the expressions in it.
func (s *PlanStep) parseValue(v *value, step *value) error {
	if v == nil {
		return nil
	}
	for _, other := range []string{"tool", "arguments", "timeout", "retry"} {
		if step.option(other) != nil {
			return errValue
		}
	}
	s.Value, s.arguments = true, v
	return markCalcs(v)
}

// markCalcs finds the calculations within a value.
func markCalcs(v *value) error {
	if v.kind != '{' && v.kind != '[' {
		return nil
	}
	if text := v.get("$calc"); text != nil && len(v.members) == 1 {
		if text.kind != '"' {
			return errValue
		}
		var err error
		v.calc, err = parseCondition(text)
		return err
	}
	for _, m := range v.members {
		if err := markCalcs(m.value); err != nil {
			return err
		}
	}
	return nil
}

// calculated returns what a calculation comes to.
func (r *resolver) calculated(c *condition) []byte {
	r.alone = c.alone(nil)
	v := r.evaluate(c)
	if r.err != nil {
		return nil
	}
	return v.raw
}

// call evaluates a function.
func (r *resolver) call(name string, parts []*condition) *value {
	var args []*value
	for _, part := range parts {
		args = append(args, r.evaluate(part))
		if r.err != nil {
			return nothing
		}
	}
	if name != "[" {
		return r.reduce(name, args)
	}
	var raws [][]byte
	for _, v := range args {
		raws = append(raws, v.raw)
	}
	list, _ := readResult([]byte("[" + string(bytes.Join(raws, []byte(","))) + "]"))
	return list
}

// Derive returns what a value comes to, where there is room for so many bytes.
func (p *Plan) Derive(step, room int, s Sight) ([]byte, *Err) {
	out, err := p.derive(step, s)
	switch {
	case err != nil:
		return nil, err
	case len(out) > room:
		return nil, &Err{Code: codeTooLarge, Message: "there is no room for it"}
	}
	if _, deep := read(out); errors.Is(deep, errDepth) {
		return nil, &Err{Code: codeTooLarge, Message: "it nests too deep"}
	}
	return out, nil
}

func (p *Plan) derive(step int, s Sight) ([]byte, *Err) {
	of := &p.Steps[step]
	one := func(item []byte) ([]byte, *Err) {
		r := resolver{plan: p, sight: s, as: of.As, item: item, deriving: true}
		return r.resolve(of.arguments), r.err
	}
	if !of.ForEach {
		return one(nil)
	}
	list, err := p.Items(step, s)
	if err != nil {
		return nil, err
	}
	var items []Step
	for i, item := range list {
		data, err := one(item)
		if err != nil {
			return nil, &Err{Code: err.Code, Message: fmt.Sprintf("item %d: %s", i, err.Message)}
		}
		items = append(items, Step{Status: succeeded, Result: data})
	}
	return entries(items), nil
}

// settleValue ends a step with its value, or with what a record says of it.
func (r *run) settleValue(i int) {
	s, told := &r.steps[i], r.values[i]
	if told == nil {
		told = &ToldValue{}
		told.JSON, told.Err = r.plan.Derive(i, maxValues-r.held, r.sight())
	}
	if told.Err != nil {
		s.fail(told.Err)
		return
	}
	r.held += len(told.JSON)
	s.Status, s.Result, r.blobs[i] = succeeded, told.JSON, told.Blob
}

// building is whether a step's value can't be told until a record says it, since something that it reads lies in a blob.
func (r *run) building(i int) bool {
	s := &r.plan.Steps[i]
	if !s.Value || r.values[i] != nil || r.spoiler(i) >= 0 || r.untaken(i) {
		return false
	}
	if holds, err := r.holds(i); !holds || err != nil {
		return false
	}
	refs, _ := references(s.arguments)
	if s.ForEach {
		some, _ := references(s.in)
		refs = append(refs, some...)
	}
	return slices.ContainsFunc(refs, func(x ref) bool {
		d := r.plan.index(x.id)
		return x.of == ofResult && d >= 0 && r.steps[d].Status == succeeded && r.blobs[d]
	})
}
