package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// digests hosts a tool that makes summaries, and fails every so many times; it returns what it was asked, whole.
func (s *system) digests(name string, failsEvery int, returns string) (asked func() []map[string]json.RawMessage) {
	var mu sync.Mutex
	var all []map[string]json.RawMessage
	known := parts.NewKeeper(parts.DefaultKept)
	s.host(name, patient, func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
		whole, err := known.Whole(ctx, sent, worker.ReadPart)
		if err != nil {
			return worker.Output{}, err
		}
		var r map[string]json.RawMessage
		if err := json.Unmarshal(whole, &r); err != nil {
			return worker.Output{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		if all = append(all, r); len(all)%failsEvery == 0 {
			return worker.Output{}, worker.Terminal(fmt.Errorf("too much"))
		}
		return worker.Output{Body: fmt.Appendf(nil, returns, len(all))}, nil
	})
	return func() []map[string]json.RawMessage {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// TestRoundsAreSummarised: where a request passes its bound a tool is asked for a summary of the rounds that are cut, once a
// cut, of all that came before; it stands in their place until the next one, whoever owns the run. Where the tool fails
// ids, statuses and sizes do. Requests that are sent whole say the same.
func TestRoundsAreSummarised(t *testing.T) {
	t.Parallel()
	s := start(t)
	const rounds = 36
	var answers []string
	for n := range rounds {
		answers = append(answers, fmt.Sprintf(`{"steps":[{"id":"s","tool":"big","arguments":{"Bytes":%d}}],"usage":{"input_tokens":10,"output_tokens":1}}`, 900+n))
	}
	answers = append(answers, `{"output":"done"}`)
	x := s.plays("planner", answers...)
	insists := s.playsAs("insists", &tool.Orchestration{TimeoutMS: patient.TimeoutMS, Request: tool.WholeRequest}, answers...)
	asked := s.digests("digest", 3, `{"output":"Up to %d.","usage":{"input_tokens":1000,"output_tokens":100}}`)
	s.digests("other", 3, `"Up to %d."`)
	const of = `{"planner":{"tool":%q,"mode":"plan"},"tools":["big"],"max_rounds":60,"budget":{"tokens":%d},"context":{"total_bytes":8000,"result_bytes":1500,"summary":%q}}`
	put := s.agent("long", "", fmt.Sprintf(of, "planner", 1_000_000, "digest"))
	require.Equal(t, []string{wire.LanguageTwo, wire.AgentSummary, wire.Agents}, put.Needs)
	s.agent("long-whole", "", fmt.Sprintf(of, "insists", 1_000_000, "other"))
	stop := s.leave
	x.before = func(round int) {
		if round%9 == 8 { // another owner makes the same of it
			next := s.orchestrator()
			stop()
			stop = next
		}
	}
	o := s.run(`{"steps":[{"id":"a","tool":"long"}]}`, "sums")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Empty(t, o.NotTaken)
	doc := s.history("default", "sums")
	made, failed := map[string]int{}, 0
	for _, st := range doc.Steps[0].Steps {
		if st.ID == subjects.OwnCall(subjects.ScopeOf(st.ID), "summary") {
			if made[string(st.Status)]++; st.Status == outcome.StepFailed {
				failed++
			}
		}
	}
	n := len(asked())
	require.Greater(t, n, 4)
	require.Equal(t, n, made[string(outcome.StepSucceeded)]+failed, "each was asked once")
	require.Equal(t, n/3, failed)
	require.Equal(t, rounds+1-n, made[string(outcome.StepNotTaken)])
	first := asked()[0]
	require.JSONEq(t, `true`, string(first["final"]))
	require.Contains(t, string(first["extra_instruction"]), "Summarize the rounds up to number ")
	require.Contains(t, string(first["rounds"]), `{"round":0,"plan":[{"id":"s","tool":"big"`)
	require.Contains(t, string(asked()[1]["rounds"]), `"summary":"Up to 1."}`, "of what was summarised before, the summary")
	told, counts := 0, 0
	for k := range x.asked {
		var list []struct{ Summary *string }
		require.NoError(t, json.Unmarshal(x.asked[k]["rounds"], &list))
		if k > 0 && len(list) > 0 && list[0].Summary != nil {
			told++
			assert.Regexp(t, `^Up to \d+\.$`, *list[0].Summary)
		}
		if k > 0 {
			counts++
		}
		require.Less(t, len(x.whole[k]), 8000+2500)
	}
	require.Greater(t, told, counts/3)
	var left struct{ Tokens int }
	require.NoError(t, json.Unmarshal(x.asked[rounds]["budget"], &left))
	kept := 1_000_000 - rounds*11 - (n-failed)*1100 - left.Tokens
	require.Greater(t, kept, failed*agent.DefaultOutput, "what summaries take counts, and one that failed keeps what was reserved for it")
	require.Less(t, kept, failed*(agent.DefaultOutput+10_500))

	o = s.run(`{"steps":[{"id":"a","tool":"long-whole"}]}`, "whole")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Contains(t, string(insists.asked[rounds]["rounds"]), `"summary":"Up to `)
	require.NotContains(t, insists.asked[rounds], "part")

	_, err := s.client.ApplyTemplate(ctx(t), []byte(`{"name":"late","agent":{"planner":{"tool":"planner"},"context":{"summary":"long"}}}`))
	require.ErrorContains(t, err, `the summary tool "long" is an agent`)
}
