package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// set writes the context into the headers of a step, or of a plan.
func (c Context) set(h *header) {
	if c.Len() == 0 {
		return
	}
	h.set(subjects.HeaderContext, string(plainJSON(c.entries())))
	setSecrets(h.Header, c)
}

// setSecrets names the secret keys of some contexts, and those whose values are sealed. Who does not know of these must
// leave the message alone: so its version says.
func setSecrets(h nats.Header, all ...Context) {
	if keys := named(Context.Secret, all); keys != "" {
		h[subjects.HeaderContextSecrets] = []string{keys}
	}
	if keys := named(Context.Sealed, all); keys != "" {
		h[subjects.HeaderContextSealed] = []string{keys}
		h[subjects.HeaderVersion] = sealedVersion
	}
}

// sealedVersion is shared by all messages; nobody writes to it.
var sealedVersion = []string{subjects.SealedVersion}

// named returns the keys that any of the contexts has something to say of, separated by commas.
func named(is func(Context, string) bool, all []Context) string {
	keys := map[string]bool{}
	for _, c := range all {
		for _, k := range c.Keys() {
			if is(c, k) {
				keys[k] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(keys)), ",")
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
	return newContext(values, keysIn(h, subjects.HeaderContextSecrets), keysIn(h, subjects.HeaderContextSealed))
}

func keysIn(h nats.Header, name string) []string {
	return strings.FieldsFunc(get(h, name), func(r rune) bool { return r == ',' || r == ' ' })
}

// RunContext is the context of a whole run: what holds for all steps, and what only some get.
type RunContext struct {
	All   Context
	Steps map[string]Context // by the id of a step of the plan, for all that stands in it
}

// Of returns the context of one step of the plan, or of one that stands in it, named by the ids of the steps down to it: what is
// given for the plan's step wins.
func (r RunContext) Of(path string) Context {
	step, _, _ := strings.Cut(path, "/")
	return r.Steps[step].Over(r.All)
}

// Keys names what there is, in order, without any value.
func (r RunContext) Keys() []outcome.ContextKey {
	var all []outcome.ContextKey
	add := func(step string, c Context) {
		for _, k := range c.Keys() {
			all = append(all, outcome.ContextKey{Key: k, Step: step, Secret: c.Secret(k)})
		}
	}
	add("", r.All)
	for _, id := range slices.Sorted(maps.Keys(r.Steps)) {
		add(id, r.Steps[id])
	}
	return all
}

// set writes the context into the headers of a submitted plan. A key that is secret anywhere is so everywhere.
func (r RunContext) set(h nats.Header) {
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
		h[subjects.HeaderContextSteps] = []string{string(plainJSON(steps))}
	}
	setSecrets(h, all...)
}

// runContextOf reads the context of a submitted plan. A key that is marked secret is so for every step. Errors:
// invalid_value, limit_exceeded.
func runContextOf(h nats.Header) (r RunContext, err error) {
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
	size, written := r.All.size()
	r.Steps = make(map[string]Context, len(steps))
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		c, err := newContext(steps[id], keysIn(h, subjects.HeaderContextSecrets), keysIn(h, subjects.HeaderContextSealed))
		if err != nil {
			return RunContext{}, err
		}
		r.Steps[id] = c
		n, w := c.size()
		size, written = size+n, written+w
	}
	if size > MaxContext {
		return RunContext{}, overContext(size)
	}
	if written > MaxContextHeader {
		return RunContext{}, overHeader(written)
	}
	return r, nil
}

// size returns the bytes of keys and values, as they are and as JSON.
func (c Context) size() (plain, written int) {
	for k, v := range c.entries() {
		plain += len(k) + len(v)
		if c.Sealed(k) {
			plain += sealedSize(v) - len(v)
		}
		written += len(k) + jsonSize(v) + len(`"":"",`)
	}
	return plain, written
}
