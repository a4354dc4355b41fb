package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
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
	sealed map[string]bool // whose values are sealed; secret too
}

// Limits of a run's context.
const (
	// MaxContext is the most bytes of all keys and values, those for single steps included.
	MaxContext = 8 << 10
	// MaxContextHeader is the most bytes of each of its headers. JSON writes a control character in six bytes, and each
	// step carries the header.
	MaxContextHeader = 16 << 10
	// MaxContextKey is the longest key: 1 to 64 of [A-Za-z0-9_.-].
	MaxContextKey = 64
)

// NewContext makes a context of values, of which the keys named are secret. The error names the key that is outside the
// grammar or whose value is no text (invalid_value), or the limit that was passed (limit_exceeded); it holds no value.
func NewContext(values map[string]string, secrets ...string) (Context, error) {
	return newContext(values, secrets, nil)
}

// newContext also takes the keys whose values are sealed. Of such a value what is sealed in it counts.
func newContext(values map[string]string, secrets, sealed []string) (Context, error) {
	size, written := 0, 0
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if !ValidContextKey(k) {
			return Context{}, fault.New(fault.InvalidValue, "%q is no context key", text.Clip(k, 80)).
				WithHint("a key is 1 to %d of A-Z a-z 0-9 _ . -", MaxContextKey)
		}
		if !utf8.ValidString(values[k]) {
			return Context{}, fault.New(fault.InvalidValue, "the value of the context key %q is not UTF-8", k)
		}
		plain := len(values[k])
		if slices.Contains(sealed, k) {
			if plain = sealedSize(values[k]); plain < 0 {
				return Context{}, notSealed(k)
			}
		}
		size += len(k) + plain
		written += len(k) + jsonSize(values[k]) + len(`"":"",`)
	}
	if size > MaxContext {
		return Context{}, overContext(size)
	}
	if written > MaxContextHeader {
		return Context{}, overHeader(written)
	}
	b := bag{values: maps.Clone(values), secret: map[string]bool{}, sealed: map[string]bool{}}
	for _, k := range secrets {
		if _, ok := values[k]; ok { // else it is the mark of a key that a step may bring
			b.secret[k] = true
		}
	}
	for _, k := range sealed {
		if _, ok := values[k]; ok {
			b.secret[k], b.sealed[k] = true, true
		}
	}
	return b.context(), nil
}

func overContext(size int) error {
	return fault.New(fault.LimitExceeded, "the context has %d bytes, at most %d are allowed", size, MaxContext).
		WithHint("hand large values over by reference")
}

func overHeader(written int) error {
	return fault.New(fault.LimitExceeded, "the context has %d bytes as JSON, at most %d are allowed", written, MaxContextHeader).
		WithHint("it has too many control characters, quotes or backslashes; encode such values, for example as base64")
}

// jsonSize returns the bytes of a string as JSON, without its quotes.
func jsonSize(s string) (n int) {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			n += 2
		case c < ' ', strings.HasPrefix(s[i:], "\u2028"), strings.HasPrefix(s[i:], "\u2029"):
			n += 6
		default:
			n++
		}
	}
	return n
}

// plainJSON writes strings without the escapes that only HTML needs, which are six bytes each.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings can't fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// put adds an entry of another context while the bag is filled.
func (b bag) put(k, v string, from Context) {
	b.values[k] = v
	if from.Secret(k) {
		b.secret[k] = true
	}
	if from.Sealed(k) {
		b.sealed[k] = true
	}
}

// context returns the bag as a context; one without entries is the zero Context, however it came about.
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

// ContextVariable returns the environment variable of a context key, behind a prefix: upper-cased, all but letters and
// digits as "_".
func ContextVariable(prefix, key string) string {
	return prefix + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, key)
}

// entries returns the values, not to be changed.
func (c Context) entries() map[string]string {
	if c.bag == nil {
		return nil
	}
	return (*c.bag).values
}

// Get returns a value, secret or not, and whether it is there.
func (c Context) Get(key string) (string, bool) {
	v, ok := c.entries()[key]
	return v, ok
}

// Secret reports whether a key's value is secret.
func (c Context) Secret(key string) bool { return c.bag != nil && (*c.bag).secret[key] }

// Keys returns the keys, sorted.
func (c Context) Keys() []string { return slices.Sorted(maps.Keys(c.entries())) }

// Len returns the number of keys.
func (c Context) Len() int { return len(c.entries()) }

// Over returns c with the entries of below where c has none: what is said of a step wins over what is said of its run.
func (c Context) Over(below Context) Context {
	if c.Len() == 0 {
		return below
	}
	both := bag{maps.Clone((*c.bag).values), maps.Clone((*c.bag).secret), maps.Clone((*c.bag).sealed)}
	for k, v := range below.entries() {
		if _, ok := both.values[k]; !ok {
			both.put(k, v, below)
		}
	}
	return both.context()
}

// Only returns the entries whose key is wanted.
func (c Context) Only(want func(key string) bool) Context {
	if c.Len() == 0 {
		return Context{}
	}
	some := bag{map[string]string{}, map[string]bool{}, map[string]bool{}}
	for k, v := range c.entries() {
		if want(k) {
			some.put(k, v, c)
		}
	}
	return some.context()
}

// shown returns the entries with secrets hidden.
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

// String returns the entries as JSON with secrets hidden.
func (c Context) String() string {
	return string(plainJSON(c.shown()))
}

// GoString hides secrets from %#v too.
func (c Context) GoString() string { return "wire.Context" + c.String() }

// MarshalJSON writes the entries with secrets hidden: a context that lands in a document by mistake gives nothing away.
// Both of slog's handlers hide them too, by this and String.
func (c Context) MarshalJSON() ([]byte, error) { return json.Marshal(c.shown()) }
