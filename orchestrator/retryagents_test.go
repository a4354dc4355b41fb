package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// calls are those of the tool "act", which answers with what it is called with.
type calls struct {
	mu    sync.Mutex
	all   []string
	fails map[string]bool
}

func (x *calls) take() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.all
	x.all = nil
	slices.Sort(all)
	return all
}

func (s *system) acts() *calls {
	x := &calls{fails: map[string]bool{}}
	s.host("act", nil, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
		var in struct {
			N    string
			Size int
		}
		if err := json.Unmarshal(args, &in); err != nil {
			return worker.Output{}, worker.Terminal(err)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.all = append(x.all, in.N)
		if x.fails[in.N] {
			return worker.Output{}, worker.Terminal(fmt.Errorf("%s can't be done", in.N))
		}
		return worker.Output{Body: fmt.Appendf(nil, `{"n":%q,"more":%q}`, in.N, strings.Repeat("m", in.Size)), Type: "Act"}, nil
	})
	return x
}

// asks returns in which rounds it was asked since the last time.
func (x *script) asks() []int {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.rounds
	x.rounds = nil
	return all
}

// takenOver are the calls that were taken over, by their ids within an agent.
func takenOver(doc *outcome.Run, agent string) (all []string) {
	var of func(steps []outcome.Step)
	of = func(steps []outcome.Step) {
		for i := range steps {
			if steps[i].Reused {
				all = append(all, strings.TrimPrefix(steps[i].ID, agent+"/"))
			}
			of(steps[i].Items)
			of(steps[i].Steps)
		}
	}
	of(doc.Steps)
	slices.Sort(all)
	return all
}

