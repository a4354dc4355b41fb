package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
)

// Context is out-of-band context: a key-value bag that a submitter hands to the tools of a run beside their arguments
// (who is asking, a correlation id, a credential). It travels in headers alone. It prints, logs and marshals with the
// values of its secrets hidden; Get gives them. A Context is immutable.
type Context struct {
	// bag is a pointer to a pointer, so that package fmt, which calls no methods on unexported fields and looks through
	// one pointer, shows an address where a Context lies in one.
	bag **bag
}

// bag is what a context holds; it is never changed.
type bag struct {
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

// NewContext makes a context of values, of which the keys named are secret. The error names the key that is outside the
// grammar or whose value is no text (invalid_value), or the limit that was passed (limit_exceeded); it holds no value.
func NewContext(values map[string]string, secrets ...string) (Context, error) {
	size := 0
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if !ValidContextKey(k) {
			return Context{}, fault.New(fault.InvalidValue, "%q is no context key", Clip(k, 80)).
				WithHint("a key is 1 to %d of A-Z a-z 0-9 _ . -", MaxContextKey)
		}
		if !utf8.ValidString(values[k]) {
			return Context{}, fault.New(fault.InvalidValue, "the value of the context key %q is not UTF-8", k)
		}
		size += len(k) + len(values[k])
	}
	if size > MaxContext {
		return Context{}, overContext(size)
	}
	b := bag{values: maps.Clone(values), secret: map[string]bool{}}
	for _, k := range secrets {
		if _, ok := values[k]; ok { // else it is the mark of a key that a step may bring
			b.secret[k] = true
		}
	}
	return b.context(), nil
}

func overContext(size int) error {
	return fault.New(fault.LimitExceeded, "the context has %d bytes, at most %d are allowed", size, MaxContext).
		WithHint("hand large values over by reference")
}

// put adds an entry while the bag is filled.
func (b bag) put(k, v string, secret bool) {
	b.values[k] = v
	if secret {
		b.secret[k] = true
	}
}

// context gives the bag as a context; one without entries is the zero Context, however it came about.
func (b bag) context() Context {
	if len(b.values) == 0 {
		return Context{}
	}
	p := &b
	return Context{&p}
}

// ValidContextKey reports whether k may be a key: 1 to MaxContextKey of [A-Za-z0-9_.-].
func ValidContextKey(k string) bool {
	return k != "" && len(k) <= MaxContextKey && strings.IndexFunc(k, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.' || r == '-')
	}) < 0
}

// entries gives the values, not to be changed.
func (c Context) entries() map[string]string {
	if c.bag == nil {
		return nil
	}
	return (*c.bag).values
}

// Get gives a value, secret or not, and whether it is there.
func (c Context) Get(key string) (string, bool) {
	v, ok := c.entries()[key]
	return v, ok
}

// Secret reports whether a key's value is secret.
func (c Context) Secret(key string) bool { return c.bag != nil && (*c.bag).secret[key] }

// Keys gives the keys, sorted.
func (c Context) Keys() []string { return slices.Sorted(maps.Keys(c.entries())) }

// Len gives the number of keys.
func (c Context) Len() int { return len(c.entries()) }

// Over gives c with the entries of below where c has none: what is said of a step wins over what is said of its run.
func (c Context) Over(below Context) Context {
	if c.Len() == 0 {
		return below
	}
	both := bag{maps.Clone((*c.bag).values), maps.Clone((*c.bag).secret)}
	for k, v := range below.entries() {
		if _, ok := both.values[k]; !ok {
			both.put(k, v, below.Secret(k))
		}
	}
	return both.context()
}

// Only gives the entries whose key is wanted.
func (c Context) Only(want func(key string) bool) Context {
	if c.Len() == 0 {
		return Context{}
	}
	some := bag{map[string]string{}, map[string]bool{}}
	for k, v := range c.entries() {
		if want(k) {
			some.put(k, v, c.Secret(k))
		}
	}
	return some.context()
}

// shown gives the entries with secrets hidden.
func (c Context) shown() map[string]string {
	m := make(map[string]string, c.Len())
	for k, v := range c.entries() {
		if c.Secret(k) {
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
// Both of slog's handlers hide them too, by this and String.
func (c Context) MarshalJSON() ([]byte, error) { return json.Marshal(c.shown()) }
