package orchestrator_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// unhosted registers a tool that has no worker.
func (s *system) unhosted(name string, limit int) tool.Registered {
	s.t.Helper()
	def := fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"x-orchestration":{"mode":"fan-out-bounded","max_concurrency":%d}}`, name, limit)
	at, err := s.store.Requests.RequestRegister(ctx(s.t), []byte(def))
	require.NoError(s.t, err)
	return at
}

// manySteps writes a plan of n steps of a tool that wait for nothing.
func manySteps(tool string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"id":"s%d","tool":%q}`, i, tool)
	}
	return `{"steps":[` + strings.Join(all, ",") + `]}`
}

// demand returns that of a tool, and for how many partitions it is not known.
func (s *system) demand(name string) (d tool.Demand, unsure int) {
	s.t.Helper()
	all, err := s.client.Demand(ctx(s.t))
	if fault.CodeOf(err) == fault.NotReady { // for the moment in which one is dead and asked nevertheless
		return d, 64
	}
	require.NoError(s.t, err)
	require.NotNil(s.t, all.Of(name))
	return *all.Of(name), len(all.Unsure)
}

// wanted waits until a tool's demand is known for all runs, and so much.
func (s *system) wanted(name string, steps int) (d tool.Demand) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		var unsure int
		d, unsure = s.demand(name)
		return unsure == 0 && d.Steps == steps
	}, patience, 50*time.Millisecond)
	require.Equal(s.t, d.Steps, d.Held+d.Queued+d.Leased)
	return d
}

// TestDemandIsTrueWhereLagLies: of 5,000 steps that wait, their tool's consumer knows some.
func TestDemandIsTrueWhereLagLies(t *testing.T) {
	t.Parallel()
	s := start(t)
	wide := s.unhosted("wide", 1000)
	submitted := time.Now()
	s.submit(manySteps("wide", 5000), "r")
	d := s.wanted("wide", 5000)
	lag, err := s.store.Queue.Lag(ctx(t), "wide", wide.Shard)
	require.NoError(t, err)
	require.LessOrEqual(t, lag.Behind, uint64(1250), "what the lag says")
	require.Zero(t, lag.Leased)
	require.GreaterOrEqual(t, d.Held, 3750)
	require.Equal(t, tool.Demand{Tool: "wide", Steps: 5000, Held: 5000 - int(lag.Behind), Queued: int(lag.Behind), Limit: 1000, OldestMS: d.OldestMS}, d)
	require.Eventually(t, func() bool {
		before := time.Since(submitted)
		d, _ := s.demand("wide")
		return d.OldestMS > 0 && d.OldestMS >= before.Milliseconds()-1000 // between what this process and the server take for the time
	}, patience, 50*time.Millisecond)
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), "r", "test")))
	s.wanted("wide", 0)
}

// TestDemandTellsWhatWorkersHaveFromWhatWaits: what is leased waits for no worker.
func TestDemandTellsWhatWorkersHaveFromWhatWaits(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(manySteps("gate", 3), "r")
	for range 3 {
		<-s.tools.begun
	}
	d := s.wanted("gate", 3)
	require.Equal(t, 3, d.Leased)
	require.Zero(t, d.OldestMS, "no step waits")
	none := s.wanted("echo", 0)
	require.Zero(t, none.OldestMS)
	close(s.tools.gate)
	require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	s.wanted("gate", 0)
}

// TestDemandOfTwoOrchestratorsOfWhichOneDies: the sum of both is true, while partitions change hands and when one takes
// over what the other had; where it is not known, it is said for which partitions, and nothing counts twice.
func TestDemandOfTwoOrchestratorsOfWhichOneDies(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.unhosted("narrow", 2)
	dying := natstest.Connect(t, s.srv)
	o, err := orchestrator.New(dying, s.config)
	require.NoError(t, err)
	ended := make(chan struct{})
	life, end := context.WithCancel(context.Background())
	t.Cleanup(func() { end(); <-ended })
	go func() {
		defer close(ended)
		_ = o.Run(life) // its connection is closed beneath it
	}()
	<-o.Ready()
	const runs, each = 16, 20
	for i := range runs {
		s.submit(manySteps("narrow", each), fmt.Sprint("r", i))
	}
	d := s.wanted("narrow", runs*each)
	require.Positive(t, d.Held)
	dying.Close()
	d, unsure := s.demand("narrow") // within 3 s, or it says what it does not know
	if unsure == 0 {
		require.Equal(t, runs*each, d.Steps)
	} else {
		require.LessOrEqual(t, d.Steps, runs*each)
	}
	s.wanted("narrow", runs*each)
}

