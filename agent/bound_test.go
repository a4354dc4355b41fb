package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// This is a second reading of what docs/agents.md says of bound arguments and of calls that are made once. As naive_test.go, it
// shares no code with the package: it keeps all that has happened, and goes through it again for each question.

// boundEntry is an entry of a destructive tool.
type boundEntry struct {
	name, tool string
	binds      map[string]string // by argument, where it comes from: one of boundFrom
	within     string            // "chain", "cart" or nothing
}

// boundFrom says what stands in a definition, by where an argument comes from.
var boundFrom = map[string]any{
	"five": 5, "text": "$$input", "input": "$input.who", "gone": "$input.gone", "null": "$input.none", "state": "$state.s",
	"user": "$artifact.User.id", "its": "$artifact.id", "args": "$args.k",
}

// boundHistory is what has happened.
type boundHistory struct {
	state  *int // what stands there; nil for nothing
	users  []int
	opened []int
	sent   []boundCall
}

type boundCall struct {
	tool string
	args map[string]any
	came int
}

// bound is what is bound to a call of an entry; is is false where something of it is not there.
func (h *boundHistory) bound(e boundEntry) (all map[string]any, is bool) {
	all = map[string]any{}
	last := func(of []int) (any, bool) {
		if len(of) == 0 {
			return nil, false
		}
		return of[len(of)-1], true
	}
	for name, from := range e.binds {
		v, there := any(nil), true
		switch from {
		case "five":
			v = 5
		case "text":
			v = "$input"
		case "input":
			v = "ann"
		case "gone":
			there = false
		case "state":
			if there = h.state != nil; there {
				v = *h.state
			}
		case "user", "its":
			v, there = last(h.users)
		case "args":
			v, there = last(h.opened)
		}
		if !there {
			return nil, false
		}
		all[name] = v
	}
	return all, true
}

// may reports whether the entry is open.
func (h *boundHistory) may(e boundEntry) bool {
	return e.within == "" || e.within == "chain" && len(h.users) > 0 || e.within == "cart" && len(h.opened) > 0
}

// before is what the last call came to that was sent the same.
func (h *boundHistory) before(tool string, args map[string]any) (came int, was bool) {
	for _, c := range slices.Backward(h.sent) {
		if c.tool == tool && fmt.Sprint(c.args) == fmt.Sprint(args) { // maps are printed in the order of their keys
			return c.came, true
		}
	}
	return 0, false
}

// randomBound makes up an agent with such entries.
func randomBound(r *rand.Rand) (entries []boundEntry, definition []byte) {
	lists := map[string][]any{"": {"get_user", "search"}}
	for i := range 4 {
		e := boundEntry{name: fmt.Sprintf("e%d", i), tool: []string{"delete_file", "delete_record"}[r.IntN(2)], binds: map[string]string{}, within: []string{"", "", "chain", "cart"}[r.IntN(4)]}
		from := []string{"five", "text", "input", "gone", "null", "state", "user"}
		switch e.within {
		case "chain":
			from[6] = "its"
		case "cart":
			from[0] = "args"
		}
		bind := map[string]any{}
		for range r.IntN(3) {
			name := []string{"a", "b"}[r.IntN(2)]
			e.binds[name] = from[(r.IntN(len(from))+r.IntN(2)*i)%len(from)]
			bind[name] = boundFrom[e.binds[name]]
		}
		entries = append(entries, e)
		lists[e.within] = append(lists[e.within], map[string]any{"tool": e.tool, "as": e.name, "bind": bind})
	}
	if lists["chain"] != nil {
		lists[""] = append(lists[""], map[string]any{"chain": "User", "tools": lists["chain"]})
	}
	lists[""] = append(lists[""], map[string]any{"unfold": "cart", "description": "C.", "inputSchema": map[string]any{"type": "object"}, "tools": append(lists["cart"], "report")})
	raw, err := json.Marshal(map[string]any{"name": "random", "agent": map[string]any{"planner": map[string]any{"tool": "model"}, "tools": lists[""]}})
	if err != nil {
		panic(err)
	}
	return entries, raw
}

// TestRandomBounds: on random definitions and histories, the package and the naive interpreter say the same of what is bound to
// calls, of which of them fail for want of that, and of which were made before.
func TestRandomBounds(t *testing.T) {
	t.Parallel()
	compared := map[string]int{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		entries, raw := randomBound(r)
		d, report := Parse(raw, everything)
		require.NotNil(t, d, "seed %d: %s\n%s", seed, raw, problems(report))
		f, err := d.Begin(json.RawMessage(`{"who":"ann","none":null}`), nil)
		require.Nil(t, err)
		h := &boundHistory{}
		for range 12 {
			id := r.IntN(3)
			switch r.IntN(6) {
			case 0:
				h.state = &id
				f.Share(fmt.Appendf(nil, `{"s":%d}`, id))
			case 1:
				h.users = append(h.users, id)
				f.Add(Outcome{Entry: "get_user", Type: "User", Result: fmt.Appendf(nil, `{"id":%d}`, id)})
			case 2:
				h.opened = append(h.opened, id)
				f.Add(Outcome{Entry: "cart", Arguments: fmt.Appendf(nil, `{"k":%d}`, id)})
			default:
				e := entries[r.IntN(len(entries))]
				if sent, is := h.bound(e); is && h.may(e) {
					sent["n"] = id
					args, _ := json.Marshal(sent)
					failed := r.IntN(4) == 0
					if !failed {
						h.sent = append(h.sent, boundCall{e.tool, sent, len(h.sent)})
					}
					f.Add(Outcome{Entry: e.name, Failed: failed, Arguments: args, Result: fmt.Append(nil, len(h.sent)-1)})
				}
			}
			for _, e := range entries {
				if !h.may(e) {
					continue
				}
				want, is := h.bound(e)
				got, _, err := f.Ready(e.name, f)
				was, _, no := ReadyFormerly(f, e.name, f)
				require.Nil(t, no)
				require.Equal(t, is, err == nil, "seed %d: %s of %s: %v", seed, e.name, raw, err)
				if !is {
					compared["nothing there"]++
					require.Equal(t, fault.InvalidArguments, err.Code)
					require.NotEmpty(t, err.Hint)
					require.Contains(t, string(was), "null")
					continue
				}
				require.Equal(t, string(was), string(got))
				bound := map[string]any{}
				if got != nil {
					require.NoError(t, json.Unmarshal(got, &bound))
				}
				for n := range 3 {
					maps.Copy(bound, map[string]any{"n": n})
					want["n"] = n
					require.Equal(t, fmt.Sprint(want), fmt.Sprint(bound), "seed %d: %s of %s", seed, e.name, raw)
					sent, _ := json.Marshal(bound)
					came, was := h.before(e.tool, want)
					result, _, done := f.Done(e.name, sent)
					require.Equal(t, was, done, "seed %d: %s with %s", seed, e.name, sent)
					if compared["new"]++; was {
						compared["made before"]++
						require.Equal(t, fmt.Sprint(came), string(result), "seed %d: %s with %s", seed, e.name, sent)
					}
				}
			}
		}
	}
	t.Log(compared)
	for _, v := range []string{"nothing there", "new", "made before"} {
		require.Greater(t, compared[v], 200, v)
	}
}
