package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/leaselog"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// TestLimitsHoldWhenARunStops: however a run's steps are decided without their workers, the tool's limit counts their
// handlers for as long as they are at work, those that obey their context and those that are deaf.
func TestLimitsHoldWhenARunStops(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct {
		plan    string // of the run that stops; %s is its steps
		timeout time.Duration
		stop    func(s *system, id string)
	}{
		"cancel":            {plan: `{"steps":[%s]}`, stop: func(s *system, id string) { require.NoError(s.t, cancelled(s.client.Cancel(ctx(s.t), id, "ann"))) }},
		"failure":           {plan: `{"on_failure":"stop","steps":[{"id":"f","tool":"bomb"},%s]}`, stop: func(s *system, _ string) { close(s.tools.gate) }},
		"overdue":           {plan: `{"steps":[%s]}`},
		"execution timeout": {plan: `{"steps":[%s]}`, timeout: 700 * time.Millisecond},
	}
	for name, k := range kinds {
		for _, limit := range []int{1, 3} {
			for _, deaf := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, limit %d, deaf %v", name, limit, deaf), func(t *testing.T) {
					t.Parallel()
					s := start(t)
					var log leaselog.Log
					var at atomic.Int32
					work := 1200 * time.Millisecond
					if deaf { // longer than it takes to stop the run
						work = 2500 * time.Millisecond
					}
					o := &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: limit, TimeoutMS: k.timeout.Milliseconds()}
					if limit == 1 {
						o = &tool.Orchestration{Mode: tool.SequentialOnly, TimeoutMS: k.timeout.Milliseconds()}
					}
					for i := range 2 {
						w, err := worker.New(natstest.Connect(t, s.srv), worker.Config{Name: fmt.Sprint("w", i), Logger: logger(t), Slots: 8})
						require.NoError(t, err)
						require.NoError(t, w.HandleRaw(&tool.Definition{Name: "slow", Orchestration: o}, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
							info, _ := worker.InfoFrom(ctx)
							defer log.Begin(leaselog.Entry{Tool: "slow", Worker: info.Worker, Key: info.Key})()
							at.Add(1)
							if info.Run == "after" {
								return worker.Output{Body: args}, nil
							}
							if !deaf {
								<-ctx.Done()
							}
							time.Sleep(work) // to the end of its work
							return worker.Output{Body: args}, nil
						}))
						require.NoError(t, w.HandleRaw(&tool.Definition{Name: "bomb"}, func(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
							<-s.tools.gate
							return worker.Output{}, worker.Terminal(errors.New("boom"))
						}))
						s.background(w.Run, w.Ready())
					}
					var steps, after string
					for i := range 2 * limit {
						overdue := ""
						if name == "overdue" {
							overdue = `,"timeout":"2s"` // in which a busy machine begins them
						}
						steps += fmt.Sprintf(`,{"id":"s%d","tool":"slow"%s}`, i, overdue)
						after += fmt.Sprintf(`,{"id":"s%d","tool":"slow"}`, i)
					}
					stopped := s.submit(fmt.Sprintf(k.plan, steps[1:]), "stopped")
					require.Eventually(t, func() bool { return int(at.Load()) >= limit }, patience, time.Millisecond)
					next := s.submit(`{"steps":[`+after[1:]+`]}`, "after")
					if k.stop != nil {
						k.stop(s, "stopped")
					}
					if k.timeout == 0 { // the end of the run waits for no handler
						require.NotEqual(t, outcome.Succeeded, s.wait(stopped).Status)
					}
					require.Equal(t, outcome.Succeeded, s.wait(next).Status)
					require.LessOrEqual(t, leaselog.Max(log.Entries("slow")), limit, "handlers at a time")
				})
			}
		}
	}
}

// TestADeafHandlerHoldsNoLimitForEver: its step is acknowledged a lease after its time was over.
func TestADeafHandlerHoldsNoLimitForEver(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *orchestrator.Config) { c.Store.AckWait = 3 * time.Second })
	for i := range 2 {
		w, err := worker.New(natstest.Connect(t, s.srv), worker.Config{Name: fmt.Sprint("w", i), Logger: logger(t)})
		require.NoError(t, err)
		o := &tool.Orchestration{Mode: tool.SequentialOnly, TimeoutMS: 500}
		require.NoError(t, w.HandleRaw(&tool.Definition{Name: "deaf", Orchestration: o}, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			if info, _ := worker.InfoFrom(ctx); info.Run == "deaf" {
				s.tools.begun <- "deaf"
				<-s.tools.gate
			}
			return worker.Output{Body: args}, nil
		}))
		s.background(w.Run, w.Ready())
	}
	t.Cleanup(func() { close(s.tools.gate) })
	r := s.submit(`{"steps":[{"id":"d","tool":"deaf"}]}`, "deaf")
	<-s.tools.begun
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "deaf", "ann")))
	require.Equal(t, outcome.Cancelled, s.wait(r).Status)
	require.Equal(t, outcome.Succeeded, s.run(`{"steps":[{"id":"d","tool":"deaf"}]}`, "next").Status)
}
