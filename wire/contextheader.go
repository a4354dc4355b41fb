package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// set writes the context into the headers of a step, or of a plan.
func (c Context) set(h *header) {
	if c.Len() == 0 {
		return
	}
	b, _ := json.Marshal(c.entries()) // strings can't fail
	h.set(subjects.HeaderContext, string(b))
	setSecrets(h.Header, c)
}

// setSecrets names the secret keys of some contexts.
func setSecrets(h nats.Header, all ...Context) {
	secrets := map[string]bool{}
	for _, c := range all {
		for _, k := range c.Keys() {
			if c.Secret(k) {
				secrets[k] = true
			}
		}
	}
	if len(secrets) > 0 {
		h[subjects.HeaderContextSecrets] = []string{strings.Join(slices.Sorted(maps.Keys(secrets)), ",")}
	}
}

// ContextOf reads the context of a message. The error, invalid_value or limit_exceeded, says what is wrong with it.
func ContextOf(h nats.Header) (Context, error) {
	raw := get(h, subjects.HeaderContext)
	if raw == "" {
		return Context{}, nil
	}
	var values map[string]string
	if json.Unmarshal([]byte(raw), &values) != nil {
		return Context{}, fault.New(fault.InvalidValue, "%s holds no JSON object of strings", subjects.HeaderContext).
			WithHint(`write {"key": "value"}; every value is a string`)
	}
	return NewContext(values, contextSecrets(h)...)
}

func contextSecrets(h nats.Header) []string {
	return strings.FieldsFunc(get(h, subjects.HeaderContextSecrets), func(r rune) bool { return r == ',' || r == ' ' })
}

// RunContext is the context of a whole run: what holds for all steps, and what only some get.
type RunContext struct {
	All   Context
	Steps map[string]Context // by step id
}

// Of gives the context of one step: its own entries win.
func (r RunContext) Of(step string) Context { return r.Steps[step].Over(r.All) }

// Set writes the context into the headers of a submitted plan. A key that is secret anywhere is so everywhere.
func (r RunContext) Set(h nats.Header) {
	if r.All.Len() == 0 && len(r.Steps) == 0 {
		return
	}
	r.All.set(&header{Header: h})
	all := []Context{r.All}
	steps := map[string]map[string]string{}
	for id, c := range r.Steps {
		if c.Len() > 0 {
			steps[id] = c.entries()
			all = append(all, c)
		}
	}
	if len(steps) > 0 {
		b, _ := json.Marshal(steps) // strings can't fail
		h[subjects.HeaderContextSteps] = []string{string(b)}
	}
	setSecrets(h, all...)
}

// RunContextOf reads the context of a submitted plan. A key that is marked secret is so for every step. Errors:
// invalid_value, limit_exceeded.
func RunContextOf(h nats.Header) (r RunContext, err error) {
	if r.All, err = ContextOf(h); err != nil {
		return RunContext{}, err
	}
	raw := get(h, subjects.HeaderContextSteps)
	if raw == "" {
		return r, nil
	}
	var steps map[string]map[string]string
	if json.Unmarshal([]byte(raw), &steps) != nil {
		return RunContext{}, fault.New(fault.InvalidValue, "%s holds no JSON object of objects of strings", subjects.HeaderContextSteps).
			WithHint(`write {"step": {"key": "value"}}`)
	}
	size := r.All.size()
	r.Steps = make(map[string]Context, len(steps))
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		c, err := NewContext(steps[id], contextSecrets(h)...)
		if err != nil {
			return RunContext{}, err
		}
		r.Steps[id] = c
		size += c.size()
	}
	if size > MaxContext {
		return RunContext{}, overContext(size)
	}
	return r, nil
}

// size gives the bytes of keys and values.
func (c Context) size() (n int) {
	for k, v := range c.entries() {
		n += len(k) + len(v)
	}
	return n
}
