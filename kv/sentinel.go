package kv

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A work queue whose newest block of messages empties makes the server remove that block's file and create another,
// which doubles the time of a step. A sentinel, a message that no consumer takes, keeps a step stream from emptying; it
// has to lie in the newest block, so another takes its place whenever a part of a block has passed behind it. Blocks of
// work queues have 4 MiB.

// sentinelBytes of steps pass before the sentinel is renewed.
const sentinelBytes = 1 << 20

// stepOverhead is about what a step's message takes besides its body: subject, headers, the store's own.
const stepOverhead = 512

// sentinels counts, by tool shard, the bytes that have passed since the last renewal.
type sentinels struct {
	mu     sync.Mutex
	passed map[int]int
}

// passed notes a dispatch, and renews the sentinel where it is time.
func (s *Store) passed(shard, size int) {
	b := &s.behind
	b.mu.Lock()
	if b.passed == nil {
		b.passed = map[int]int{}
	}
	b.passed[shard] += size + stepOverhead
	due := b.passed[shard] >= sentinelBytes
	if due {
		b.passed[shard] = 0
	}
	b.mu.Unlock()
	if due {
		s.spawn(func() { s.renewSentinel(s.ctx, shard) })
	}
}

// renewSentinel publishes a new sentinel before it removes the old ones, so that there always is one. If either fails,
// steps are slower until the next time.
func (s *Store) renewSentinel(ctx context.Context, shard int) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := s.js.PublishMsg(ctx, &nats.Msg{Subject: subjects.Sentinel(shard), Header: wire.Versioned()}); err == nil {
		_ = s.purge(ctx, subjects.StepsStream(shard), purgeRequest{Subject: subjects.Sentinel(shard), Keep: 1})
	}
}
