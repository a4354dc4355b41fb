package kv

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Removed is what removing a tool found.
type Removed struct {
	Name string `json:"name"`
	// Pending are the steps of the tool that were dispatched, leased or scheduled. They stay, and are executed once the
	// tool is registered again, unless their runs or timeouts end before.
	Pending int `json:"pending"`
	// Waiting are requests of workers for its steps. A worker that still hosts the tool registers it again.
	Waiting int `json:"waiting"`
}

// RemoveTool takes a tool out of the registry and deletes its durable consumer. New plans that name it are refused
// then. Runs under way keep the contract they started with: their steps are still dispatched and wait in the stream,
// for the tool to be registered again or for the timeout of step or run. A tool that comes back gets the same shard,
// so that it finds them. An operator's override stays. Errors: NotFound; Conflict while steps of it are pending,
// unless force; those of Read.
func (s *Registry) RemoveTool(ctx context.Context, name string, force bool) (Removed, error) {
	t, err := s.Tool(ctx, name)
	if err != nil {
		f := fault.As(err)
		if f.Code == fault.NotFound {
			f = fault.New(fault.NotFound, "no tool %q", name)
		}
		return Removed{}, f
	}
	r := Removed{Name: name}
	if r.Pending, err = s.queue.pendingOf(ctx, t); err != nil {
		return r, err
	}
	if r.Pending > 0 && !force {
		return r, fault.New(fault.Conflict, "%d steps of %s are pending", r.Pending, name).
			WithHint("wait for them, cancel their runs, or use --force: they then wait until the tool is registered again, or their time is over")
	}
	if err := s.retry(ctx, func(ctx context.Context) error { return s.remove(ctx, t, &r) }); err != nil {
		return r, err
	}
	return r, nil
}

// remove puts a mark in the place of the entry and deletes the consumer. Where somebody registers the tool in between,
// that stands, and its consumer is made again.
func (s *Registry) remove(ctx context.Context, t tool.Registered, r *Removed) error {
	if err := s.markRemoved(ctx, t); err != nil {
		return err
	}
	if c, err := s.js.Consumer(ctx, subjects.StepsStream(t.Shard), subjects.Durable(t.Name)); err == nil {
		r.Waiting = c.CachedInfo().NumWaiting
	}
	defer s.queue.places.forget()
	err := s.js.DeleteConsumer(ctx, subjects.StepsStream(t.Shard), subjects.Durable(t.Name))
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	now, err := s.entry(ctx, t.Name)
	if err == nil && now.Definition != nil {
		_, err = s.ensureTool(ctx, now.Registered)
	}
	return err
}

// tombstoneJSON is the body of the mark of a removed tool.
type tombstoneJSON struct {
	Shard int `json:"shard"`
}

// markRemoved writes the mark of a removed tool over its entry, if that still stands.
func (s *Registry) markRemoved(ctx context.Context, t tool.Registered) error {
	body, err := json.Marshal(tombstoneJSON{t.Shard})
	if err != nil {
		return err
	}
	msg := &nats.Msg{Subject: toolSubject(t.Name), Header: deletion(), Data: body}
	_, err = s.put(ctx, msg, jetstream.WithExpectLastSequencePerSubject(t.Revision))
	if apiCode(err) != codeWrongLastSequence {
		return err
	}
	now, err := s.entry(ctx, t.Name)
	if err != nil || now.Definition == nil {
		return err // removed already, perhaps by the try before
	}
	return fault.New(fault.Conflict, "%s was registered again in this moment", t.Name).WithHint("stop its workers first, or they register it again")
}

// tombstone returns what is left of an entry that is none any more: its revision, and its shard where the mark tells.
func tombstone(e Entry) standing {
	t := standing{Registered: tool.Registered{Revision: e.Seq}}
	var mark tombstoneJSON
	if operation(e.Header) != "" && len(e.Data) > 0 && json.Unmarshal(e.Data, &mark) == nil && mark.Shard >= 0 {
		t.Shard, t.removed = mark.Shard, true
	}
	return t
}

// Restore registers a definition again whose entry is gone or can't be read, in the shard where its steps are, under
// the operator's override of now; ackWait 0 is the store's own. It does nothing where there is an entry, or where the
// tool was removed on purpose. Errors: InvalidTool where an override contradicts the definition, and those of Create.
func (s *Registry) Restore(ctx context.Context, def *tool.Definition, shard int, ackWait time.Duration) (restored bool, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		for wait := backoff.Between(time.Millisecond, time.Second); ; {
			restored, err = s.restoreOnce(ctx, def, shard, ackWait)
			if apiCode(err) != codeWrongLastSequence {
				return err
			}
			if !s.pause(ctx, wait.Next()) {
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return false, err
	}
	return restored, nil
}

func (s *Registry) restoreOnce(ctx context.Context, def *tool.Definition, shard int, ackWait time.Duration) (bool, error) {
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

// keptDefinition returns the definition of a tool that was first kept last; nil for none.
func (s *Registry) keptDefinition(ctx context.Context, name string) (def *tool.Definition, err error) {
	lost := true
	for seq := uint64(0); lost && err == nil; {
		lost, err = s.readAll(ctx, subjects.BucketStream(subjects.ToolsBucket), definitionSubject("*"), func(e Entry) {
			if d, err := tool.ParseDefinition(e.Data); err == nil && s.cfg.Knows.KnownEntry(e.Header, e.Data) && d.Name == name && e.Seq > seq {
				def, seq = d, e.Seq
			}
		})
	}
	return def, err
}
