package agents_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/agent/request"
	"github.com/stepjet/stepjet/orchestrator/agents"
)

// TestARequestCarriesASmallPart: whoever makes a request puts the same part into it, whatever is past and stored; of the parts that
// are to be stored before it, one is less then. It stands for what the request named without it, and is small.
func TestARequestCarriesASmallPart(t *testing.T) {
	t.Parallel()
	d := define(t, `"tools":["find"],"max_rounds":90,"context":{"total_bytes":40000,"result_bytes":4000}`)
	name := func(n int) string { return fmt.Sprintf("t/r/1/=part.a.%d", n) }
	var rounds []*agents.Round
	var past *agents.Past
	stored := map[string][]byte{}
	fetch := func(_ context.Context, name string) ([]byte, error) { return stored[name], nil }
	carried, large := 0, 0
	for n := range 40 {
		fresh := func(with *agents.Past) *agents.Loop {
			l := &agents.Loop{Definition: d, Rounds: append([]*agents.Round(nil), rounds...), Past: with, Run: "r", Name: "a", Part: name}
			if l.Input = json.RawMessage(`{}`); with != nil {
				clear(l.Rounds[:with.Rounds()])
			}
			return l
		}
		rounds = append(rounds, &agents.Round{})
		var requests []string
		late := past
		for _, with := range []*agents.Past{nil, past} {
			asked, err := fresh(with).Ask(n)
			require.Nil(t, err)
			plain, all := string(asked.Request), len(asked.Parts)
			second, err := fresh(with).Ask(n)
			require.Nil(t, err)
			require.Nil(t, second.Carry(2), "of another attempt all is stored before it is sent")
			require.Len(t, second.Parts, all)
			require.Equal(t, n, second.Past.Rounds())
			requests = append(requests, string(second.Request))
			last := asked.Carry(1)
			requests = append(requests, string(asked.Request))
			switch is := strings.Contains(string(asked.Request), `"content":`); {
			case !is:
				require.Nil(t, last)
				require.Equal(t, plain, string(asked.Request))
				require.Equal(t, n, asked.Past.Rounds())
				late = asked.Past
			default:
				require.NotNil(t, last)
				require.Nil(t, asked.Past, "rounds are past once the last part is stored")
				require.Len(t, asked.Parts, all-1)
				require.Len(t, last.Parts, 1)
				require.Equal(t, n, last.Past.Rounds())
				require.LessOrEqual(t, len(last.Parts[0].Bytes), 768*(2+len(rounds[n-1].Calls)))
				late = last.Past
			}
			keep := func(p request.Part, _ bool) (bool, error) { stored[p.Name] = p.Bytes; return true, nil }
			_, bad := asked.Keep(keep)
			require.NoError(t, bad)
			whole, bad := parts.NewKeeper(1<<20).Whole(context.Background(), asked.Request, fetch)
			require.NoError(t, bad, "with what was stored before it is sent")
			if last != nil {
				_, bad = last.Keep(keep)
				require.NoError(t, bad)
			}
			same, bad := parts.NewKeeper(1<<20).Whole(context.Background(), []byte(plain), fetch)
			require.NoError(t, bad)
			require.Equal(t, string(same), string(whole))
		}
		again, err := fresh(late).Ask(n) // by an owner that has stored it
		require.Nil(t, err)
		require.Nil(t, again.Carry(1))
		for _, r := range append(requests, string(again.Request)) {
			require.Equal(t, requests[0], r, "round %d", n)
		}
		if n > 0 {
			if strings.Contains(requests[0], `"content":`) {
				carried++
			} else {
				large++
			}
		}
		if n%3 != 2 { // else it is let go of later, as by an owner that did not store the parts
			past = late
		}
		l := fresh(nil)
		l.Rounds[n] = &agents.Round{Answer: fmt.Appendf(nil, `{"steps":[{"id":"f","tool":"find","arguments":{"text":"%s"}}]}`, strings.Repeat("y", 300*(n%5)))}
		playRound(t, l, n)
		rounds[n] = l.Rounds[n]
	}
	require.Greater(t, carried, 8)
	require.Greater(t, large, 8)
}
