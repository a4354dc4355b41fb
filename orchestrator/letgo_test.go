package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestALoopThatLetsGo: what iterations returned nobody holds that are behind; whoever looks at the run, while it goes on or
// when it is over, and whichever owner it has by then, finds it all.
func TestALoopThatLetsGo(t *testing.T) {
	t.Parallel()
	s := start(t)
	plan := func(text string) string {
		return fmt.Sprintf(`{"steps":[
		{"id":"l","tool":"echo","arguments":{"n":"$index","text":%[1]q,"last":"$last.n"},"repeat":{"max":150}},
		{"id":"m","arguments":{"n":"$ref:l.n","text":"$ref:l.text"},"repeat":{"max":40},"plan":{"steps":[
			{"id":"a","tool":"echo","arguments":{"n":"$input.n","text":"$input.text","list":[{"k":1},{"k":2}]}},
			{"id":"b","tool":"echo","arguments":{"a":"$ref:a"}},
			{"id":"e","for_each":{"in":"$ref:a.list"},"tool":"echo","arguments":{"i":"$ref:item.k","a":"$ref:a.n","none":"$ref:item.none"}},
			{"id":"v","value":{"is":"$ref:a.text"}},
			{"id":"w","tool":"echo","arguments":{"none":"$input.none","nor":"$ref:b.none"}}],"output":{"n":"$ref:b.a.n","v":"$ref:v","in":"$input.n"}}},
		{"id":"c","tool":"echo","arguments":{"n":"$index","text":%[1]q},"repeat":{"max":20,"collect":true}},
		{"id":"g","tool":"gate","arguments":{"n":"$ref:m.n","c":"$ref:c[3].n"},"depends_on":["l","m"]}],"output_steps":["g"]}`, text)
	}
	text := strings.Repeat("x", 20<<10)
	r := s.submit(plan(text), "lets-go")
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
			a := fmt.Sprintf(`{"n":149,"text":%q,"list":[{"k":1},{"k":2}]}`, text)
			require.Equal(t, fmt.Sprintf(`{"n":149,"v":{"is":%q},"in":149}`, text), string(st.Result))
			require.Equal(t, a, string(st.Steps[0].Result))
			require.Equal(t, `{"a":`+a+`}`, string(st.Steps[1].Result))
			require.JSONEq(t, `[{"index":0,"status":"ok","data":{"i":1,"a":149,"none":null}},{"index":1,"status":"ok","data":{"i":2,"a":149,"none":null}}]`, string(st.Steps[2].Result))
			require.Equal(t, fmt.Sprintf(`{"is":%q}`, text), string(st.Steps[3].Result))
			require.Equal(t, `{"none":null,"nor":null}`, string(st.Steps[4].Result))
		}
		for i, st := range doc.Steps[2].Steps {
			require.Equal(t, fmt.Sprintf(`{"n":%d,"text":%q}`, i, text), string(st.Result))
		}
	}
	s.reaches(r, "g")
	looked := func(who string) {
		t.Helper()
		var doc *outcome.Run
		require.Eventually(t, func() bool { // so much takes a busy machine longer than a client waits
			var err error
			doc, err = s.client.Get(ctx(t), "lets-go")
			return err == nil
		}, patience, 50*time.Millisecond, who)
		check(doc)
	}
	looked("the owner has it")
	s.orchestrator()
	s.leave()
	looked("the next owner has it")
	close(s.tools.gate)
	o := s.wait(r)
	require.JSONEq(t, `{"n":149,"c":3}`, result(t, o, "g"))
	doc := s.history("default", "lets-go")
	check(doc)

	small := s.submit(plan("x"), "holds-all") // which holds less than is looked at
	<-s.tools.begun
	require.Equal(t, s.wait(small).Warnings, o.Warnings)
	require.Len(t, o.Warnings, 3)
	require.NotEmpty(t, doc.Steps[1].Steps[7].Steps[2].List)
	require.Equal(t, s.history("default", "holds-all").Steps[1].Steps[7].Steps[2].List, doc.Steps[1].Steps[7].Steps[2].List)
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

// TestARunThatIsPurgedWhileItReadsAgain: what a round refers to is gone, since another owner has finished the run; this one
// lets go of it.
func TestARunThatIsPurgedWhileItReadsAgain(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.SweepEvery = time.Hour })
	const rounds = 40
	var answers []string
	for range rounds {
		answers = append(answers, fmt.Sprintf(`{"steps":[{"id":"x","tool":"echo","arguments":{"n":1,"text":%q}}]}`, strings.Repeat("y", 60<<10)))
	}
	answers = append(answers, `{"steps":[{"id":"v","tool":"echo","arguments":{"n":"$ref:r2.x.n"}}]}`, `{"output":1}`)
	x := s.playsAs("planner", patient, answers...)
	var r *client.Run
	submitted, purged := make(chan struct{}), make(chan struct{})
	x.before = func(round int) {
		if round == rounds {
			<-submitted
			assert.NoError(t, s.store.Ledger.PurgeRun(ctx(t), subjects.NewRun("default", "purged"), r.Generation()))
			close(purged)
		}
	}
	s.agent("long", "", `{"planner":{"tool":"planner","mode":"plan"},"max_rounds":100,"tools":["echo"]}`)
	r = s.submit(`{"steps":[{"id":"a","tool":"long"}]}`, "purged")
	close(submitted)
	<-purged
	require.Eventually(t, func() bool {
		_, err := s.client.Get(ctx(t), "purged")
		return fault.CodeOf(err) == fault.NotFound
	}, time.Minute, 50*time.Millisecond, "its owner reads it again and again")
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

// BenchmarkWhatALoopHolds runs a loop of many iterations that return 20 KiB each, and reports what lies in memory of this
// process at its end beyond what lay there before, the embedded server's share included.
func BenchmarkWhatALoopHolds(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	s := start(b)
	plan := `{"steps":[{"id":"l","tool":"echo","arguments":{"n":"$index","text":%q},"repeat":{"max":%d}},{"id":"g","tool":"gate","depends_on":["l"]}],"output_steps":["g"]}`
	for n := range b.N {
		before := heap()
		r := s.submit(fmt.Sprintf(plan, strings.Repeat("x", 20<<10), 9990), fmt.Sprint("loop-", n))
		<-s.tools.begun
		b.ReportMetric(heap()-before, "MiB")
		s.tools.gate <- struct{}{}
		ended := time.Now()
		require.Equal(b, outcome.Succeeded, s.wait(r).Status)
		b.ReportMetric(time.Since(ended).Seconds(), "s-to-end")
	}
}
