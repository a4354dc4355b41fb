package agentbench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/subjects"
)

// measureKills kills orchestrators and workers before and after everything that they do for a round, two of each kind at
// a time, while 32 agents are under way.
func measureKills(ctx context.Context, env Env, scale float64, stamp bench.Stamp) (any, error) {
	s, err := newSiege(env)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.quick = true
	wanted := atLeast(1000*scale, 10)
	var enough atomic.Bool
	orchestrators, workers := chaos.LoopPoints()
	in, end := context.WithCancel(ctx)
	defer end()
	first, err := s.plain(ctx, 1, 1) // so that the agent can be applied
	if err == nil {
		err = s.open(ctx)
	}
	s.kill(first, "any")
	if err != nil {
		return nil, err
	}
	slots, in := errgroup.WithContext(in)
	for i := range 4 {
		points := [][]chaos.Point{orchestrators, workers}[i%2]
		next := moments(points, i*len(points)/4, uint64(i), &enough)
		slots.Go(func() error { return s.slot(in, i%2 == 1, next) })
	}
	c := &Calls{Stamp: stamp}
	told := time.Now()
	c.Agents, err = s.agents(in, 32, func(int) bool {
		if n := s.killed(); n < wanted {
			if time.Since(told) > 30*time.Second {
				told = time.Now()
				s.progress(fmt.Sprintf("%d kills", n))
			}
			return false
		}
		enough.Store(true)
		return true
	})
	end()
	if failed := slots.Wait(); err != nil || failed != nil {
		return nil, cmp.Or(failed, err)
	}
	return c, s.judge(c)
}

// moments returns the points one after the other from one of them on, each for one of its first times; nil once it is
// enough.
func moments(points []chaos.Point, from int, seed uint64, enough *atomic.Bool) func() *chaos.Point {
	rnd := rand.New(rand.NewPCG(seed, 1))
	return func() *chaos.Point {
		if enough.Load() {
			return nil
		}
		p := points[from%len(points)]
		p.Nth = 1 + rnd.IntN(20)
		from++
		return &p
	}
}

// measureHerd kills all orchestrators and workers at once, several times, while 1,000 agents are under way.
func measureHerd(ctx context.Context, env Env, scale float64, stamp bench.Stamp) (any, error) {
	s, err := newSiege(env)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.quick, s.rounds, s.pause = true, 20, 50*time.Millisecond
	parts, err := s.plain(ctx, 2, 2)
	defer func() { s.kill(parts, "the end") }()
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	herd := atLeast(1000*scale, 20)
	c := &Calls{Stamp: stamp}
	working, within := errgroup.WithContext(ctx)
	working.Go(func() (err error) {
		c.Agents, err = s.agents(within, herd, func(n int) bool { return n >= herd })
		return err
	})
	for range 5 {
		select {
		case <-time.After(time.Second):
		case <-within.Done():
			return nil, working.Wait()
		}
		s.kill(parts, "all at once")
		if parts, err = s.plain(ctx, 2, 2); err != nil {
			return nil, err
		}
	}
	if err := working.Wait(); err != nil {
		return nil, err
	}
	return c, s.judge(c)
}

// measureOwners kills one of three orchestrators at a time, under the programs' own settings, and looks how long agents
// stand still.
func measureOwners(ctx context.Context, env Env, scale float64, stamp bench.Stamp) (any, error) {
	s, err := newSiege(env)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.rounds, s.pause = 50, 20*time.Millisecond
	parts, err := s.plain(ctx, 3, 2)
	defer func() { s.kill(parts, "the end") }()
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	var over atomic.Bool
	c := &Calls{Stamp: stamp}
	working, within := errgroup.WithContext(ctx)
	working.Go(func() (err error) {
		c.Agents, err = s.agents(within, 64, func(int) bool { return over.Load() })
		return err
	})
	var kills []time.Time
	wanted := atLeast(30*scale, 3)
	for i := range wanted {
		select {
		case <-time.After(4 * time.Second):
		case <-within.Done():
			return nil, working.Wait()
		}
		victim := i % 3
		if err := s.tellOwners(ctx, i, wanted, kills); err != nil {
			return nil, err
		}
		kills = append(kills, time.Now())
		s.kill(parts[victim:victim+1], "an owner")
		if parts[victim], err = s.start(ctx, false, nil); err != nil {
			return nil, err
		}
	}
	over.Store(true)
	if err := working.Wait(); err != nil {
		return nil, err
	}
	if err := s.goOn(c, kills); err != nil {
		return nil, err
	}
	return c, s.judge(c)
}

// goOn measures for each kill how long the agent stood still that did so longest: from the kill to its next call.
func (s *siege) goOn(c *Calls, kills []time.Time) error {
	longest, err := s.stoodStill(kills)
	if err != nil {
		return err
	}
	c.GoOnP50, c.GoOnP99 = bench.Quantile(longest, 0.5), bench.Quantile(longest, 0.99)
	s.progress(fmt.Sprintf("after each of %d kills of an owner, the agent that stood still longest: p50 %.0f ms, p99 %.0f", len(kills), c.GoOnP50, c.GoOnP99))
	return nil
}

// stoodStill returns for each kill how many milliseconds it took until the agent went on that stood still longest.
func (s *siege) stoodStill(kills []time.Time) (longest []float64, err error) {
	events, err := journal.Read(s.log)
	if err != nil {
		return nil, err
	}
	calls := map[string][]int64{}
	for _, e := range events {
		if e.Begins() {
			calls[e.Run] = append(calls[e.Run], e.At)
		}
	}
	for _, all := range calls {
		slices.Sort(all)
	}
	for _, k := range kills {
		at, most := k.UnixNano(), time.Duration(0)
		for _, all := range calls {
			if i, _ := slices.BinarySearch(all, at); i > 0 && i < len(all) { // it was under way
				most = max(most, time.Duration(all[i]-at))
			}
		}
		longest = append(longest, bench.MS(most))
	}
	return longest, nil
}

// tellOwners says, before the next kill, what the last one came to so far, and how much the ledger holds.
func (s *siege) tellOwners(ctx context.Context, done, wanted int, kills []time.Time) error {
	js, err := jetstream.New(s.nc)
	if err != nil {
		return err
	}
	stream, err := js.Stream(ctx, subjects.LedgerStream(0))
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%d of %d kills of an owner, %d records in the ledger", done, wanted, stream.CachedInfo().State.Msgs)
	if done > 0 {
		still, err := s.stoodStill(kills[done-1:])
		if err != nil {
			return err
		}
		line += fmt.Sprintf("; of the agents that went on since the last, the one that stood still longest did after %.0f ms", still[0])
	}
	s.progress(line)
	return nil
}
