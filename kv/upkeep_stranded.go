package kv

import (
	"context"
	"fmt"
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
	for name, t := range c.known {
		if !c.owns(name) {
			continue
		}
		oldest, err := c.s.nextStep(ctx, t, 1)
		key := queueKey{t.Shard, name}
		if err != nil || c.u.oldest[key] != oldest {
			c.u.oldest[key] = oldest // 0 where there is none, or it isn't known
			continue
		}
		n, err := c.s.removeStranded(ctx, t, oldest)
		if err != nil || n > 0 {
			c.did(fmt.Sprintf("removed %d messages from the queue of %s that no worker would have been given", n, name), err)
		}
	}
}

// nextStep gives the sequence of a tool's first message from some sequence on; 0 where there is none.
func (s *Store) nextStep(ctx context.Context, t Tool, from uint64) (seq uint64, err error) {
	stream := subjects.StepsStream(t.Shard)
	try := 0
	err = s.retry(ctx, func(ctx context.Context) error {
		body := fmt.Appendf(nil, `{"seq":%d,"next_by_subj":%s}`, from, strconv.Quote(subjects.ToolFilter(t.Name, t.Shard)))
		e, err := look(ctx, try, func(ctx context.Context) (*Entry, error) {
			answer, err := s.request(ctx, requestTimeout, apiPrefix+"STREAM.MSG.GET."+stream, body)
			if err != nil {
				return nil, err
			}
			return parseStored(answer)
		})
		try++
		if err == nil {
			seq = e.Seq
		}
		return err
	})
	if apiCode(err) == codeMessageNotFound {
		return 0, nil
	}
	return seq, err
}

// removeStranded removes a tool's messages from a sequence on up to its consumer's floor.
func (s *Store) removeStranded(ctx context.Context, t Tool, seq uint64) (n int, err error) {
	lag, err := s.Lag(ctx, t.Name, t.Shard)
	for err == nil && seq > 0 && seq <= lag.Floor {
		err = s.tell(ctx, apiPrefix+"STREAM.MSG.DELETE."+subjects.StepsStream(t.Shard), deleteRequest{seq, true})
		if apiCode(err) == codeSequenceNotFound { // acknowledged, and taken away a moment later
			err = nil
		} else if err == nil {
			n++
		}
		if err == nil {
			seq, err = s.nextStep(ctx, t, seq+1)
		}
	}
	if fault.CodeOf(err) == fault.NotFound { // no consumer: the next check makes one
		err = nil
	}
	return n, err
}