// TestARetryGoesOnWithAnAgent from the first of its rounds that is not whole: neither planners are asked nor calls made again,
// at any depth, and what the planner is asked next is what it would have been. What is taken over has cost nothing.
func TestARetryGoesOnWithAnAgent(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.acts()
	s.apply("twice", "", `{"id":"one","tool":"act","arguments":{"n":"$input.n"}},{"id":"two","tool":"act","arguments":{"n":"t2"},"depends_on":["one"]}`, `"$ref:two.n"`)
	inner := s.plays("inner", `{"steps":[{"id":"in","tool":"act","arguments":{"n":"i"}}]}`, `{"output":"inside"}`)
	s.agent("helper", "", `{"planner":{"tool":"inner","mode":"plan"},"tools":["act"]}`)
	const used = `"usage":{"model":"m","input_tokens":10,"output_tokens":10},`
	planner := s.plays("planner",
		`{`+used+`"steps":[{"id":"a","tool":"act","arguments":{"n":"a"}},{"id":"b","tool":"act","arguments":{"n":"$ref:a.n","size":300000}},{"id":"made","value":"$ref:a.n"}]}`,
		`{`+used+`"steps":[{"id":"h","tool":"helper"},{"id":"t","tool":"twice","arguments":{"n":"t1"}},
			{"id":"l","tool":"act","for_each":{"in":["l0","l1"],"as":"e"},"arguments":{"n":"$ref:e"}},{"id":"v","value":"$ref:l"}]}`,
		`{`+used+`"steps":[{"id":"ok","tool":"act","arguments":{"n":"ok"}},{"id":"bad","tool":"act","arguments":{"n":"bad"}},{"id":"late","tool":"act","arguments":{"n":"late","of":"$ref:bad.n"}},
			{"id":"hidden","tool":"act","arguments":{"n":"hidden"},"if":"$status:bad == 'failed'"}]}`)
	definition := `{"planner":{"tool":"planner","mode":"plan"},"instructions":"Do %s.","tools":["act","helper","twice","blackboard"],"budget":{"tokens":100000,"steps":20}%s}`
	s.agent("doer", "", fmt.Sprintf(definition, "it", ""))
	x.fails["bad"] = true
	o := s.run(`{"steps":[{"id":"a","tool":"doer"}]}`, "r")
	require.Equal(t, outcome.Failed, o.Status)
	require.Contains(t, o.Errors[0].Message, "in round 3", "%s", o.JSON())
	require.Equal(t, []string{"a", "a", "bad", "hidden", "i", "l0", "l1", "ok", "t1", "t2"}, x.take())
	require.Equal(t, []int{0, 1, 2, 3}, append(planner.asks(), 3))
	require.Equal(t, []int{0, 1}, inner.asks())

	x.fails["bad"] = false
	planner.answers = append(planner.answers, `{"output":{"done":"$ref:r0.a.n"}}`)
	o, doc := s.retry("r")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"done":"a"}`, result(t, o, "a"))
	require.Equal(t, []string{"bad", "late"}, x.take(), "what failed, and what was made of it; what saw it fail is not taken again")
	require.Equal(t, []int{3}, planner.asks())
	require.Empty(t, inner.asks())
	require.Equal(t, []string{
		"=0/=plan", "=0/a", "=0/b", "=1/=plan", "=1/h/=0/=plan", "=1/h/=0/in", "=1/h/=1/=plan", "=1/l=0", "=1/l=1", "=1/t/one", "=1/t/two", "=2/=plan", "=2/ok",
	}, takenOver(doc, "a"))
	require.Contains(t, s.frozen(doc.Run).Needs, wire.RoundsAgain)
	var left struct{ Tokens, Steps int64 }
	require.NoError(t, json.Unmarshal(planner.asked[len(planner.asked)-1]["budget"], &left))
	require.Equal(t, int64(100_000), left.Tokens, "of its own it has used up nothing")
	require.Equal(t, int64(20-2), left.Steps)
	require.Equal(t, "Act", doc.Steps[0].Steps[1].Type)
}

// TestARetryAsksAnAgentAnew that is not the same any more, whose loop would come to the same end, or where somebody said
// something: from there.
func TestARetryAsksAnAgentAnew(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.acts()
	act := func(n string) string {
		return fmt.Sprintf(`{"steps":[{"id":"a","tool":"act","arguments":{"n":%q}}]}`, n)
	}
	planner := s.plays("planner", act("0"), act("1"))
	apply := func(more string) {
		s.agent("doer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["act"]`+more+`}`)
	}
	again := func(run string) *outcome.Outcome {
		planner.asks()
		x.take()
		o, _ := s.retry(run)
		return o
	}
	const body = `{"steps":[{"id":"a","tool":"doer"}]}`
	apply(`,"max_rounds":2`)
	require.Equal(t, fault.RoundsExhausted, s.run(body, "short").Errors[0].Code)
	require.Equal(t, fault.RoundsExhausted, again("short").Errors[0].Code)
	require.Equal(t, []int{0, 1}, planner.asks(), "with the same rounds it would be exhausted again")
	planner.answers = append(planner.answers, `{"output":"done"}`)
	apply(`,"max_rounds":3`)
	o := again("short.2")
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, []int{2}, planner.asks(), "now there is one more")
	require.Empty(t, x.take())

	apply(``)
	planner.answers = planner.answers[:2]
	require.Equal(t, outcome.Failed, s.run(body, "other").Status)
	planner.answers = append(planner.answers, `{"output":"done"}`)
	apply(`,"instructions":"Do it well."`)
	require.Equal(t, outcome.Succeeded, again("other").Status)
	require.Equal(t, []int{0, 1, 2}, planner.asks())
	apply(`,"guards":[{"on":"call","when":"false"}]`)
	planner.answers = planner.answers[:2]
	require.Equal(t, outcome.Failed, s.run(body, "guarded").Status)
	planner.answers = append(planner.answers, `{"output":"done"}`)
	require.Equal(t, outcome.Succeeded, again("guarded").Status)
	require.Equal(t, []int{0, 1, 2}, planner.asks())

	apply(``)
	planner.answers = []string{act("0"), act("1"), `{"steps":[{"id":"g","tool":"gate"}]}`}
	s.agent("doer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["act","gate"]}`)
	planner.before = func(round int) {
		if round == 0 {
			_, err := client.Say(ctx(t), s.client, "said", client.Word{Step: "a", ID: "w", Text: "to the other one"})
			require.NoError(t, err)
		}
	}
	r := s.submit(body, "said")
	<-s.tools.begun
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "said", "ann")))
	require.Equal(t, outcome.Cancelled, s.wait(r).Status)
	planner.before, planner.answers = nil, []string{act("0"), act("1"), `{"output":"done"}`}
	require.Equal(t, outcome.Succeeded, again("said").Status)
	require.Equal(t, []int{1, 2}, planner.asks(), "the second round was told something that was said to that run")
	require.Equal(t, []string{"1"}, x.take())
}

