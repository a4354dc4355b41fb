package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
)

// TestALoopThatLetsGo: what iterations returned nobody holds that are behind; whoever looks at the run, while it goes on or
// when it is over, and whichever owner it has by then, finds it all.
func TestALoopThatLetsGo(t *testing.T) {
	t.Parallel()
	s := start(t)
	text := strings.Repeat("x", 20<<10)
	r := s.submit(fmt.Sprintf(`{"steps":[
		{"id":"l","tool":"echo","arguments":{"n":"$index","text":%[1]q,"last":"$last.n"},"repeat":{"max":150}},
		{"id":"m","arguments":{"n":"$ref:l.n"},"repeat":{"max":40},"plan":{"steps":[{"id":"a","tool":"echo","arguments":{"n":"$input.n","text":%[1]q}},
			{"id":"b","tool":"echo","arguments":{"a":"$ref:a"}},{"id":"e","for_each":{"in":[1,2]},"tool":"echo","arguments":{"i":"$ref:item","a":"$ref:a.n"}}],"output":{"n":"$ref:b.a.n"}}},
		{"id":"g","tool":"gate","arguments":{"n":"$ref:m.n"}}],"output_steps":["g"]}`, text), "lets-go")
	check := func(doc *outcome.Run) {
		t.Helper()
		require.Len(t, doc.Steps[0].Steps, 150)
		for i, st := range doc.Steps[0].Steps {
			last := fmt.Sprint(i - 1)
			if i == 0 {
				last = "null"
			}
			require.Equal(t, fmt.Sprintf(`{"n":%d,"text":%q,"last":%s}`, i, text, last), string(st.Result), st.ID)
		}
		require.Len(t, doc.Steps[1].Steps, 40)
		for _, st := range doc.Steps[1].Steps {
			a := fmt.Sprintf(`{"n":149,"text":%q}`, text)
			require.Equal(t, `{"n":149}`, string(st.Result))
			require.Equal(t, a, string(st.Steps[0].Result))
			require.Equal(t, `{"a":`+a+`}`, string(st.Steps[1].Result))
			require.JSONEq(t, `[{"index":0,"status":"ok","data":{"i":1,"a":149}},{"index":1,"status":"ok","data":{"i":2,"a":149}}]`, string(st.Steps[2].Result))
		}
	}
	s.reaches(r, "g")
	doc, err := s.client.Get(ctx(t), "lets-go")
	require.NoError(t, err)
	check(doc)
	s.orchestrator()
	s.leave()
	doc, err = s.client.Get(ctx(t), "lets-go")
	require.NoError(t, err)
	check(doc)
	close(s.tools.gate)
	o := s.wait(r)
	require.JSONEq(t, `{"n":149}`, result(t, o, "g"))
	require.Empty(t, o.Warnings)
	check(s.history("default", "lets-go"))
}

// TestRoundsOfLongAgo: what a round refers to was let go of, and is read again before the round begins: what follows from
// it at once, and what is handed to a worker. An owner that comes later comes to the same.
func TestRoundsOfLongAgo(t *testing.T) {
	t.Parallel()
	const rounds = 60
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprint("another owner ", other), func(t *testing.T) {
			t.Parallel()
			s := start(t)
			var answers []string
			for n := range rounds {
				answers = append(answers, fmt.Sprintf(`{"steps":[{"id":"x","tool":"echo","arguments":{"n":%d,"text":%q}},{"id":"e","tool":"echo","for_each":{"in":[%d,7]},"arguments":{"i":"$ref:item"}}]}`,
					n, strings.Repeat("y", 40<<10), n))
			}
			answers = append(answers,
				`{"steps":[{"id":"v","value":{"$calc":"$ref:r3.x.n * 100 + $ref:r50.x.n"}},{"id":"t","tool":"echo","arguments":{"n":"$ref:r7.x.n","v":"$ref:v","e":"$ref:r2.e[0].data.i"}},{"id":"g","tool":"gate","arguments":{"n":"$ref:r1.x.n"}}]}`,
				`{"steps":[{"id":"o","value":{"t":"$ref:r60.t","again":"$ref:r3.x.n","g":"$ref:r60.g"}}],"output":"$ref:o"}`)
			x := s.playsAs("planner", patient, answers...)
			s.agent("long", "", `{"planner":{"tool":"planner","mode":"plan"},"max_rounds":100,"tools":["echo","gate"]}`)
			r := s.submit(`{"steps":[{"id":"a","tool":"long"}]}`, "rounds")
			s.reaches(r, "g")
			if other {
				s.orchestrator()
				s.leave()
			}
			close(s.tools.gate)
			o := s.wait(r)
			require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
			require.JSONEq(t, `{"t":{"n":7,"v":350,"e":2},"again":3,"g":{"n":1}}`, result(t, o, "a"))
			require.Len(t, x.times(), rounds+2)
			steps := s.history("default", "rounds").Steps[0].Steps
			seen := 0
			for _, st := range steps {
				if !strings.HasSuffix(st.ID, "/x") {
					continue
				}
				var got struct{ N int }
				require.NoError(t, json.Unmarshal(st.Result, &got))
				require.Equal(t, seen, got.N)
				seen++
			}
			require.Equal(t, rounds, seen)
		})
	}
}

// reaches waits until a run has begun a step that waits for its gate.
func (s *system) reaches(r *client.Run, step string) {
	s.t.Helper()
	over := make(chan *outcome.Outcome, 1)
	go func() {
		if o, err := r.Wait(ctx(s.t)); err == nil {
			over <- o
		}
	}()
	select {
	case at := <-s.tools.begun:
		require.True(s.t, strings.HasSuffix(at, step), "%s", at)
	case o := <-over:
		require.Fail(s.t, "the run is over", "%.2000s", o.JSON())
	case <-time.After(patience):
		require.Fail(s.t, "the run did not come that far")
	}
}
