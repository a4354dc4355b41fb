package kv

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A work queue whose newest block of messages empties makes the server remove that block's file and create another,
// which doubles the time of a step. A sentinel, a message that no consumer takes, keeps a step stream from emptying; it
// has to lie in the newest block, so another takes its place whenever a part of a block has passed behind it. Blocks of
// work queues have 4 MiB.
//
// It also tells that the stream lost what lay in it. Its body names a life of the stream: whoever puts a sentinel
// where there is none makes up a name, and one that takes another's place has the same. So wherever the name is a new
// one, there was a moment at which the stream had no sentinel: it was purged, or deleted, or went back to a time
// before. Who looks later than somebody has put the next one there still sees that.

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
func (s *Queue) passed(shard, size int) {
	b := &s.sentinels
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

// renewSentinel publishes a new sentinel before it removes the old ones, so that there always is one. If anything
// fails, or the old one is gone, steps are slower until the next time.
func (s *Queue) renewSentinel(ctx context.Context, shard int) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	old, err := s.read(ctx, subjects.Sentinel(shard))
	if err != nil {
		return
	}
	next := &nats.Msg{Subject: old.Subject, Header: wire.Versioned(), Data: old.Data}
	if _, err := s.put(ctx, next, jetstream.WithExpectLastSequencePerSubject(old.Seq)); err == nil {
		_ = s.purge(ctx, subjects.StepsStream(shard), purgeRequest{Subject: old.Subject, Keep: 1})
	}
}

// ensureSentinel puts a sentinel, of a new life, into a step stream that has none.
func (s *Queue) ensureSentinel(ctx context.Context, shard int) error {
	_, _, err := s.createOnce(ctx, subjects.Sentinel(shard), wire.Versioned(), []byte(nuid.Next()), nil)
	return err
}

// stepsLife returns the life of a step stream. Where the stream or its sentinel is gone, it begins one and says so.
// Errors as those of Read.
func (s *Queue) stepsLife(ctx context.Context, shard int) (life string, began bool, err error) {
	e, err := s.read(ctx, subjects.Sentinel(shard))
	if fault.CodeOf(err) == fault.NotFound || apiCode(err) == codeStreamNotFound {
		if err := s.ensureSteps(ctx, shard); err != nil {
			return "", false, err
		}
		began = true
		e, err = s.read(ctx, subjects.Sentinel(shard))
	}
	if err != nil {
		return "", began, err
	}
	return string(e.Data), began, nil
}