// TestDemandWithoutOrchestratorsIsNotKnown: nobody guesses.
func TestDemandWithoutOrchestratorsIsNotKnown(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.unhosted("wide", 10)
	s.submit(manySteps("wide", 5), "r")
	s.wanted("wide", 5)
	s.leave()
	_, err := s.client.Demand(ctx(t))
	require.Equal(t, fault.NotReady, fault.CodeOf(err))
}

// TestNowAddsUp: what each of several orchestrators says that it holds adds up to what there is.
func TestNowAddsUp(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.unhosted("narrow", 2)
	var all []*orchestrator.Orchestrator
	for range 2 {
		o, err := orchestrator.New(s.nc, s.config)
		require.NoError(t, err)
		_, err = o.Now(ctx(t))
		require.Equal(t, fault.NotReady, fault.CodeOf(err), "it has not begun")
		life, end := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(life) }()
		t.Cleanup(func() { end(); require.NoError(t, <-ended) })
		<-o.Ready()
		all = append(all, o)
	}
	s.leave()
	const runs, each = 16, 20
	for i := range runs {
		s.submit(manySteps("narrow", each), fmt.Sprint("r", i))
	}
	require.Eventually(t, func() bool {
		var partitions, active, wanted, queued int
		var oldest time.Duration
		for _, o := range all {
			n, err := o.Now(ctx(t))
			require.NoError(t, err)
			partitions += n.Partitions
			active += n.Runs
			for _, d := range n.Tools {
				if d.Tool == "narrow" {
					require.Equal(t, 2, d.Limit)
					wanted += d.Steps
					queued += d.Queued
					oldest = max(oldest, d.Oldest())
				}
			}
		}
		return partitions == 64 && active == runs && wanted == runs*each && queued > 0 && oldest > 0
	}, patience, 20*time.Millisecond)
}

// TestRunsThatWaitAreNamed: those of which a step has been given to no worker, held back or out, of whatever tenant; not
// those that a worker has, and none that has waited for less.
func TestRunsThatWaitAreNamed(t *testing.T) {
	t.Parallel()
	s := start(t)
	narrow := s.unhosted("narrow", 2)
	tools, err := s.store.Registry.Tools(ctx(t))
	require.NoError(t, err)
	s.submit(`{"steps":[{"id":"g","tool":"gate"}]}`, "executes")
	<-s.tools.begun
	s.submit(manySteps("narrow", 1), "first")
	s.submit(manySteps("narrow", 8), "second")
	s.wanted("narrow", 9)
	waiting := func(over time.Duration) map[string]string {
		all, err := s.store.Requests.Waiting(ctx(t), tools, over)
		require.NoError(t, err)
		require.Zero(t, all.More)
		if len(all.Unsure) > 0 {
			return nil
		}
		runs := map[string]string{}
		for _, r := range all.Runs {
			require.Equal(t, narrow.Name, r.Tool)
			require.GreaterOrEqual(t, r.MS, over.Milliseconds())
			runs[r.Run] = r.Step
		}
		return runs
	}
	want := map[string]string{"default.first": "s0", "default.second": "s0"}
	require.Eventually(t, func() bool { return maps.Equal(want, waiting(time.Millisecond)) }, patience, 20*time.Millisecond)
	require.Empty(t, waiting(time.Hour))

	// Another orchestrator knows it too, though it doesn't know what the one before has sent, and where.
	next := s.orchestrator()
	s.leave()
	s.leave = next
	require.Eventually(t, func() bool { return maps.Equal(want, waiting(time.Millisecond)) }, patience, 20*time.Millisecond)

	// Who may not see all tenants is told of no run, whatever is asked for.
	replies, err := s.nc.SubscribeSync(s.nc.NewInbox())
	require.NoError(t, err)
	ask := wire.DemandRequest{Tools: map[string]wire.DemandSince{"narrow": {Behind: 2}}}
	require.NoError(t, s.nc.PublishMsg(&nats.Msg{Subject: subjects.DemandSubject, Reply: replies.Subject, Header: wire.Versioned(), Data: ask.Body()}))
	for told := uint64(0); ^told != 0; {
		m, err := replies.NextMsg(patience)
		require.NoError(t, err)
		answer := wire.ParseDemandAnswer(m.Data)
		require.Empty(t, answer.Runs)
		told |= answer.Serves
	}
	close(s.tools.gate)
}
