package wire

import (
	"encoding/base64"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// A sealed value is "<key id>.<base64url>": 16 hex digits, a dot, and without padding what is sealed, which is
// sealedOverhead bytes longer than the value. Package seal makes and opens it; here only its form is looked at.
const (
	keyIDSize      = 16
	sealedOverhead = 48 // an X25519 public key and the tag of AES-GCM
)

// sealedSize returns the bytes that are sealed in a value, -1 where it is of another form.
func sealedSize(v string) int {
	id, rest, ok := strings.Cut(v, ".")
	if !ok || len(id) != keyIDSize || strings.Trim(id, lowerHex) != "" {
		return -1
	}
	raw, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil || len(raw) < sealedOverhead {
		return -1
	}
	return len(raw) - sealedOverhead
}

func notSealed(key string) error {
	return fault.New(fault.InvalidValue, "the value of the context key %q is said to be sealed, and is not of that form", key).
		WithHint("seal it as docs/protocol.md says, or take the key out of Stepjet-Context-Sealed")
}

// Sealed reports whether a key's value is sealed: Get gives what nobody can read.
func (c Context) Sealed(key string) bool { return c.bag != nil && (*c.bag).sealed[key] }

// AnySealed reports whether any value is sealed.
func (c Context) AnySealed() bool { return c.bag != nil && len((*c.bag).sealed) > 0 }

// Seal returns the context with every secret sealed that is not yet, by a function that is given key and value.
func (c Context) Seal(seal func(key, value string) (string, error)) (Context, error) {
	return c.change(seal, true, func(k string) bool { return c.Secret(k) && !c.Sealed(k) })
}

// Open returns the context with every sealed value opened, by a function that is given key and value.
func (c Context) Open(open func(key, value string) (string, error)) (Context, error) {
	return c.change(open, false, c.Sealed)
}

// change returns the context with some values replaced, which then are sealed or not.
func (c Context) change(each func(key, value string) (string, error), seals bool, which func(string) bool) (Context, error) {
	if c.bag == nil {
		return c, nil
	}
	out := bag{map[string]string{}, map[string]bool{}, map[string]bool{}}
	for _, k := range c.Keys() {
		v := c.entries()[k]
		out.put(k, v, c)
		if !which(k) {
			continue
		}
		changed, err := each(k, v)
		if err != nil {
			return Context{}, err
		}
		out.values[k] = changed
		delete(out.sealed, k)
		if seals {
			out.sealed[k] = true
		}
	}
	return out.context(), nil
}

// HasSecrets reports whether any value is secret.
func (r RunContext) HasSecrets() bool {
	if named(Context.Secret, []Context{r.All}) != "" {
		return true
	}
	for _, c := range r.Steps {
		if named(Context.Secret, []Context{c}) != "" {
			return true
		}
	}
	return false
}

// Seal is Context.Seal for all of a run's.
func (r RunContext) Seal(seal func(key, value string) (string, error)) (RunContext, error) {
	return r.change(func(c Context) (Context, error) { return c.Seal(seal) })
}

// Open is Context.Open for all of a run's.
func (r RunContext) Open(open func(key, value string) (string, error)) (RunContext, error) {
	return r.change(func(c Context) (Context, error) { return c.Open(open) })
}

func (r RunContext) change(each func(Context) (Context, error)) (out RunContext, err error) {
	if out.All, err = each(r.All); err != nil {
		return RunContext{}, err
	}
	for id, c := range r.Steps {
		if out.Steps == nil {
			out.Steps = make(map[string]Context, len(r.Steps))
		}
		if out.Steps[id], err = each(c); err != nil {
			return RunContext{}, err
		}
	}
	return out, nil
}
