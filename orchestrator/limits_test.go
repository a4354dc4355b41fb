package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// crowd is a tool whose calls wait until they are let go, and that knows how many are at it.
type crowd struct {
	mu    sync.Mutex
	now   map[string]int // by run
	gates map[string]chan struct{}
}

func newCrowd() *crowd { return &crowd{now: map[string]int{}, gates: map[string]chan struct{}{}} }

// gate is where the calls of a run wait.
func (c *crowd) gate(run string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gates[run] == nil {
		c.gates[run] = make(chan struct{}, 1000)
	}
	return c.gates[run]
}

// pass lets n calls of a run go, those that are at it or that come.
func (c *crowd) pass(run string, n int) {
	for range n {
		c.gate(run) <- struct{}{}
	}
}

func (c *crowd) all() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range c.now {
		n += of
	}
	return n
}

func (c *crowd) of(run string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now[run]
}

func (c *crowd) add(run string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[run] += n
}

// host starts a worker with many slots for a tool of this name.
func (c *crowd) host(s *system, name string, o *tool.Orchestration) {
	o.TimeoutMS = patient.TimeoutMS
	w, err := worker.New(natstest.Connect(s.t, s.srv), worker.Config{Name: "roomy", Logger: logger(s.t), Slots: 64})
	require.NoError(s.t, err)
	require.NoError(s.t, w.HandleRaw(&tool.Definition{Name: name, Orchestration: o}, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(ctx)
		c.add(info.Run, 1)
		defer c.add(info.Run, -1)
		select {
		case <-c.gate(info.Run):
		case <-ctx.Done():
			return worker.Output{}, context.Cause(ctx)
		}
		if string(args) == `{"fail":true}` {
			return worker.Output{}, fmt.Errorf("not this time")
		}
		return worker.Output{Body: args}, nil
	}))
	s.background(w.Run, w.Ready())
}

func steps(tool string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":"s%d","tool":%q,"arguments":{"fail":%v}},`, i, tool, i == 0)
	}
	return `{"steps":[` + strings.TrimSuffix(b.String(), ",") + `]}`
}

func (s *system) overrides(name, o string) {
	s.t.Helper()
	_, err := s.store.Requests.RequestOverride(ctx(s.t), name, []byte(o))
	require.NoError(s.t, err)
}

// begun submits a plan and waits until it has its contracts.
func (s *system) begun(plan, id string) *client.Run {
	s.t.Helper()
	r := s.submit(plan, id)
	require.Eventually(s.t, func() bool {
		doc, err := s.client.Get(ctx(s.t), id)
		return err == nil && !doc.Started.IsZero()
	}, patience, 5*time.Millisecond)
	return r
}

// The limit in force is the registry's, for whoever owns the run and whenever it began. What a contract means for a run
// is what it meant when the run began.
func TestARaisedLimitReachesRunsThatGoOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.orchestrator()
	s.orchestrator()
	c := newCrowd()
	c.host(s, "crowd", &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 2})
	var runs []*client.Run
	for i := range 6 {
		runs = append(runs, s.begun(steps("crowd", 8), fmt.Sprint("old", i)))
	}
	require.Eventually(t, func() bool { return c.all() == 2 }, patience, time.Millisecond, "the limit that it was registered with")

	s.overrides("crowd", `{"x-orchestration":{"max_concurrency":40,"retry":{"max_attempts":3}}}`)
	require.Eventually(t, func() bool { return c.all() == 40 }, patience, time.Millisecond, "the limit of now reaches runs of three owners; at it are %d", c.all())
	runs = append(runs, s.begun(steps("crowd", 8), "new"))
	for _, r := range runs { // all of them before one is waited for: whose calls have the room is not said
		c.pass(r.ID(), 20)
	}
	for _, r := range runs {
		o := s.wait(r)
		require.Equal(t, outcome.Partial, o.Status)
		attempts := 1
		if o.Run == "new" {
			attempts = 3
		}
		require.Equal(t, attempts, o.Errors[0].Attempts, "run %s keeps the retries that it began with", o.Run)
	}
}

// A run that began under a low limit goes on offering its steps; the runs beside it have the limit of now all the same.
func TestAnOldRunHoldsNobodyToItsLimit(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := newCrowd()
	c.host(s, "crowd", &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 1})
	old := s.begun(`{"steps":[{"id":"a","tool":"crowd"},{"id":"b","tool":"crowd","depends_on":["a"]},{"id":"c","tool":"crowd","depends_on":["b"]}]}`, "old")
	require.Eventually(t, func() bool { return c.of("old") == 1 }, patience, time.Millisecond)
	s.overrides("crowd", `{"x-orchestration":{"max_concurrency":16}}`)
	recent := s.begun(steps("crowd", 60), "new")
	require.Eventually(t, func() bool { return c.of("new") == 15 }, patience, time.Millisecond)
	c.pass("old", 1) // what its owner offers next is of the run that began with a limit of 1
	require.Eventually(t, func() bool {
		doc, err := s.client.Get(ctx(t), "old")
		return err == nil && doc.Steps[0].Status == outcome.StepSucceeded
	}, patience, time.Millisecond, "were all that pass decided before, nobody would make room for it")
	c.pass("new", 20)
	require.Eventually(t, func() bool { return len(c.gate("new")) == 0 && c.all() == 16 && c.of("old") == 1 }, patience, time.Millisecond,
		"at it are %d", c.all())
	c.pass("old", 3)
	c.pass("new", 60)
	s.wait(old)
	s.wait(recent)
}

// A lowered limit counts at once, too.
func TestALoweredLimitReachesRunsThatGoOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.orchestrator()
	c := newCrowd()
	c.host(s, "crowd", &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 16})
	r := s.begun(steps("crowd", 60), "old")
	require.Eventually(t, func() bool { return c.all() == 16 }, patience, time.Millisecond)
	s.overrides("crowd", `{"x-orchestration":{"max_concurrency":2}}`)
	c.pass("old", 16)
	require.Eventually(t, func() bool { return len(c.gate("old")) == 0 && c.all() == 2 }, patience, time.Millisecond)
	for range 60 {
		c.pass("old", 1)
		require.LessOrEqual(t, c.all(), 2)
	}
	require.Equal(t, outcome.Partial, s.wait(r).Status)
}

// A run that began while the tool took one call at a time keeps to that, also once an operator lets it take many.
func TestAModeIsKeptByRunsThatBeganUnderIt(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := newCrowd()
	c.host(s, "crowd", &tool.Orchestration{Mode: tool.SequentialOnly})
	old := s.begun(steps("crowd", 10), "old")
	require.Eventually(t, func() bool { return c.all() == 1 }, patience, time.Millisecond)
	s.overrides("crowd", `{"x-orchestration":{"mode":"fan-out-bounded","max_concurrency":8}}`)
	c.pass("old", 2) // two were out when the limit was raised, and the consumer may have given both
	require.Eventually(t, func() bool { return len(c.gate("old")) == 0 && c.of("old") == 1 }, patience, time.Millisecond)
	recent := s.begun(steps("crowd", 7), "new")
	require.Eventually(t, func() bool { return c.of("new") == 7 }, patience, time.Millisecond)
	for range 10 {
		require.LessOrEqual(t, c.of("old"), 1)
		c.pass("old", 1)
	}
	c.pass("new", 7)
	require.Equal(t, outcome.Partial, s.wait(old).Status)
	require.Equal(t, outcome.Partial, s.wait(recent).Status)
}
