package kv

import (
	"context"
	"sync"
	"time"

	"github.com/stepjet/stepjet/subjects"
)

// places is where the consumers of tools lie, as they were listed a moment ago: to look for one in each step stream, and to
// count those of each, for every tool that is new would cost the more the more tools there are. What this process places
// is added. Another may place the same tool at the same time; then both most likely choose the same stream, and only one
// entry of the registry stands.
type places struct {
	mu     sync.Mutex
	listed time.Time
	of     map[string]int // step stream by the consumer's name
	count  []int          // consumers of each step stream
	sure   []bool         // step streams that were made sure of since the listing
}

// placesKept is how long a listing counts.
const placesKept = 2 * time.Second

// place gives the step stream of a tool that the registry doesn't have: the one where its consumer is, for its entry may have
// been lost, else the first that has room for another. It is made sure of.
func (s *Store) place(ctx context.Context, tool string) (int, error) {
	p := &s.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.listed) > placesKept {
		if err := p.list(ctx, s); err != nil {
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
func (p *places) list(ctx context.Context, s *Store) error {
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
