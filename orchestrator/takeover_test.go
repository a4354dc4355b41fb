package orchestrator_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

var (
	overBefore = flag.Int("over", 4000, "runs that are over when the owner dies in BenchmarkAnOwnerDies")
	busyThen   = flag.Int("busy", 24, "runs that go on then")
)

// ticks are when each run's tool was called.
type ticks struct {
	mu  sync.Mutex
	all map[string][]time.Time
}

func (s *system) ticking(every time.Duration) *ticks {
	x := &ticks{all: map[string][]time.Time{}}
	w, err := worker.New(natstest.Connect(s.t, s.srv), worker.Config{Name: "ticking", Logger: logger(s.t)})
	require.NoError(s.t, err)
	require.NoError(s.t, w.HandleRaw(&tool.Definition{Name: "tick", Description: "test"}, func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(ctx)
		run := strings.Split(info.Key, "/")[1]
		x.mu.Lock()
		x.all[run] = append(x.all[run], time.Now())
		x.mu.Unlock()
		time.Sleep(every)
		return worker.Output{Body: []byte(`{}`)}, nil
	}))
	s.background(w.Run, w.Ready())
	return x
}

// mortal starts an orchestrator, and gives the function that has it die: to all others, a closed connection.
func (s *system) mortal() (die func()) {
	nc := natstest.Connect(s.t, s.srv)
	o, err := orchestrator.New(nc, s.config)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = o.Run(ctx) }()
	<-o.Ready()
	return sync.OnceFunc(func() {
		nc.Close()
		cancel()
		<-done
	})
}

// ownerDies has an owner of all die, after so many runs that are over, while others go on, and returns for how long those
// stood still that it had, the shortest first, and how many records another found there.
func (s *system) ownerDies(over, busy int) []time.Duration {
	t := s.t
	x := s.ticking(20 * time.Millisecond)
	s.leave()
	die := s.mortal()
	t.Cleanup(die)
	short := `{"steps":[{"id":"a","tool":"echo","arguments":{"text":"` + strings.Repeat("x", 200) + `"}},{"id":"b","tool":"echo","arguments":{"x":"$ref:a"}},{"id":"c","tool":"echo","arguments":{"x":"$ref:b"}}]}`
	var all errgroup.Group
	all.SetLimit(64)
	for i := range over {
		all.Go(func() error {
			_, err := s.client.Run(ctx(t), []byte(short), client.SubmitOptions{Run: fmt.Sprint("over", i)})
			return err
		})
	}
	require.NoError(t, all.Wait())
	for i := range busy {
		s.submit(`{"steps":[{"id":"l","repeat":{"max":10000},"plan":{"steps":[{"id":"t","tool":"tick"}]}}]}`, fmt.Sprint("busy", i))
	}
	s.config.Name = "next"
	s.orchestrator() // which takes a part of them over
	time.Sleep(4 * time.Second)
	killed := time.Now()
	die()
	time.Sleep(6 * time.Second)
	var still []time.Duration
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, at := range x.all {
		longest := time.Duration(0)
		for i := 1; i < len(at); i++ {
			if at[i].After(killed) {
				longest = max(longest, at[i].Sub(at[i-1]))
			}
		}
		if at[len(at)-1].Before(killed.Add(time.Second)) {
			longest = time.Hour
		}
		if longest > 500*time.Millisecond {
			still = append(still, longest)
		}
	}
	slices.Sort(still)
	return still
}

func BenchmarkAnOwnerDies(b *testing.B) {
	for range b.N {
		still := start(b, func(c *orchestrator.Config) { c.Loops, c.Grace, c.SweepEvery = 0, time.Hour, 10*time.Second }).ownerDies(*overBefore, *busyThen)
		require.NotEmpty(b, still)
		b.ReportMetric(still[0].Seconds(), "s-the-first")
		b.ReportMetric(still[len(still)/2].Seconds(), "s-half-of-them")
		b.ReportMetric(still[len(still)-1].Seconds(), "s-the-last")
		b.ReportMetric(float64(len(still)), "runs")
	}
}
