package client

import (
	"errors"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// missingContext is the cause of a retry's refusal.
type missingContext struct{ keys []outcome.ContextKey }

func (m *missingContext) Error() string {
	names := make([]string, len(m.keys))
	for i, k := range m.keys {
		if names[i] = k.Key; k.Step != "" {
			names[i] = k.Step + ":" + k.Key
		}
		if k.Secret {
			names[i] += " (secret)"
		}
	}
	return strings.Join(names, ", ")
}

// Missing returns the keys of out-of-band context that a retry has to be given, where err says that it was not.
func Missing(err error) []outcome.ContextKey {
	var m *missingContext
	if errors.As(err, &m) {
		return m.keys
	}
	return nil
}

// sameKeys refuses to try something again without context that it had: a tool without its credential does something
// else, and the same key may not be tried again after that. An older Stepjet named no keys.
func sameKeys(had []outcome.ContextKey, given wire.RunContext, less bool) error {
	if less {
		return nil
	}
	var missing []outcome.ContextKey
	for _, k := range had {
		c := given.All
		if k.Step != "" { // what one step had for itself
			c = given.Steps[k.Step]
		}
		if _, ok := c.Get(k.Key); !ok {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	m := &missingContext{missing}
	f := fault.Wrap(fault.InvalidConfig, m, "out-of-band context is not kept, and is needed again")
	return f.WithHint("give the values in Context; LessContext does without them")
}
