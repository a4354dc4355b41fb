package kv

import (
	"context"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

const (
	// demandWithin is how long orchestrators are asked until the answers are whole: about as long as the partitions of
	// a dead one stay without an owner.
	demandWithin = 3 * time.Second
	// demandPatience is how long the answers to one request are waited for, demandPause lies between two.
	demandPatience = time.Second
	demandPause    = 100 * time.Millisecond
)

// Demand returns how much of each tool is wanted now, in the order of the names: what lies in the tools' streams, which
// any orchestrator says, and what all orchestrators hold back. It is for people who look, and for a scaler now and then.
// Where orchestrators don't answer for all runs within 3 s it returns what it has, and says so (Demands.Unsure). Errors:
// Permission; NotReady where no orchestrator answers within that time; those of the connection.
func (s *Requests) Demand(ctx context.Context, tools []tool.Registered) (*tool.Demands, error) {
	d := &tool.Demands{Tools: []tool.Demand{}}
	for some := range slices.Chunk(tools, wire.MaxDemandTools) {
		queues, held, err := s.wanted(ctx, some, subjects.DemandSubject, 0)
		if err != nil {
			return nil, err
		}
		for i := range some {
			d.Tools = append(d.Tools, demandOf(&some[i], queues, held.tools))
		}
		d.Unsure = append(d.Unsure, held.unsure()...)
	}
	slices.Sort(d.Unsure)
	d.Unsure = slices.Compact(d.Unsure)
	slices.SortFunc(d.Tools, func(a, b tool.Demand) int { return strings.Compare(a.Tool, b.Tool) })
	return d, nil
}

// Waiting is which runs wait for a worker.
type Waiting struct {
	Runs []wire.WaitingRun // the longest first
	More int               // how many more there are at least: each orchestrator tells of wire.MaxWaitingRuns
	// Unsure are the partitions of whose runs it isn't known, as that of an older orchestrator.
	Unsure []int
}

// Waiting returns the runs of all tenants that have waited for so long for a worker of one of the tools. It is for who may
// see all tenants. Errors: those of Demand.
func (s *Requests) Waiting(ctx context.Context, tools []tool.Registered, over time.Duration) (*Waiting, error) {
	found, all := &heldBack{runs: map[string]wire.WaitingRun{}}, &Waiting{}
	for some := range slices.Chunk(tools, wire.MaxDemandTools) {
		_, held, err := s.wanted(ctx, some, subjects.WaitingSubject, over)
		if err != nil {
			return nil, err
		}
		found.add(wire.DemandAnswer{Runs: slices.Collect(maps.Values(held.runs)), More: held.more})
		all.Unsure = append(all.Unsure, held.unsure()...)
	}
	all.Runs, all.More = slices.Collect(maps.Values(found.runs)), found.more
	slices.SortFunc(all.Runs, wire.LongestFirst)
	slices.Sort(all.Unsure)
	all.Unsure = slices.Compact(all.Unsure)
	return all, nil
}

func demandOf(t *tool.Registered, queues map[string]wire.Queue, held map[string]wire.DemandNow) tool.Demand {
	var queue *wire.Queue
	if q, there := queues[t.Name]; there {
		queue = &q
	}
	return wire.DemandOf(t.Name, t.Contract.Limit, held[t.Name], queue)
}

// queues asks what lies in the streams of tools.
func (s *Requests) queues(ctx context.Context, tools []tool.Registered) (map[string]wire.Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, demandWithin)
	defer cancel()
	r := wire.QueuesRequest{Tools: map[string]int{}}
	for i := range tools {
		r.Tools[tools[i].Name] = tools[i].Shard
	}
	var a wire.QueuesAnswer
	err := s.requestOf(ctx, subjects.QueuesSubject, r.Body(), &a)
	return a.Tools, err
}

// heldBack is what orchestrators have answered to one request.
type heldBack struct {
	tools map[string]wire.DemandNow
	once  uint64 // partitions for which somebody answered
	twice uint64 // and somebody else
	later uint64 // that somebody has, and does not know all of yet
	runs  map[string]wire.WaitingRun
	more  int
}

// unsure returns the partitions that nobody answered for, or several did.
func (a *heldBack) unsure() (all []int) {
	for set := ^a.once | a.twice; set != 0; set &= set - 1 {
		all = append(all, bits.TrailingZeros64(set))
	}
	return all
}

func (a *heldBack) add(x wire.DemandAnswer) {
	a.twice |= a.once & x.Serves
	a.once |= x.Serves
	a.later |= x.Unsure
	for name, now := range x.Tools {
		a.tools[name] = a.tools[name].Plus(now)
	}
	for _, r := range x.Runs {
		if a.runs[r.Run].MS <= r.MS {
			a.runs[r.Run] = r
		}
	}
	a.more += x.More
}

// wanted asks what lies in the streams of tools, and all orchestrators for what they hold back, again and again until
// somebody has answered for each partition, and nobody twice. It returns what it has when its time is over.
func (s *Requests) wanted(
	ctx context.Context, tools []tool.Registered, subject string, over time.Duration,
) (map[string]wire.Queue, *heldBack, error) {
	for until := time.Now().Add(demandWithin); ; {
		queues, err := s.queues(ctx, tools)
		if err != nil {
			return nil, nil, err
		}
		r := wire.DemandRequest{Tools: map[string]wire.DemandSince{}, OverMS: over.Milliseconds()}
		for i := range tools {
			q := queues[tools[i].Name] // nothing, where it has no consumer
			since := wire.DemandSince{Given: q.Given, Behind: q.Behind}
			if subject == subjects.WaitingSubject {
				since.Leased = q.Leased
			}
			r.Tools[tools[i].Name] = since
		}
		a, err := s.heldOnce(ctx, subject, r)
		if err != nil {
			return nil, nil, s.explain(ctx, err)
		}
		if a.unsure() == nil || a.once|a.later == 0 || time.Now().After(until) {
			return queues, a, nil
		}
		if !s.pause(ctx, demandPause) {
			return nil, nil, s.explain(ctx, context.Cause(ctx))
		}
	}
}

// heldOnce asks once, and waits until somebody has said something of each partition, but not for long.
func (s *Requests) heldOnce(ctx context.Context, subject string, r wire.DemandRequest) (*heldBack, error) {
	a := &heldBack{tools: map[string]wire.DemandNow{}, runs: map[string]wire.WaitingRun{}}
	sub, err := s.nc.SubscribeSync(s.nc.NewInbox())
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // a closed connection has none left to end
	err = s.guarded(ctx, subject, func(outer context.Context) error {
		ctx, cancel := context.WithTimeout(outer, demandPatience)
		defer cancel()
		ask := &nats.Msg{Subject: subject, Reply: sub.Subject, Header: wire.Versioned(), Data: r.Body()}
		if err := s.nc.PublishMsg(ask); err != nil {
			return err
		}
		for ^(a.once | a.later) != 0 {
			m, err := sub.NextMsgWithContext(ctx)
			switch {
			case errors.Is(err, nats.ErrNoResponders), err != nil && ctx.Err() != nil && outer.Err() == nil:
				return nil // nobody else answers
			case err != nil:
				return err
			case !wire.KindAnswer.Known(m.Header): // of a newer version: what it serves is not known
				continue
			}
			if err := wire.ParseRefusal(m.Header, m.Data); err != nil {
				return err
			}
			a.add(wire.ParseDemandAnswer(m.Data))
		}
		return nil
	})
	return a, err
}
