package kv

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Restore registers a definition again whose entry is gone or can't be read, in the shard where its steps are, under the
// operator's override of now; ackWait 0 is the store's own. It does nothing where there is an entry, or where the tool
// was removed on purpose. Errors: InvalidTool where an override contradicts the definition, and those of Create.
func (s *Store) Restore(ctx context.Context, def *tool.Definition, shard int, ackWait time.Duration) (restored bool, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		for wait := (backoff{time.Millisecond, time.Second}); ; {
			restored, err = s.restoreOnce(ctx, def, shard, ackWait)
			if apiCode(err) != codeWrongLastSequence {
				return err
			}
			if !s.pause(ctx, wait.next()) {
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return false, err
	}
	return restored, nil
}

func (s *Store) restoreOnce(ctx context.Context, def *tool.Definition, shard int, ackWait time.Duration) (bool, error) {
	old, err := s.entry(ctx, def.Name)
	if err != nil || old.Definition != nil || old.removed {
		return false, err
	}
	override, _, err := s.override(ctx, def.Name)
	if err != nil {
		return false, err
	}
	old.Shard, old.removed = shard, true // it has a place
	t, err := s.compose(def, override, old)
	if err != nil {
		return false, err
	}
	if ackWait > 0 {
		t.AckWait = ackWait
	}
	if t, err = s.replaceTool(ctx, t, old); err != nil {
		return false, err
	}
	_, err = s.ensureTool(ctx, t)
	return err == nil, err
}

// shardOf gives the step stream that holds a tool's consumer. A tool whose entry was lost keeps its place by it.
func (s *Store) shardOf(ctx context.Context, name string) (shard int, found bool, err error) {
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

// keptDefinition gives the definition of a tool that was first kept last; nil for none.
func (s *Store) keptDefinition(ctx context.Context, name string) (def *tool.Definition, err error) {
	lost := true
	for seq := uint64(0); lost && err == nil; {
		lost, err = s.readAll(ctx, subjects.BucketStream(subjects.ToolsBucket), definitionSubject("*"), func(e Entry) {
			if d, err := tool.ParseDefinition(e.Data); err == nil && wire.Known(e.Header) && d.Name == name && e.Seq > seq {
				def, seq = d, e.Seq
			}
		})
	}
	return def, err
}

// names asks for a list of names, all pages of it.
func (s *Store) names(ctx context.Context, subject, field string) (map[string]bool, error) {
	all := map[string]bool{}
	for offset := 0; ; {
		var page struct {
			Total     int      `json:"total"`
			Streams   []string `json:"streams"`
			Consumers []string `json:"consumers"`
		}
		if err := s.ask(ctx, subject, infoRequest{Offset: offset}, &page); err != nil {
			return nil, err
		}
		list := page.Streams
		if field == "consumers" {
			list = page.Consumers
		}
		for _, n := range list {
			all[n] = true
		}
		offset += len(list)
		if len(list) == 0 || offset >= page.Total {
			return all, nil
		}
	}
}
