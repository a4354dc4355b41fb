package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
)

// prefix is what of a whole request the next one begins with: up to the end of its rounds.
func prefix(raw []byte) []byte {
	i := bytes.Index(raw, []byte(`],"messages":[`))
	return raw[:i]
}

// A request that has become too large shrinks to half, once; until it does so again no byte of what it begins with
// changes.
func TestARequestShrinksToHalf(t *testing.T) {
	t.Parallel()
	const total = 100_000
	w := newWorld(t, define(t, fmt.Sprintf(plain, "tools")+fmt.Sprintf(`,"max_rounds":200,"context":{"total_bytes":%d}`, total)), `{"topic":"tides"}`)
	var before []byte
	written, cuts := 0, 0
	for round := range 150 {
		raw := prefix(w.whole(w.open(Now{})))
		require.LessOrEqual(t, len(raw), total, "round %d", round)
		switch {
		case len(w.cuts) > cuts:
			cuts++
			require.LessOrEqual(t, len(raw), total/2)
			require.Greater(t, len(raw), total/2-4_000, "and no more than that")
		case before != nil:
			require.True(t, bytes.HasPrefix(raw, before), "round %d", round)
		}
		before = raw
		written += len(w.end(found(round, 2000), "").Bytes)
	}
	require.Greater(t, cuts, 3)
	require.Less(t, written, 150*(2_000+700), "what is cut is not written again")
	for i, c := range w.cuts {
		if i > 0 {
			require.Equal(t, w.cuts[i-1].To+1, c.From)
		}
		require.GreaterOrEqual(t, c.To, c.From)
	}
	// who knows no part reads those that stand whole, and one for the head
	k, reads := parts.NewKeeper(parts.DefaultKept), w.reads
	_, err := k.Whole(t.Context(), w.open(Now{}).Bytes, w.fetch)
	require.NoError(t, err)
	require.Equal(t, 150-w.loop.from+1, w.reads-reads)
}

// The oldest of many small rounds become one entry that counts them; so what is cut stays bounded, too.
func TestTheOldestRoundsAreCounted(t *testing.T) {
	t.Parallel()
	const total = 8_192
	w := newWorld(t, define(t, fmt.Sprintf(plain, "plan")+fmt.Sprintf(`,"max_rounds":3000,"context":{"result_bytes":256,"total_bytes":%d}`, total)), `{"topic":"x"}`)
	calls := 0
	for round := range 600 {
		said := []Message{{ID: fmt.Sprint("m", round), Content: json.RawMessage(`"Hello."`)}}[:min(1, round%9/8)]
		w.open(Now{}, said...)
		r := found(round, 100)
		if round%3 == 0 {
			r.Records[0].Status = "failed"
		}
		w.end(r, "")
		calls++
		if len(w.loop.cut) == 0 {
			continue
		}
		require.LessOrEqual(t, sizeOf(w.loop.cut), total/8+128)
		var counted, failed, bytes, next int64
		for _, e := range w.loop.cut {
			c := countOf(e)
			require.Equal(t, next, c.from, "no round is lost")
			next = c.to + 1
			counted, failed, bytes = counted+c.calls, failed+c.failed, bytes+c.bytes
		}
		require.EqualValues(t, w.loop.from, next)
		require.EqualValues(t, w.loop.from, counted)
		require.EqualValues(t, (w.loop.from+2)/3, failed)
		require.EqualValues(t, 102*w.loop.from, bytes)
	}
	require.Contains(t, string(w.whole(w.open(Now{}))), `"rounds":[{"rounds":[0,`)
}

