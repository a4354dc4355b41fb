package kv

import (
	"context"
	"encoding/json"
	"sort"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Tool is one entry of the registry: a definition, and what follows from it.
type Tool struct {
	Name       string           `json:"name"`
	Definition *tool.Definition `json:"definition"`
	// Contract has all defaults filled in; Contract.Limit is the consumer's MaxAckPending.
	Contract tool.Contract `json:"contract"`
	// Digest is that of the definition, which is also kept under it for runs that froze it.
	Digest string `json:"digest"`
	// Shard is the tool's step stream. It is assigned once and never changes.
	Shard int `json:"shard"`
	// Tenants that may use the tool; empty: all.
	Tenants []string `json:"tenants,omitempty"`
	// AckWait is the lease of its steps.
	AckWait time.Duration `json:"-"`
	// Revision is the registry's sequence of this entry.
	Revision uint64 `json:"revision,omitempty"`
}

type toolFields Tool

type toolJSON struct {
	*toolFields
	AckWaitMS int64 `json:"ack_wait_ms"`
}

// MarshalJSON writes the entry's form in the registry and in the answer to a registration.
func (t Tool) MarshalJSON() ([]byte, error) {
	return json.Marshal(toolJSON{(*toolFields)(&t), t.AckWait.Milliseconds()})
}

// UnmarshalJSON reads it.
func (t *Tool) UnmarshalJSON(b []byte) error {
	in := toolJSON{toolFields: (*toolFields)(t)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	t.AckWait = time.Duration(in.AckWaitMS) * time.Millisecond
	return nil
}

// Tool gives one tool, from the registry's leader. Errors: NotFound, and those of Read.
func (s *Store) Tool(ctx context.Context, name string) (Tool, error) {
	e, err := s.Read(ctx, toolSubject(name))
	if err != nil {
		return Tool{}, err
	}
	return parseTool(e.Data, e.Seq, operation(e.Header))
}

// operation is not empty for a message that stands for a removed key.
func operation(h nats.Header) string {
	return first(h, "KV-Operation") + first(h, jetstream.MarkerReasonHeader)
}

func parseTool(raw []byte, seq uint64, operation string) (Tool, error) {
	var t Tool
	if operation != "" {
		return t, fault.New(fault.NotFound, "the tool was removed")
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fault.Wrap(fault.Internal, err, "reading a registry entry")
	}
	if t.Definition == nil || t.Name != t.Definition.Name || t.Shard < 0 || t.Contract.Limit < 1 {
		return t, fault.New(fault.Internal, "an entry of the tool registry was not written by Stepjet")
	}
	t.Revision = seq
	return t, nil
}

// Tools gives all registered tools, by name. Errors as those of Read.
func (s *Store) Tools(ctx context.Context) ([]Tool, error) {
	var all []Tool
	err := s.watchTools(ctx, func(t Tool, deleted bool) {
		if !deleted {
			all = append(all, t)
		}
	}, func() bool { return false })
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, err
}

// WatchTools reports every tool, then calls ready, then reports every change, all from the calling goroutine, until ctx
// ends. Errors as those of Read; also where the watch ends for a reason of its own.
func (s *Store) WatchTools(ctx context.Context, each func(t Tool, deleted bool), ready func()) error {
	return s.watchTools(ctx, each, func() bool { ready(); return true })
}

// watchTools goes on after what is there was reported only if initial says so.
func (s *Store) watchTools(ctx context.Context, each func(Tool, bool), initial func() bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bucket, err := s.js.KeyValue(ctx, subjects.ToolsBucket)
	if err != nil {
		return s.explain(ctx, err)
	}
	w, err := bucket.Watch(ctx, "*") // tools; definitions have two tokens
	if err != nil {
		return s.explain(ctx, err)
	}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return fault.New(fault.NoConnection, "the watch of the tool registry ended")
			case e == nil:
				if !initial() {
					return nil
				}
			default:
				s.reportTool(e, each)
			}
		}
	}
}

func (s *Store) reportTool(e jetstream.KeyValueEntry, each func(Tool, bool)) {
	if e.Operation() != jetstream.KeyValuePut {
		if name, ok := subjects.Decode(e.Key()); ok {
			each(Tool{Name: name, Revision: e.Revision()}, true)
		}
		return
	}
	t, err := parseTool(e.Value(), e.Revision(), "")
	if err != nil {
		s.cfg.Logger.Error("an entry of the tool registry can't be read and is left out", "key", e.Key(), "error", err)
		return
	}
	each(t, false)
}

// Definition gives a definition by its digest. Errors: NotFound, InvalidTool, and those of Read.
func (s *Store) Definition(ctx context.Context, digest string) (*tool.Definition, error) {
	e, err := s.Read(ctx, definitionSubject(digest))
	if err != nil {
		return nil, err
	}
	return tool.ParseDefinition(e.Data)
}
