package agent

import (
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
)

// Passes decides a guard that has a condition. seen is what it looks at, by the words that its condition may begin a
// reference with: input, state, tool, args, result, output, round. A condition that can't be decided is an error, and the
// guard does not let pass. A guard that asks a tool lets everything pass here.
func (g *Guard) Passes(seen map[string]json.RawMessage) (bool, *fault.Error) {
	if g.when == nil {
		return true, nil
	}
	return g.when.holds(func(r reference) ([]byte, bool) { return within(seen[r.word], r.path) })
}
