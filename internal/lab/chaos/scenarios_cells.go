package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/subjects"
)

// What is done to two cells.
const (
	gatewayCut    = "gateway cut"
	gatewayHealed = "gateway healed"
	tenantMoves   = "tenant moved"
	ownerKilled   = "orchestrator killed in a cut"
)

// twoCells are two clusters of three servers, each a cell with orchestrators and workers of its own, which gateways join.
// Of each cell's tenants one has its agents beside it, another beside the other cell.
var twoCells = Scenario{
	Name: "cells",
	Fault: "two cells that gateways join: the gateways are cut for seconds, again and again, and a tenant is moved from one cell to " +
		"the other under load, in the middle of one; in another an orchestrator is killed",
	Correct: "nothing lost, nothing executed twice, no run in both cells; a cell goes on by itself",
	Shape: Shape{Servers: 3, Orchestrators: 2, Workers: 2, Agents: 4, Parallel: 3, Heal: 2 * time.Minute,
		Tuning: Tuning{AckWait: shipped.AckWait}},
	Seconds: 90, Own: true, Partitions: true,
	Twin: func(ctx context.Context, t *twin) error {
		eu, us := t.eu, t.us
		eu.began, us.began = time.Now(), time.Now()
		for _, a := range []struct {
			home   *World
			i      int
			tenant string
			at     *World
		}{{eu, 0, tenantEU, eu}, {eu, 1, tenantMoved, us}, {eu, 2, tenantMoved, eu}, {us, 0, tenantUS, us}, {us, 1, tenantUS, eu}} {
			if err := t.agent(ctx, a.home, a.i, a.tenant, a.at); err != nil {
				return err
			}
		}
		for i := 0; ; i++ {
			if err := sleep(ctx, 6*time.Second); err != nil {
				return err
			}
			t.hit(gatewayCut)
			if err := t.cut(); err != nil {
				return err
			}
			if err := sleep(ctx, 3*time.Second); err != nil {
				return err
			}
			switch i {
			case 1:
				if err := t.move(ctx); err != nil {
					return err
				}
			case 2:
				t.hit(ownerKilled)
				eu.part(node("o", 0)).kill()
			}
			if err := sleep(ctx, 3*time.Second); err != nil {
				return err
			}
			t.eu.fault(gatewayHealed)
			t.us.fault(gatewayHealed)
			if err := t.net.heal(); err != nil {
				return err
			}
			if err := sleep(ctx, 6*time.Second); err != nil {
				return err
			}
			if i == 2 {
				if err := eu.again(ctx, node("o", 0)); err != nil {
					return err
				}
			}
		}
	},
	Sometimes: []string{sometimesRetried, sometimesCancelled},
}

// move gives the tenant that moves agents at its new cell, one beside it; those at the old cell submit no more, and wait for
// what they have. One of them is cut off from its cell while it is told so.
func (t *twin) move(ctx context.Context) error {
	t.hit(tenantMoves)
	if err := t.agent(ctx, t.us, 2, tenantMoved, t.us); err != nil {
		return err
	}
	for _, i := range []int{1, 2} {
		t.eu.part(node("a", i)).ask()
	}
	return nil
}

// copiesAbroad are mirrors of one cell's finished runs and tools in the other cell's cluster, in the account of the first.
type copiesAbroad struct {
	js  jetstream.JetStream
	say func(string, ...any)
}

func (t *twin) copies(ctx context.Context) (*copiesAbroad, error) {
	js, err := jetstream.New(t.eu.nc)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for _, of := range copied {
		if _, err := js.CreateStream(limited, jetstream.StreamConfig{
			Name: abroad(of), Mirror: &jetstream.StreamSource{Name: of}, Placement: &jetstream.Placement{Cluster: "us"},
		}); err != nil {
			return nil, err
		}
	}
	return &copiesAbroad{js, t.say}, nil
}

