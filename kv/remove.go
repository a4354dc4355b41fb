package kv

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
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

// RemoveTool takes a tool out of the registry and deletes its durable consumer. New plans that name it are refused then.
// Runs under way keep the contract they started with: their steps are still dispatched and wait in the stream, for the
// tool to be registered again or for the timeout of step or run. A tool that comes back gets the same shard, so that it
// finds them. An operator's override stays. Errors: NotFound; Conflict while steps of it are pending, unless force; those
// of Read.
func (s *Store) RemoveTool(ctx context.Context, name string, force bool) (Removed, error) {
	t, err := s.Tool(ctx, name)
	if err != nil {
		f := fault.As(err)
		if f.Code == fault.NotFound {
			f = fault.New(fault.NotFound, "no tool %q", name)
		}
		return Removed{}, f
	}
	r := Removed{Name: name}
	if r.Pending, err = s.pendingOf(ctx, t); err != nil {
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
func (s *Store) remove(ctx context.Context, t Tool, r *Removed) error {
	if err := s.markRemoved(ctx, t); err != nil {
		return err
	}
	if c, err := s.js.Consumer(ctx, subjects.StepsStream(t.Shard), subjects.Durable(t.Name)); err == nil {
		r.Waiting = c.CachedInfo().NumWaiting
	}
	defer s.places.forget()
	err := s.js.DeleteConsumer(ctx, subjects.StepsStream(t.Shard), subjects.Durable(t.Name))
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	now, err := s.entry(ctx, t.Name)
	if err == nil && now.Definition != nil {
		_, err = s.ensureTool(ctx, now)
	}
	return err
}

// tombstoneJSON is the body of the mark of a removed tool.
type tombstoneJSON struct {
	Shard int `json:"shard"`
}

// markRemoved writes the mark of a removed tool over its entry, if that still stands.
func (s *Store) markRemoved(ctx context.Context, t Tool) error {
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

// tombstone gives what is left of an entry that is none any more: its revision, and its shard where the mark tells.
func tombstone(e Entry) Tool {
	t := Tool{Revision: e.Seq}
	var mark tombstoneJSON
	if operation(e.Header) != "" && len(e.Data) > 0 && json.Unmarshal(e.Data, &mark) == nil && mark.Shard >= 0 {
		t.Shard, t.removed = mark.Shard, true
	}
	return t
}

// pendingOf counts the steps of a tool that its stream holds.
func (s *Store) pendingOf(ctx context.Context, t Tool) (int, error) {
	var page streamState
	request := infoRequest{Filter: subjects.ToolPendingFilter(t.Name, t.Shard)}
	if err := s.ask(ctx, apiPrefix+"STREAM.INFO."+subjects.StepsStream(t.Shard), request, &page); err != nil {
		if apiCode(err) == codeStreamNotFound {
			return 0, nil // with all steps
		}
		return 0, err
	}
	return max(page.Total, len(page.State.Subjects)), nil
}

// RequestRemove asks an orchestrator for RemoveTool, until one answers or ctx ends. Errors: those of RemoveTool; NotReady
// where none answered before ctx ended.
func (s *Store) RequestRemove(ctx context.Context, name string, force bool) (Removed, error) {
	body, err := json.Marshal(RemoveRequest{force})
	if err != nil {
		return Removed{}, err
	}
	var r Removed
	return r, s.requestOf(ctx, subjects.Remove(name), body, &r)
}

// RemoveRequest is the body of a request for RemoveTool; an empty body is the zero value.
type RemoveRequest struct {
	Force bool `json:"force,omitempty"`
}
