package wire

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Context is out-of-band context: a key-value bag that a submitter hands to the tools of a run beside their arguments
// (who is asking, a correlation id, a credential). It travels in headers alone. It prints, logs and marshals with the
// values of its secrets hidden; Get gives them. A Context is immutable.
type Context struct {
	values map[string]string
	secret map[string]bool
}

// Limits of a run's context.
const (
	// MaxContext is the most bytes of all keys and values, those for single steps included.
	MaxContext = 8 << 10
	// MaxContextKey is the longest key: 1 to 64 of [A-Za-z0-9_.-].
	MaxContextKey = 64
)

// Redacted stands where a secret's value would.
const Redacted = "[secret]"

// NewContext makes a context of values, of which the keys named are secret. The error, invalid_value, names the key that
// is outside the grammar, or the limit that was passed.
func NewContext(values map[string]string, secrets ...string) (Context, error) {
	c := Context{values: maps.Clone(values)}
	size := 0
	for k, v := range values {
		if !validContextKey(k) {
			return Context{}, fault.New(fault.InvalidValue, "%q is no context key", Clip(k, 80)).
				WithHint("a key is 1 to %d of A-Z a-z 0-9 _ . -", MaxContextKey)
		}
		size += len(k) + len(v)
	}
	if size > MaxContext {
		return Context{}, fault.New(fault.LimitExceeded, "the context has %d bytes, at most %d are allowed", size, MaxContext).
			WithHint("hand large values over by reference")
	}
	for _, k := range secrets {
		if _, ok := values[k]; !ok {
			continue // the mark of a key that a step may bring
		}
		if c.secret == nil {
			c.secret = map[string]bool{}
		}
		c.secret[k] = true
	}
	return c, nil
}

func validContextKey(k string) bool {
	if k == "" || len(k) > MaxContextKey {
		return false
	}
	for i := range len(k) {
		switch b := k[i]; {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '_', b == '.', b == '-':
		default:
			return false
		}
	}
	return true
}

// Get gives a value, secret or not, and whether it is there.
func (c Context) Get(key string) (string, bool) {
	v, ok := c.values[key]
	return v, ok
}

// Secret reports whether a key's value is secret.
func (c Context) Secret(key string) bool { return c.secret[key] }

// Keys gives the keys, sorted.
func (c Context) Keys() []string { return slices.Sorted(maps.Keys(c.values)) }

// Len gives the number of keys.
func (c Context) Len() int { return len(c.values) }

// Over gives c with the entries of below where c has none: what is said of a step wins over what is said of its run.
func (c Context) Over(below Context) Context {
	switch {
	case len(c.values) == 0:
		return below
	case len(below.values) == 0:
		return c
	}
	both := Context{values: maps.Clone(below.values), secret: map[string]bool{}}
	for k := range below.secret {
		both.secret[k] = true
	}
	for k, v := range c.values {
		both.values[k] = v
		delete(both.secret, k)
		if c.secret[k] {
			both.secret[k] = true
		}
	}
	return both
}

// Only gives the entries whose key is wanted.
func (c Context) Only(want func(key string) bool) Context {
	var some Context
	for k, v := range c.values {
		if !want(k) {
			continue
		}
		if some.values == nil {
			some.values = map[string]string{}
		}
		some.values[k] = v
		if c.secret[k] {
			if some.secret == nil {
				some.secret = map[string]bool{}
			}
			some.secret[k] = true
		}
	}
	return some
}

// shown gives the entries with secrets hidden.
func (c Context) shown() map[string]string {
	m := make(map[string]string, len(c.values))
	for k, v := range c.values {
		if c.secret[k] {
			v = Redacted
		}
		m[k] = v
	}
	return m
}

// String gives the entries as JSON with secrets hidden.
func (c Context) String() string {
	b, _ := json.Marshal(c.shown()) // strings can't fail
	return string(b)
}

// GoString hides secrets from %#v too.
func (c Context) GoString() string { return "wire.Context" + c.String() }

// MarshalJSON writes the entries with secrets hidden: a context that lands in a document by mistake gives nothing away.
func (c Context) MarshalJSON() ([]byte, error) { return json.Marshal(c.shown()) }

// LogValue hides secrets from logs.
func (c Context) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c Context) set(h nats.Header) {
	if len(c.values) == 0 {
		return
	}
	b, _ := json.Marshal(c.values) // strings can't fail
	h[subjects.HeaderContext] = []string{string(b)}
	if len(c.secret) > 0 {
		h[subjects.HeaderContextSecrets] = []string{strings.Join(slices.Sorted(maps.Keys(c.secret)), ",")}
	}
}

// ContextOf reads the context of a message. The error, invalid_value or limit_exceeded, says what is wrong with it.
func ContextOf(h nats.Header) (Context, error) {
	raw := get(h, subjects.HeaderContext)
	if raw == "" {
		return Context{}, nil
	}
	values, err := contextValues(raw, subjects.HeaderContext)
	if err != nil {
		return Context{}, err
	}
	return NewContext(values, contextSecrets(h)...)
}

func contextValues(raw, header string) (values map[string]string, err error) {
	if err := json.Unmarshal([]byte(raw), &values); err != nil {
		return nil, fault.New(fault.InvalidValue, "%s holds no JSON object of strings", header).
			WithHint(`write {"key": "value"}; every value is a string`)
	}
	return values, nil
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

// Set writes the context into the headers of a submitted plan.
func (r RunContext) Set(h nats.Header) {
	r.All.set(h)
	secrets := maps.Clone(r.All.secret)
	steps := map[string]map[string]string{}
	for id, c := range r.Steps {
		if len(c.values) == 0 {
			continue
		}
		steps[id] = c.values
		for k := range c.secret {
			if secrets == nil {
				secrets = map[string]bool{}
			}
			secrets[k] = true
		}
	}
	if len(steps) > 0 {
		b, _ := json.Marshal(steps) // strings can't fail
		h[subjects.HeaderContextSteps] = []string{string(b)}
	}
	if len(secrets) > 0 {
		h[subjects.HeaderContextSecrets] = []string{strings.Join(slices.Sorted(maps.Keys(secrets)), ",")}
	}
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
	if err := json.Unmarshal([]byte(raw), &steps); err != nil {
		return RunContext{}, fault.New(fault.InvalidValue, "%s holds no JSON object of objects of strings", subjects.HeaderContextSteps).
			WithHint(`write {"step": {"key": "value"}}`)
	}
	size := len(get(h, subjects.HeaderContext))
	r.Steps = make(map[string]Context, len(steps))
	for id, values := range steps {
		if r.Steps[id], err = NewContext(values, contextSecrets(h)...); err != nil {
			return RunContext{}, err
		}
		for k, v := range values {
			size += len(k) + len(v)
		}
	}
	if size > MaxContext {
		return RunContext{}, fault.New(fault.LimitExceeded, "the context of the run has %d bytes, at most %d are allowed", size, MaxContext).
			WithHint("hand large values over by reference")
	}
	return r, nil
}
