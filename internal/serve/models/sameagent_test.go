package models

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/modelscript"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

// TestTheSameAgentInEachMode on a model of OpenAI's form and on one of Anthropic's: the records are the same, but for what each
// provider counted and wants back. In mode tools calls are native; in the others an object is asked for by a schema, which
// Anthropic's models answer by a call. One call fails, one waits for another, and what is no JSON is mended.
func TestTheSameAgentInEachMode(t *testing.T) {
	t.Parallel()
	for mode, x := range map[string]struct {
		more    string
		answers []string // objects, but in mode tools
		native  []modelscript.Turn
		comes   string
	}{
		"tools": {native: []modelscript.Turn{
			{Thinking: "Two.", Text: "I look.", Calls: []modelscript.Call{{ID: "a", Tool: "find", Arguments: `{n: 1,}`}, {ID: "b", Tool: "find", Arguments: `{"n":13}`}}},
			{Text: "It is 1."},
		}, comes: `"It is 1."`},
		"plan": {answers: []string{
			`{"steps":[{"id":"a","tool":"find","arguments":{"n":1}},{"id":"b","tool":"find","arguments":{"n":"$ref:a.n"}},{"id":"c","tool":"find","arguments":{"n":13}}]}`,
			`{"steps":[],"output":{"is":"$ref:r0.b.n"}}`,
		}, comes: `{"is":1}`},
		"calls": {more: `,"advance":"all"`, answers: []string{
			`{"calls":[{"_tool":"find","n":1,"_outputPath":"†state.one"},{"_tool":"find","_id":"two","n":"†state.one.n","_outputPath":"†state.two"},{"_tool":"find","_id":"not","n":13,"_outputPath":"†state.not || †state.error"}],"output":null}`,
			`{"calls":[],"output":{"is":"†state.two.n"}}`,
		}, comes: `{"is":1}`},
		"commands": {more: `,"respond":true`, answers: []string{
			`{"next_action":"execute","execution_commands":[{"purpose":"one","tool_name":"find","tool_kwargs":{"n":1},"todo_suggestion":"","next":""},{"purpose":"not","tool_name":"find","tool_kwargs":{"n":13}}]}`,
			`{"next_action":"response","execution_commands":[]}`,
			"In the end it is 1.",
		}, comes: `"In the end it is 1."`},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			first := map[string]string{}
			for _, provider := range []string{"openai", "anthropic"} {
				script := x.native
				for n, a := range x.answers {
					turn := modelscript.Turn{Text: a}
					if provider == "anthropic" && strings.HasPrefix(a, "{") {
						turn = modelscript.Turn{Calls: []modelscript.Call{{ID: fmt.Sprint("toolu_", n), Tool: "answer", Arguments: a}}}
					}
					script = append(script, turn)
				}
				model := modelscript.Start(0, script...)
				t.Cleanup(model.Close)
				url := model.URL
				if provider == "openai" {
					url += "/v1"
				}
				c, nc := connected(t, provider, url, `"large":{"id":"m"}`, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
					if string(args) == `{"n":13}` {
						return worker.Output{}, worker.Terminal(fault.New("unlucky", "not this one"))
					}
					return worker.Output{Body: args}, nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				o, err := c.Run(ctx, fmt.Appendf(nil, `{"steps":[{"id":"a","agent":{"planner":{"tool":"model","model":"large","mode":%q},"instructions":"Find one.","tools":["find"]%s}}]}`, mode, x.more), client.SubmitOptions{Run: "same"})
				require.NoError(t, err)
				got, _ := o.Results.Get("a")
				require.JSONEq(t, x.comes, string(got), "%s", o.JSON())
				require.Len(t, model.Asked(), len(script), "one request for each answer")
				for _, a := range model.Asked()[:len(script)-1] {
					structured := strings.Contains(string(a.Body), `"response_format"`) || strings.Contains(string(a.Body), `"tool_choice"`)
					require.Equal(t, mode != "tools", structured, "%s", a.Body)
				}
				records := recordsOf(t, nc, "same")
				require.Greater(t, len(records), 6)
				if len(first) == 0 {
					first = records
					continue
				}
				require.ElementsMatch(t, slices.Collect(maps.Keys(first)), slices.Collect(maps.Keys(records)))
				for subject, want := range first {
					require.Equal(t, want, records[subject], "%s", subject)
				}
			}
		})
	}
}

// recordsOf are the records of a run in the ledger, by what their subjects have behind its id, and without what is not the
// agent's: when and by whom they were written, and of a planner's what its provider counted and wants back.
func recordsOf(t *testing.T, nc *nats.Conn, run string) map[string]string {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	all := map[string]string{}
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		if !strings.HasPrefix(name, strings.TrimSuffix(subjects.LedgerStream(0), "0")) {
			continue
		}
		stream, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
			m, err := stream.GetMsg(t.Context(), seq)
			if err != nil {
				continue // it is gone
			}
			_, of, is := strings.Cut(m.Subject, "."+run+".")
			if !is {
				continue
			}
			for _, header := range []string{"Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject", "Stepjet-Client", "Stepjet-Started", "Stepjet-Ended", "Stepjet-Worker"} {
				m.Header.Del(header)
			}
			body := m.Data
			if strings.Contains(of, "/=plan") || strings.Contains(of, "/=final") {
				var answer map[string]json.RawMessage
				require.NoError(t, json.Unmarshal(body, &answer), "%s", body)
				require.Contains(t, answer, "usage")
				delete(answer, "usage")
				delete(answer, "provider_state")
				body, _ = json.Marshal(answer)
			}
			all[of] = fmt.Sprint(m.Header, string(body))
		}
	}
	require.NoError(t, names.Err())
	return all
}
