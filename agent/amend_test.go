package agent

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// TestAmend: what is added to an answer is read as the planner's own steps are, whatever the answer's form, and stands behind
// them. What is wrong with it is told by its place among what is added.
func TestAmend(t *testing.T) {
	t.Parallel()
	f, _ := define(t, `"tools": ["search", "fetch", {"tool": "report", "needs": {"all": ["search"]}}, "execute_tool_plan"], "state": {"initial": {}}`).Begin(nil, nil)
	earlier := [][]string{{"old"}}
	raw := func(steps ...string) (all []json.RawMessage) {
		for _, s := range steps {
			all = append(all, json.RawMessage(s))
		}
		return all
	}
	none := func(string) bool { return false }
	for form, answer := range map[string]string{
		"plan":     `{"steps": [{"id": "search", "tool": "search"}, {"id": "p", "plan": {"steps": [{"id": "i", "tool": "fetch"}]}}, {"id": "v", "value": "$ref:r0.old"}], "output": "$ref:v"}`,
		"calls":    `{"calls": [{"_tool": "search", "_outputPath": "†state.x"}, {"_tool": "fetch", "_id": "p", "q": "†state.x"}, {"_tool": "fetch", "_id": "v"}]}`,
		"commands": `{"next_action": "execute", "execution_commands": [{"purpose": "Look.", "tool_name": "search"}, {"purpose": "Get.", "tool_name": "fetch"}, {"tool_name": "fetch"}]}`,
	} {
		a, r := Read([]byte(answer), f, earlier)
		require.Empty(t, r.Problems, form)
		b, from, r := a.Amend(raw(`{"id": "more", "tool": "fetch", "again": true, "arguments": {"q": "$ref:search", "of": "${ref:r0.old}"}}`,
			`{"id": "q", "tool": "execute_tool_plan", "arguments": "{\"steps\": [{\"id\": \"i\", \"tool\": \"fetch\"}]}"}`), none, f, earlier)
		require.Empty(t, r.Problems, form)
		require.Equal(t, len(a.Calls), from, form)
		require.Equal(t, a.Calls, b.Calls[:from], form)
		require.Len(t, b.Calls, from+3, form)
		require.Equal(t, Call{ID: "more", Entry: "fetch", After: []int{0}, Within: -1, Times: 1}, b.Calls[from], form)
		require.Equal(t, from+1, b.Calls[from+2].Within, form)
		require.True(t, b.Again["more"] && a.Again == nil, form)
		added := b.Added(a, map[string]bool{"more": true, "q": true})
		require.Contains(t, string(added[1]), `"plan":{"steps"`, "%s: as a plan of its own", form)
		if form == "plan" {
			require.Len(t, added, 2, "r0 was there")
		} else {
			require.Equal(t, `{"id":"r0","tool":"r0"}`, string(added[2]), form)
		}
		if form == "commands" {
			require.Equal(t, []string{"Look.", "Get.", "Use fetch", "Use fetch", "Use "}, []string{b.Commands[0].Purpose, b.Commands[1].Purpose, b.Commands[2].Purpose, b.Commands[3].Purpose, b.Commands[4].Purpose})
		}
		c, _, r := b.Amend(added[:2], func(id string) bool { return id == "more" || id == "q" }, f, earlier)
		require.Empty(t, r.Problems, "%s: what is recorded is read again, in the place of what was discarded", form)
		require.Equal(t, b.Calls, c.Calls, form)

		for step, want := range map[string]string{
			`{"id": "x", "tool": "serch"}`:                                                                    "/add/0/tool",
			`{"id": "r1", "tool": "search"}`:                                                                  "/add/0/id",
			`{"id": "search", "tool": "search"}`:                                                              "/add/0/id",
			`{"id": "x", "tool": "search", "arguments": {"q": "$ref:none"}}`:                                  "/add/0/arguments/q",
			`{"id": "x", "tool": "search", "arguments": {"q": "$ref:r3.y"}}`:                                  "/add/0/arguments/q",
			`{"id": "x", "tool": "ask", "arguments": {"question": "?"}}`:                                      "/add/0/tool",
			`{"id": "x", "agent": {"planner": {"tool": "model"}}}`:                                            "/add/0/agent",
			`{"id": "x", "tool": "execute_tool_plan", "arguments": {"steps": [{"id": "i", "tool": "nope"}]}}`: "/add/0/arguments/steps/0/tool",
			`7`: "/add/0",
		} {
			b, _, r := a.Amend(raw(step), none, f, earlier)
			require.Nil(t, b, "%s: %s", form, step)
			require.Equal(t, want, r.Problems[0].Path, "%s: %s: %v", form, step, r.Problems)
			require.NotEmpty(t, r.Problems[0].Message)
		}
	}
}

// TestRandomAmendments: what is added to an answer is locked if and only if nothing that it waits for could open it, as of
// the facts of now; what was admitted before stays as it was.
func TestRandomAmendments(t *testing.T) {
	t.Parallel()
	admitted, refused, opened := 0, 0, 0
	for seed := range uint64(6_000) {
		r := rand.New(rand.NewPCG(seed, 8))
		h := history{agent: randomAgent(r).withConditions(rand.New(rand.NewPCG(seed, 20)))}
		d, _ := Parse(h.agent.JSON(), nil)
		if d == nil {
			continue
		}
		f, _ := d.Begin(nil, nil)
		calls := randomCalls(r, h.agent, 6)
		from := boundary(r, calls)
		if from == 0 {
			continue
		}
		now := f.Clone()
		for range r.IntN(4) {
			if e := h.randomEvent(r); !e.round {
				h.events = append(h.events, e)
				now.Add(e.outcome())
			}
		}
		before, a := f.Admit(calls[:from]), f.AdmitMore(calls, from, now)
		whole := f.Admit(calls)
		waits := allWaits(calls, a)
		for i, c := range calls {
			if i < from {
				require.Equal(t, before.Waits[i], a.Waits[i], "seed %d: %s\n%s", seed, shownCalls(calls, a), h)
				require.Equal(t, before.Settled[i], a.Settled[i], "seed %d", seed)
				continue
			}
			if c.Entry == "" {
				continue
			}
			s, settled := a.Settled[i]
			locked := settled && s.Err != nil && s.Err.Code == fault.Locked
			may := mayOpen(h, calls, a, waits, i)
			if may || plain(h.agent, c.Entry) {
				require.Equal(t, !may, locked, "seed %d: %s: %s\n%s", seed, c.ID, shownCalls(calls, a), h)
			}
			if locked {
				refused++
				continue
			}
			admitted++
			if s, is := whole.Settled[i]; is && s.Err != nil && s.Err.Code == fault.Locked {
				opened++
			}
		}
		again := Admitted(calls, a.Waits)
		for i := range calls {
			require.Equal(t, a.Behind(i), again.Behind(i), "seed %d: by what was recorded", seed)
		}
	}
	t.Log(admitted, "admitted,", refused, "refused,", opened, "opened meanwhile")
	require.Greater(t, admitted, 500)
	require.Greater(t, refused, 300)
	require.Greater(t, opened, 50)
}

// boundary returns a place in front of which no call depends on one behind it; 0 for none.
func boundary(r *rand.Rand, calls []Call) int {
	var all []int
	for at := 1; at < len(calls); at++ {
		ok := calls[at].Within < 0
		for _, c := range calls[:at] {
			for _, d := range c.After {
				ok = ok && d < at
			}
		}
		if ok {
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return 0
	}
	return all[r.IntN(len(all))]
}
