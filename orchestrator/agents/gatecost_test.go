package agents_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator/agents"
)

// shapes are rounds of many calls, of which each asks its gate.
var shapes = map[string]struct {
	entries string
	step    func(i int) string
}{
	"side by side": {`"find",{"tool":"late","needs":{"any":["find"]}}`, func(i int) string {
		if i == 0 {
			return `{"id":"s0","tool":"find"}`
		}
		return fmt.Sprintf(`{"id":"s%d","tool":"late","depends_on":["s0"],"arguments":{"n":%d}}`, i, i)
	}},
	"one behind the other": {`{"tool":"find","bind":{"who":"$input.who"}}`, func(i int) string {
		if i == 0 {
			return `{"id":"s0","tool":"find"}`
		}
		return fmt.Sprintf(`{"id":"s%d","tool":"find","depends_on":["s%d"]}`, i, i-1)
	}},
	"objects": {`{"tool":"find","artifact":{"type":"Hit"}},{"tool":"late","needs":{"artifact":"Hit"},"bind":{"of":"$artifact.Hit.n"}}`, func(i int) string {
		if i%2 == 0 {
			return fmt.Sprintf(`{"id":"s%d","tool":"find"}`, i)
		}
		return fmt.Sprintf(`{"id":"s%d","tool":"late","depends_on":["s%d"]}`, i, i-1)
	}},
	"paid once": {`"pay"`, func(i int) string { return fmt.Sprintf(`{"id":"s%d","tool":"pay","arguments":{"n":%d}}`, i, i) }},
}

// TestAGateLooksAtWhatIsNew: of a round of eight times as many calls, each gate allocates about as many bytes. Where each
// looks at all the other calls, it is eight times as many. What the gates say is what those of a loop say that is read anew for
// each, whenever they are asked, and also of a record before what others have looked at.
func TestAGateLooksAtWhatIsNew(t *testing.T) { //nolint:paralleltest // it counts bytes
	early := &agents.Loop{Definition: define(t, `"tools":["find",{"tool":"late","needs":{"all":["find"]}}]`),
		Rounds: []*agents.Round{{Answer: []byte(`{"steps":[{"id":"f","tool":"find"},{"id":"l","tool":"late","depends_on":["f"]}]}`)}}}
	d, err := early.Decide("a/=0")
	require.Nil(t, err)
	early.Rounds[0].Record, early.Rounds[0].Calls = d, []agents.Call{{Path: "f", Single: true, Seq: 5, Status: "succeeded"}}
	_, _, locked := early.Ready(0, "l", 4, json.RawMessage(`{}`))
	require.Equal(t, fault.Locked, fault.CodeOf(locked), "as of a record before it was opened")
	_, _, locked = early.Ready(0, "l", 5, json.RawMessage(`{}`))
	require.Nil(t, locked)
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			a := define(t, `"tools":[`+shape.entries+`]`)
			perGate := func(calls int, same bool) float64 {
				steps := make([]string, calls)
				for i := range steps {
					steps[i] = shape.step(i)
				}
				l := &agents.Loop{Definition: a, Input: json.RawMessage(`{"who":"ann"}`), Rounds: []*agents.Round{{Answer: []byte(`{"steps":[` + strings.Join(steps, ",") + `]}`)}}}
				d, err := l.Decide("a/=0")
				require.Nil(t, err)
				require.Empty(t, d.Problems)
				require.Empty(t, d.Settled)
				l.Rounds[0].Record = d
				_, _, _ = l.Ready(0, "s0", 0, json.RawMessage(`{}`))
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for i := range calls {
					path, since := fmt.Sprint("s", i), uint64(i)
					if same && i%3 == 0 { // one that was ready long before: a window held it up
						since = uint64(i / 2)
					}
					args := fmt.Appendf(nil, `{"n":%d}`, i%7)
					got, came, no := l.Ready(0, path, since, args)
					if same {
						anew := &agents.Loop{Definition: a, Input: l.Input, Rounds: []*agents.Round{{Answer: l.Rounds[0].Answer, Record: d, Calls: l.Rounds[0].Calls}}}
						want, wantCame, wantNo := anew.Ready(0, path, since, args)
						require.Equal(t, []any{want, wantCame, wantNo}, []any{got, came, no}, "%s since %d", path, since)
					}
					l.Rounds[0].Calls = append(l.Rounds[0].Calls, agents.Call{Path: path, Single: true, Seq: uint64(i + 1), Status: "succeeded", Arguments: args, Value: fmt.Appendf(nil, `{"n":%d}`, i)})
				}
				runtime.ReadMemStats(&after)
				return float64(after.TotalAlloc-before.TotalAlloc) / float64(calls)
			}
			perGate(60, true)
			few, many := perGate(100, false), perGate(800, false)
			t.Logf("%.0f bytes a gate of 100, %.0f of 800", few, many)
			require.Less(t, many, 2*few)
		})
	}
}