// TestARetryOfAnAgentSurvivesItsOwner: what is answered with what was taken over is answered once, whoever does it, and a
// retry of the retry takes over what that had taken over.
func TestARetryOfAnAgentSurvivesItsOwner(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.acts()
	var answers []string
	for i := range 12 {
		answers = append(answers, fmt.Sprintf(`{"steps":[{"id":"a","tool":"act","arguments":{"n":"%02d"}},{"id":"b","tool":"act","arguments":{"n":"b","of":"$ref:a.n"}}]}`, i))
	}
	planner := s.plays("planner", answers...)
	s.agent("doer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["act"]}`)
	require.Equal(t, outcome.Failed, s.run(`{"steps":[{"id":"a","tool":"doer"}]}`, "r").Status)
	planner.asks()
	x.take()
	for _, of := range []string{"r", "r.2"} {
		retried, err := s.client.Retry(ctx(t), of, client.RetryOptions{})
		require.NoError(t, err)
		s.orchestrator()
		s.leave()
		require.Equal(t, outcome.Failed, s.wait(retried).Status)
		require.Empty(t, planner.asks())
		require.Empty(t, x.take())
		doc, err := s.client.Get(ctx(t), retried.ID())
		require.NoError(t, err)
		require.Len(t, takenOver(doc, "a"), 36)
	}
}

// TestARetryTakesOverWhatFollowedAlone: once a call came to something else than it did, the planner is asked again, and what it
// answers then is made, also under the name of a call that was made before.
func TestARetryTakesOverWhatFollowedAlone(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.acts()
	act := func(n string) string {
		return fmt.Sprintf(`{"steps":[{"id":"a","tool":"act","arguments":{"n":%q}},{"id":"b","tool":"act","arguments":{"n":"b","of":"$ref:a.n"}}]}`, n)
	}
	planner := s.plays("planner", act("0"), act("1"), act("2"))
	s.agent("doer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["act"]}`)
	require.Equal(t, outcome.Failed, s.run(`{"steps":[{"id":"a","tool":"doer"}]}`, "r").Status)
	require.Equal(t, []string{"0", "1", "2", "b", "b", "b"}, x.take())
	planner.asks()

	s.overrides("act", `{"x-orchestration":{"approval":"$args.n == '1'"}}`)
	planner.answers = []string{act("0"), act("1"), act("other"), `{"output":"done"}`}
	retried, err := s.client.Retry(ctx(t), "r", client.RetryOptions{})
	require.NoError(t, err)
	_, err = s.client.Reject(ctx(t), s.asked(retried.ID(), "a/=1/a"), client.Answer{Reason: "no"})
	require.NoError(t, err)
	o := s.wait(retried)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Equal(t, []int{2, 3}, planner.asks(), "the second round came to something else")
	require.Equal(t, []string{"b", "other"}, x.take())
}

// TestWhatARetryTakesOverOfSummaries: all that were made, also that before a planner that did not answer, and they stand where they
// stood. They were paid for by the run before: the first planner that is asked has the whole budget, and no model of that run is
// told of. One that failed is asked for anew, and nothing else is for that.
func TestWhatARetryTakesOverOfSummaries(t *testing.T) {
	t.Parallel()
	s := start(t)
	const rounds, budget, used = 12, 10_000_000, `"usage":{"input_tokens":10,"output_tokens":1}`
	var answers []string
	for n := range rounds {
		answers = append(answers, fmt.Sprintf(`{"steps":[{"id":"s","tool":"big","arguments":{"Bytes":%d}}],`+used+`}`, 900+n))
	}
	planner := s.plays("planner", answers...)
	for tool, asked := range map[string]func() []map[string]json.RawMessage{
		"told":   s.digests("told", 1000, `{"output":"Up to %d.","usage":{"input_tokens":1000,"output_tokens":100}}`),
		"untold": s.digests("untold", 1000, `"Up to %d."`),
		"fails":  s.digests("fails", 1, ""),
	} {
		planner.answers = answers
		s.agent("long", "", fmt.Sprintf(`{"planner":{"tool":"planner","mode":"plan"},"tools":["big","process"],"budget":{"tokens":%d},
			"context":{"total_bytes":7700,"result_bytes":1500,"summary":%q}}`, budget, tool))
		require.Equal(t, outcome.Failed, s.run(`{"steps":[{"id":"a","tool":"long"}]}`, tool).Status)
		require.Len(t, asked(), 2, "before a planner that answered, and before the one that did not")
		before := len(planner.asked)

		planner.answers = append(slices.Clone(answers),
			`{"steps":[{"id":"p","tool":"process"}],`+used+`}`, `{"steps":[{"id":"m","tool":"process_models"}],`+used+`}`, `{"output":"$ref:r13.m"}`)
		o, doc := s.retry(tool)
		require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
		require.Len(t, planner.asked, before+3)
		require.JSONEq(t, `[{"model":"planner","answers":2,"tokens":22,"cost_usd":0}]`, result(t, o, "a"))
		summaries := slices.DeleteFunc(takenOver(doc, "a"), func(id string) bool { return !strings.HasSuffix(id, "/=summary") })
		var left struct{ Tokens int64 }
		require.NoError(t, json.Unmarshal(planner.asked[before]["budget"], &left))
		if tool == "fails" {
			require.Empty(t, summaries)
			require.Len(t, asked(), 4)
			require.Less(t, left.Tokens, int64(budget), "those that were asked for again keep what was reserved for them")
			continue
		}
		require.Len(t, summaries, 2)
		require.Len(t, asked(), 2)
		require.Contains(t, string(planner.asked[before]["rounds"]), `"summary":"Up to 2."`)
		require.Equal(t, int64(budget), left.Tokens, "of its own it has used up nothing")
		require.NoError(t, json.Unmarshal(planner.asked[before+2]["budget"], &left))
		require.Equal(t, int64(budget-22), left.Tokens)
	}
}
