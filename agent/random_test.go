package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// verdict is what the package says of an entry, in the words of the naive interpreter.
func verdict(f *Facts, name string) string {
	answer, err := f.Gate(name)
	shown := slices.ContainsFunc(f.Shown(), func(s Shown) bool { return s.Name == name })
	switch {
	case !shown && err != nil:
		return "hidden"
	case !shown:
		return "not shown, and open"
	case err != nil:
		return "locked"
	case answer != nil:
		return "loaded"
	}
	return "open"
}

// TestWhatACallActsUpon: on which object a call acts is decided by what it waits for, not by what others have returned
// meanwhile.
func TestWhatACallActsUpon(t *testing.T) {
	t.Parallel()
	d := define(t, `"tools": ["get_user", {"chain": "User", "tools": ["update_email"], "bind": {"user_id": "$artifact.id"}}]`)
	user := func(id string) Outcome {
		return Outcome{Entry: "get_user", Type: "User", Result: json.RawMessage(`{"id": "` + id + `"}`)}
	}
	now, _ := d.Begin(nil, nil)
	seen := now.Clone()
	now.Add(user("of another"))
	_, _, err := now.Ready("update_email", seen)
	require.Equal(t, fault.Locked, err.Code)
	seen.Add(user("own"))
	bound, _, err := now.Ready("update_email", seen)
	require.Nil(t, err)
	require.JSONEq(t, `{"user_id": "own"}`, string(bound))
}

// goOn lets something happen, and tells the facts of it.
func (h *history) goOn(r *rand.Rand, f *Facts) {
	e := h.randomEvent(r)
	if h.events = append(h.events, e); e.round {
		f.BeginRound(f.Round()+1, nil)
		return
	}
	f.Add(e.outcome())
}

// TestRandomAgents: on random definitions and histories, the package and the naive interpreter say the same of every
// entry, and refuse the same definitions.
func TestRandomAgents(t *testing.T) {
	t.Parallel()
	refused, compared := 0, map[string]int{}
	for seed := range uint64(2_500) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := history{agent: randomAgent(r).withConditions(rand.New(rand.NewPCG(seed, 20)))}
		d, report := Parse(h.agent.JSON(), nil)
		require.Equal(t, h.agent.hopeless(), d == nil, "seed %d: %s\n%s", seed, h, problems(report))
		if d == nil {
			refused++
			continue
		}
		f, err := d.Begin(nil, nil)
		require.Nil(t, err)
		for range 12 {
			h.goOn(r, f)
			for _, name := range h.agent.names() {
				want := h.verdict(name)
				compared[want]++
				require.Equal(t, want, verdict(f, name), "seed %d: %s after %s", seed, name, h)
				if d.Free(name) {
					compared["free"]++
					require.Equal(t, "open", want, "seed %d: %s, which is free, after %s", seed, name, h)
				}
				tool, is := h.tool(name)
				if id, acts := h.acts(tool.chain); is && acts && want == "open" {
					args, _, err := f.Ready(name, f)
					require.Nil(t, err)
					require.JSONEq(t, fmt.Sprintf(`{"id": %d}`, id), string(args), "seed %d: %s after %s", seed, name, h)
				}
			}
		}
	}
	t.Log(refused, "refused,", compared)
	require.Greater(t, refused, 200)
	for _, v := range []string{"hidden", "locked", "loaded", "open", "free"} {
		require.Greater(t, compared[v], 500, v)
	}
}