var copied = []string{subjects.BucketStream(subjects.HistoryBucket), subjects.BucketStream(subjects.ToolsBucket)}

func abroad(stream string) string { return stream + "_abroad" }

// compare waits until the copies have all that is in what they are of.
func (c *copiesAbroad) compare(ctx context.Context) (all []Violation) {
	limited, cancel := context.WithTimeout(ctx, agreement)
	defer cancel()
	for _, of := range copied {
		for {
			here, err := c.state(limited, of)
			there, err2 := c.state(limited, abroad(of))
			if err == nil && err2 == nil && here.Msgs == there.Msgs && here.LastSeq == there.LastSeq && here.Msgs > 0 {
				c.say("%s: the copy abroad has all %d", of, here.Msgs)
				break
			}
			if sleep(limited, 200*time.Millisecond) != nil {
				all = append(all, Violation{Invariant: "copy", Text: fmt.Sprintf("%s: %d to %d, abroad %d to %d", of, here.Msgs, here.LastSeq, there.Msgs, there.LastSeq)})
				break
			}
		}
	}
	return all
}

func (c *copiesAbroad) state(ctx context.Context, stream string) (jetstream.StreamState, error) {
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return jetstream.StreamState{}, err
	}
	return s.CachedInfo().State, nil
}

// figures say how agents fared while the gateways were cut: those beside their cell, and those beside the other.
func (t *twin) figures(evidence []*Evidence) []string {
	var home, away, after []time.Duration
	told := 0
	for _, e := range evidence {
		cuts := cutsOf(e)
		for who, times := range toldTo(e) {
			for _, c := range cuts {
				if times[0] > c[0] || times[len(times)-1] < c[1] {
					continue // it was not at work
				}
				first, _ := slices.BinarySearch(times, c[0])
				last, _ := slices.BinarySearch(times, c[1])
				silent := c[1] - c[0]
				if first < last {
					silent = longest(append([]int64{c[0]}, append(slices.Clone(times[first:last]), c[1])...))
				}
				if !t.abroad[who] {
					home, told = append(home, time.Duration(silent)), told+last-first
					continue
				}
				away, after = append(away, time.Duration(silent)), append(after, time.Duration(times[last]-c[1]))
			}
		}
	}
	return []string{
		fmt.Sprintf("while the gateways were cut, agents beside their cell were told %d outcomes, their longest silence %s", told, quantiles(home)),
		"agents beside the other cell were silent for " + quantiles(away) + " of it, and were told again " + quantiles(after) + " after it was healed",
		silence(ownerKilled, "where an orchestrator was killed 3 s before it was healed, its cell began no step for")(evidence[0], nil),
		fmt.Sprintf("the tenant that moved had %d runs in its old cell and %d in its new one", runsOf(evidence[0], tenantMoved), runsOf(evidence[1], tenantMoved)),
	}
}

// cutsOf returns when the gateways were cut, from and to.
func cutsOf(e *Evidence) (all [][2]int64) {
	var from int64
	for _, f := range e.Faults {
		switch f.Kind {
		case gatewayCut:
			from = f.At.UnixNano()
		case gatewayHealed:
			all = append(all, [2]int64{from, f.At.UnixNano()})
		}
	}
	return all
}

// toldTo returns when each agent was told an outcome, sorted.
func toldTo(e *Evidence) map[string][]int64 {
	all := map[string][]int64{}
	for _, x := range e.Events {
		if x.Kind == journal.Outcome && x.Code == "" {
			all[x.Who] = append(all[x.Who], x.At)
		}
	}
	for _, times := range all {
		slices.Sort(times)
	}
	return all
}

// longest returns the longest pause between moments.
func longest(times []int64) (most int64) {
	for i := 1; i < len(times); i++ {
		most = max(most, times[i]-times[i-1])
	}
	return most
}

func runsOf(e *Evidence, tenant string) (n int) {
	for _, d := range e.History {
		if d.Tenant == tenant {
			n++
		}
	}
	return n
}
