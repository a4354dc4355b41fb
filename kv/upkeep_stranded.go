package kv

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// A step message is stranded where it lies in its stream, at or below the floor up to which its consumer takes everything
// for acknowledged: no worker will ever be given it, and the sweep, which sees it, believes that it is on its way. A power
// cut leaves such messages where the server had written the consumer's state to the disk and not the stream's, or the
// other way round; so may a purge by hand.

// stranded removes such messages. What they were about and is not decided yet the sweep then sends again. A tool costs one
// request as long as its oldest message is another one than at the check before.
func (c *upkeep) stranded(ctx context.Context) {
	idle := c.idle(ctx)
	for name, t := range c.known {
		if !c.owns(name) || idle[t.Shard] {
			continue
		}
		oldest := uint64(0) // where there is none, or it isn't known
		e, err := c.s.nextStep(ctx, t, 1)
		if e != nil {
			oldest = e.Seq
		}
		key := queueKey{t.Shard, name}
		if err != nil || c.u.oldest[key] != oldest {
			c.u.oldest[key] = oldest
			continue
		}
		n, err := c.s.removeStranded(ctx, t)
		if err != nil || n > 0 {
			c.did(fmt.Sprintf("removed %d messages from the queue of %s that no worker would have been given", n, name), err)
		}
	}
}

// nextStep gives a tool's first message from some sequence on; nil where there is none.
func (s *Store) nextStep(ctx context.Context, t Tool, from uint64) (e *Entry, err error) {
	stream := subjects.StepsStream(t.Shard)
	try := 0
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		body := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%s}`, from, strconv.Quote(subjects.ToolFilter(t.Name, t.Shard)))
		e, err = look(ctx, try, func(ctx context.Context) (*Entry, error) {
			answer, err := s.request(ctx, requestTimeout, apiPrefix+"STREAM.MSG.GET."+stream, body)
			if err != nil {
				return nil, err
			}
			return parseStored(answer)
		})
		try++
		return err
	})
	if apiCode(err) == codeMessageNotFound {
		return nil, nil
	}
	return e, err
}

// stepsUpTo gives a tool's messages up to a sequence, one request each.
func (s *Store) stepsUpTo(ctx context.Context, t Tool, last uint64) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for from := uint64(1); ; {
			e, err := s.nextStep(ctx, t, from)
			if err == nil && (e == nil || e.Seq > last) || !yield(e, err) || err != nil {
				return
			}
			from = e.Seq + 1
		}
	}
}

// idle gives the step streams that hold nothing but their sentinel.
func (c *upkeep) idle(ctx context.Context) map[int]bool {
	idle := map[int]bool{}
	for shard := range c.shards() {
		info, err := c.s.streamInfo(ctx, subjects.StepsStream(shard), "")
		idle[shard] = err == nil && info.State.Messages <= 1
	}
	return idle
}

// removeStep removes a message of a tool's queue; false where it was acknowledged, and taken away, a moment before.
func (s *Store) removeStep(ctx context.Context, t Tool, seq uint64) (removed bool, err error) {
	err = s.tell(ctx, apiPrefix+"STREAM.MSG.DELETE."+subjects.StepsStream(t.Shard), deleteRequest{seq, true})
	if apiCode(err) == codeSequenceNotFound {
		return false, nil
	}
	return err == nil, err
}

// removeStranded removes a tool's messages up to its consumer's floor.
func (s *Store) removeStranded(ctx context.Context, t Tool) (n int, err error) {
	lag, err := s.Lag(ctx, t.Name, t.Shard)
	if fault.CodeOf(err) == fault.NotFound { // no consumer: the next check makes one
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for e, err := range s.stepsUpTo(ctx, t, lag.Floor) {
		if err != nil {
			return n, err
		}
		removed, err := s.removeStep(ctx, t, e.Seq)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}
