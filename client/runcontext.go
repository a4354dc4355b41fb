package client

import "github.com/stepjet/stepjet/wire"

// Context is out-of-band context: a key-value bag that a submitter hands to the tools of a run beside their arguments
// (who is asking, a correlation id, a credential). It prints, logs and marshals with the values of its secrets hidden;
// Get returns them. A Context is immutable. Keys are 1 to 64 of A-Z a-z 0-9 _ . -, values are UTF-8.
type Context = wire.Context

// RunContext is the context of a whole run: All is for every step, and Steps, by step, what only some are given. Keys
// and values have at most 8 KiB together.
type RunContext = wire.RunContext

// NewContext makes a context of values, of which the keys named are secret. The error names the key that is outside the
// grammar or whose value is no text (InvalidValue), or the limit that was passed (LimitExceeded); it holds no value.
func NewContext(values map[string]string, secrets ...string) (Context, error) {
	return wire.NewContext(values, secrets...)
}
