package request

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// tools are a catalog in which each name of a list is a tool.
type tools []string

func (c tools) Lookup(name string) (*tool.Definition, bool) {
	return &tool.Definition{Name: name, Description: "Does <" + name + ">.", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"hits":{"type":"array"}}}`)}, slices.Contains(c, name)
}
func (c tools) Names() []string               { return slices.Sorted(slices.Values(c)) }
func (c tools) Group(string) ([]string, bool) { return nil, false }
func (c tools) Groups() []string              { return nil }
func (c tools) Searchable(string) []string    { return c.Names() }

var catalog = tools{"search", "fetch", "analyze", "query", "insert", "refund", "model", "digest"}

// define reads a definition with these members of an agent.
func define(t testing.TB, members string) *agent.Definition {
	t.Helper()
	body := `{"name":"helper","description":"Helps.","outputSchema":{"type":"object"},"agent":{` + members + `}}`
	d, report := agent.Parse([]byte(body), catalog)
	require.Empty(t, report.Problems)
	return d
}

const plain = `"planner":{"tool":"model","model":"large","mode":"%s"},"instructions":"Find ${input.topic}.",
	"tools":["search","fetch",{"tool":"analyze","needs":{"all":["search"]}},{"unfold":"db","description":"Asks.","tools":["query","insert"]}]`

// world keeps the parts of a loop, and plays its rounds.
type world struct {
	t      testing.TB
	d      *agent.Definition
	loop   *Loop
	facts  *agent.Facts
	kept   map[string][]byte
	reads  int
	shared string // the state that calls write to
	known  *parts.Keeper
	cuts   []Cut
	last   Part
}

func name(round int) string {
	return subjects.PartName(subjects.Run{Tenant: "acme", ID: "run-1"}, 77, "research/=0/inner", round)
}

func newWorld(t testing.TB, d *agent.Definition, input string) *world {
	t.Helper()
	f, err := d.Begin(json.RawMessage(input), nil)
	require.Nil(t, err)
	return &world{t: t, shared: string(f.Shared()), d: d, facts: f, loop: Begin(d, f, name), kept: map[string][]byte{}, known: parts.NewKeeper(parts.DefaultKept)}
}

func (w *world) fetch(_ context.Context, name string) ([]byte, error) {
	w.reads++
	raw, ok := w.kept[name]
	if !ok {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return raw, nil
}

// whole puts a request together as a worker does that was asked before.
func (w *world) whole(r Request) []byte {
	w.t.Helper()
	raw, err := w.known.Whole(context.Background(), r.Bytes, w.fetch)
	require.NoError(w.t, err)
	require.EqualValues(w.t, len(raw), r.Size)
	return raw
}

// open begins a round, and returns what its planner is sent.
func (w *world) open(now Now, said ...Message) Request {
	w.facts.BeginRound(w.loop.round+1, json.RawMessage(w.shared))
	w.loop.Open(w.facts, said)
	return w.loop.Request(now)
}

// end ends a round whose calls have come to what its records say.
func (w *world) end(r Round, summary string) Part {
	for _, rec := range r.Records {
		if rec.executed() {
			w.facts.Add(agent.Outcome{Entry: rec.Tool, Failed: rec.Status == "failed", Arguments: rec.Arguments.JSON, Result: rec.Result.JSON})
		}
	}
	w.last = w.loop.End(r, w.facts, summary)
	require.True(w.t, json.Valid(w.last.Bytes), "%s", w.last.Bytes)
	require.NotContains(w.t, w.kept, w.last.Name)
	w.kept[w.last.Name] = w.last.Bytes
	if w.last.Cut != nil {
		w.cuts = append(w.cuts, *w.last.Cut)
	}
	return w.last
}

// found is a round of one search with a result of n bytes.
func found(round, n int) Round {
	id := fmt.Sprintf("s%d", round)
	return Round{
		Plan: Whole(fmt.Appendf(nil, `{"steps":[{"id":%q,"tool":"search","arguments":{"q":"tides %d"}}]}`, id, round)),
		Records: []Record{{ID: id, Tool: "search", Arguments: Whole(fmt.Appendf(nil, `{"q":"tides %d"}`, round)), Status: "succeeded",
			Result: Whole([]byte(`"` + strings.Repeat("x", n) + `"`)), MS: 12}},
	}
}

func common(a, b []byte) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Nearly all of what a planner is sent has been sent before, so that prompt caches know it; and what is written for it
// grows with the rounds, not with their square.
func TestARequestGrowsAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range []agent.Mode{agent.ModeTools, agent.ModePlan, agent.ModeCalls, agent.ModeCommands} {
		w := newWorld(t, define(t, fmt.Sprintf(plain, mode)+`,"max_rounds":200,"context":{"total_bytes":4000000}`), `{"topic":"tides"}`)
		var before []byte // each request is JSON, since its parts and its tail are
		var all, same, sent, kept int
		for round := range 200 {
			r := w.open(Now{})
			raw := w.whole(r)
			n := common(before, raw)
			require.LessOrEqual(t, int64(len(raw)-n), r.Fresh, "what is fresh is no less than what is")
			require.Equal(t, string(before[:min(int64(len(before)), r.Size-r.Fresh)]), string(raw[:min(int64(len(before)), r.Size-r.Fresh)]))
			all, same, sent, before = all+len(raw), same+n, sent+len(r.Bytes), raw
			kept += len(w.end(found(round, 3000), "").Bytes)
		}
		require.Empty(t, w.cuts)
		require.GreaterOrEqual(t, float64(same)/float64(all), 0.95, mode)
		require.Less(t, sent, 200*2_000, "a request has no rounds")
		require.Less(t, kept, 200*3_000+200*600, "a round is written once")
		t.Logf("%s: %.2f %% of %d bytes; %d sent, %d in parts", mode, 100*float64(same)/float64(all), all, sent, kept)
	}
}

// Each round costs what the others cost, also for who knows the parts before it.
func TestAWorkerReadsEachPartOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, define(t, fmt.Sprintf(plain, "plan")), `{"topic":"tides"}`)
	k := parts.NewKeeper(parts.DefaultKept)
	for round := range 50 {
		r := w.open(Now{})
		_, err := k.Whole(context.Background(), r.Bytes, w.fetch)
		require.NoError(t, err)
		require.Equal(t, round, w.reads)
		w.end(found(round, 100), "")
	}
}

// Who takes a loop over renders what the one before would have.
func TestALoopGoesOnFromItsParts(t *testing.T) {
	t.Parallel()
	for _, total := range []int{600_000, 30_000} {
		d := define(t, strings.Replace(fmt.Sprintf(plain, "tools"), `"fetch",`, `{"tool":"fetch","in":["A"],"to":"B"},{"tool":"insert","as":"back","in":["B"],"to":"A"},`, 1)+
			fmt.Sprintf(`,"states":{"initial":"A"},"max_rounds":200,"context":{"total_bytes":%d}`, total))
		w := newWorld(t, d, `{"topic":"tides"}`)
		for round := range 60 {
			said := []Message{{ID: fmt.Sprint("m", round), By: "ann", Content: json.RawMessage(`"Go on."`)}}[:round%2]
			r := w.open(Now{}, said...)
			if round > 0 {
				again, err := Resumed(context.Background(), d, name, w.last.Link, parts.NewKeeper(1<<20), w.fetch)
				require.NoError(t, err)
				again.Open(w.facts, said)
				require.Equal(t, r, again.Request(Now{}), "round %d", round)
				due, is := w.loop.Due(found(round, 2000))
				dueAgain, isAgain := again.Due(found(round, 2000))
				require.Equal(t, is, isAgain)
				require.Equal(t, due, dueAgain)
			}
			next := found(round, 2000)
			if round%7 == 3 {
				next.Records = append(next.Records, Record{ID: "db", Tool: "db", Status: "succeeded", Result: Whole([]byte(`"open"`))})
			}
			next.Records = append(next.Records, Record{ID: "x", Tool: []string{"fetch", "back"}[round%2], Status: "succeeded"})
			w.end(next, "")
		}
		require.Equal(t, total == 30_000, len(w.cuts) > 0)
	}
}
