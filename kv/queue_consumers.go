package kv

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// makeConsumer is ensureConsumer for a tool that most likely has none yet.
func (s *Queue) makeConsumer(ctx context.Context, t, old tool.Registered) error {
	if old.Definition == nil && t.Hosted() {
		one, cancel := context.WithTimeout(ctx, createTimeout)
		defer cancel()
		if _, err := s.js.CreateConsumer(one, subjects.StepsStream(t.Shard), consumerConfig(t)); err == nil {
			return nil
		}
	}
	return s.ensureConsumer(ctx, t) // which says what is wrong
}

// ensureConsumer makes sure of a tool's durable consumer and its limit, also where somebody deleted it or its stream. A
// template has none, nor has an agent.
func (s *Queue) ensureConsumer(ctx context.Context, t tool.Registered) error {
	if !t.Hosted() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout) // of several at once some may get no answer; they try again
	defer cancel()
	stream, name, want := subjects.StepsStream(t.Shard), subjects.Durable(t.Name), consumerConfig(t)
	c, err := patiently(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return s.js.Consumer(ctx, stream, name) })
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err = s.ensureSteps(ctx, t.Shard); err == nil {
			_, err = s.js.CreateOrUpdateConsumer(ctx, stream, want)
		}
		return err
	}
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = s.js.CreateOrUpdateConsumer(ctx, stream, want)
		return err
	}
	if err != nil {
		return err
	}
	have := c.CachedInfo().Config
	if have.MaxAckPending == want.MaxAckPending {
		return nil
	}
	have.MaxAckPending = want.MaxAckPending
	_, err = s.js.UpdateConsumer(ctx, stream, have)
	return err
}

// ensureKeeper makes sure of the consumer that keeps what no tool's consumer takes.
func (s *Queue) ensureKeeper(ctx context.Context, shard int) error {
	one, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := s.js.CreateOrUpdateConsumer(one, subjects.StepsStream(shard), keeperConfig(shard))
	return err
}

// ensureSteps makes sure of a tool shard's step stream and of its sentinel: a work queue that empties makes the server
// remove its file and create another, which doubles the time of a step.
func (s *Queue) ensureSteps(ctx context.Context, shard int) error {
	if _, err := s.ensureStream(ctx, s.cfg.stepsConfig(shard)); err != nil {
		return err
	}
	if err := s.ensureKeeper(ctx, shard); err != nil {
		return err
	}
	return s.ensureSentinel(ctx, shard)
}

// shardOf returns the step stream that holds a tool's consumer. A tool whose entry was lost keeps its place by it.
func (s *Queue) shardOf(ctx context.Context, name string) (shard int, found bool, err error) {
	for shard = 0; ; shard++ {
		_, err := patiently(ctx, func(ctx context.Context) (jetstream.Consumer, error) {
			return s.js.Consumer(ctx, subjects.StepsStream(shard), subjects.Durable(name))
		})
		switch {
		case err == nil:
			return shard, true, nil
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return 0, false, nil
		case !errors.Is(err, jetstream.ErrConsumerNotFound):
			return 0, false, err
		}
	}
}

// places is where the consumers of tools lie, as they were listed a moment ago: to look for one in each step stream,
// and to count those of each, for every tool that is new would cost the more the more tools there are. What this
// process places is added. Another may place the same tool at the same time; then both most likely choose the same
// stream, and only one entry of the registry stands.
type places struct {
	mu     sync.Mutex
	listed time.Time
	of     map[string]int // step stream by the consumer's name
	count  []int          // consumers of each step stream
	sure   []bool         // step streams that were made sure of since the listing
}

// placesKept is how long a listing counts.
const placesKept = 2 * time.Second

// place returns the step stream of a tool that the registry doesn't have: the one where its consumer is, for its
// entry may have been lost, else the first that has room for another. It is made sure of.
func (s *Queue) place(ctx context.Context, tool string) (int, error) {
	p := &s.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.listed) > placesKept {
		if err := p.list(ctx, s.account); err != nil {
			return 0, err
		}
	}
	if _, there := p.of[subjects.Durable(tool)]; there { // its entry was lost, so it is worth a closer look
		if shard, found, err := s.shardOf(ctx, tool); err != nil || found {
			return shard, err
		}
		delete(p.of, subjects.Durable(tool))
	}
	shard := 0
	for shard < len(p.count) && p.count[shard] >= toolsPerShard {
		shard++
	}
	for len(p.count) <= shard {
		p.count, p.sure = append(p.count, 0), append(p.sure, false)
	}
	if !p.sure[shard] {
		if err := s.ensureSteps(ctx, shard); err != nil {
			return 0, err
		}
		p.sure[shard] = true
	}
	p.of[subjects.Durable(tool)] = shard
	p.count[shard]++
	return shard, nil
}

// forget lets the next tool be placed by a new listing.
func (p *places) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed = time.Time{}
}

// list asks each step stream for its consumers.
func (p *places) list(ctx context.Context, s *account) error {
	of, count := map[string]int{}, []int(nil)
	for shard := 0; ; shard++ {
		names, err := s.names(ctx, apiPrefix+"CONSUMER.NAMES."+subjects.StepsStream(shard), "consumers")
		if apiCode(err) == codeStreamNotFound {
			break
		}
		if err != nil {
			return err
		}
		delete(names, subjects.Keeper) // it is no tool's
		for name := range names {
			of[name] = shard
		}
		count = append(count, len(names))
	}
	p.of, p.count, p.sure, p.listed = of, count, make([]bool, len(count)), time.Now()
	return nil
}