// A summary stands in the place of the rounds that were cut, of those of before too.
func TestASummaryStandsForWhatWasCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, define(t, fmt.Sprintf(plain, "tools")+`,"max_rounds":200,"context":{"total_bytes":60000,"summary":"digest"}`), `{"topic":"tides"}`)
	for round := range 80 {
		w.open(Now{})
		r := found(round, 2000)
		c, due := w.loop.Due(r)
		summary := ""
		if due {
			summary = fmt.Sprintf("Nothing up to %d.", c.To)
		}
		p := w.end(r, summary)
		require.Equal(t, due, p.Cut != nil)
		if due {
			require.Equal(t, c, *p.Cut)
			require.Equal(t, fmt.Sprintf(`{"rounds":[0,%d],"summary":"Nothing up to %d."}`, c.To, c.To), string(w.loop.cut[0]))
			require.Len(t, w.loop.cut, 1)
		}
	}
	require.Greater(t, len(w.cuts), 2)
	w.open(Now{})
	w.loop.whole[0].size += 60_000
	w.end(found(80, 10), strings.Repeat("long ", 60_000))
	require.LessOrEqual(t, sizeOf(w.loop.cut), 60_000/8+64, "a summary is bounded")
}

// Tools that were unlocked stand in the round at which they were, until a cut: since what a request begins with changes
// then, its tools are those of that time.
func TestToolsAreThoseOfTheFirstRoundUntilACut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, define(t, fmt.Sprintf(plain, "tools")+`,"max_rounds":200,"context":{"total_bytes":60000}`), `{"topic":"tides"}`)
	tools := func(raw []byte) (all []string) {
		for _, x := range items(member(raw, "tools")) {
			all = append(all, strings.Trim(string(member(x, "name")), `"`))
		}
		return all
	}
	first := []string{"analyze", "db", "fetch", "search"}
	for round := range 60 {
		raw := w.whole(w.open(Now{}))
		r := found(round, 2000)
		switch {
		case round == 2:
			r.Records = append(r.Records, Record{ID: "db", Tool: "db", Status: "succeeded"})
		case round == 3:
			require.Equal(t, []string{"db", "db_context", "insert", "query"}, tools(bytes.ReplaceAll(member(raw, parts.Changes), []byte(`"added"`), []byte(`"tools"`))))
		case len(w.cuts) == 0:
			require.Equal(t, first, tools(raw))
			require.Nil(t, member(raw, parts.Changes))
		default:
			require.Equal(t, []string{"analyze", "db", "db_context", "fetch", "insert", "query", "search"}, tools(raw))
			require.NotContains(t, string(raw), parts.Changes, "the head knows")
		}
		w.end(r, "")
	}
	require.Greater(t, len(w.cuts), 1)
	heads := 0
	for _, raw := range w.kept {
		heads += strings.Count(string(raw), `"head":{`)
	}
	require.Equal(t, 2, heads, "a head is written again where it has changed")
}

func TestWhoDoesNotRespondIsNotAsked(t *testing.T) {
	t.Parallel()
	done := []Record{{ID: "a", Tool: "search", Status: "succeeded"}}
	w := newWorld(t, define(t, fmt.Sprintf(plain, "commands")), `{"topic":"x"}`)
	w.open(Now{})
	_, ok := w.loop.Respond(Now{}, done)
	require.False(t, ok, "it does not respond")
	w.d.Respond = &agent.Respond{ExtraInstruction: "Be brief."}
	for _, nothing := range [][]Record{nil, {{ID: "a", Tool: "search", Status: NotRun}, {ID: "v", Status: "succeeded"}, {ID: "b", Tool: "fetch", Status: "skipped"}}} {
		_, ok = w.loop.Respond(Now{}, nothing)
		require.False(t, ok, "nothing was executed: nothing is injected")
		require.Equal(t, "[]", string(ToolLogs(nothing, 100)))
	}
	r, ok := w.loop.Respond(Now{}, done)
	require.True(t, ok)
	require.Contains(t, string(r.Bytes), `"final":true,"action_results":{"Use search":null},"extra_instruction":"Be brief."}`)
	require.NotContains(t, string(w.loop.Request(Now{}).Bytes), "action_results")
}
