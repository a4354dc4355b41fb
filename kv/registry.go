package kv

import (
	"context"
	"encoding/json"
	"errors"
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

// toolsPerShard bounds the consumers of a step stream: an acknowledgement in a work queue visits each of them.
const toolsPerShard = 100

// Register validates a definition and stores it, keeps it under its digest, and creates the tool's durable consumer or
// sets its limit anew. Registering what is there already writes nothing. Several may register at once. Errors:
// InvalidTool with the reason, and those of Create.
func (s *Store) Register(ctx context.Context, raw []byte) (Tool, error) {
	def, err := tool.ParseDefinition(raw)
	if err != nil {
		return Tool{}, err
	}
	contract, err := def.Contract()
	if err != nil {
		return Tool{}, err
	}
	t := Tool{Name: def.Name, Definition: def, Contract: contract, Digest: def.Digest(), Tenants: def.Tenants, AckWait: s.cfg.AckWait}
	for {
		stored, err := s.registerOnce(ctx, t)
		if apiCode(err) != codeWrongLastSequence {
			if err != nil {
				return Tool{}, s.explain(ctx, err)
			}
			return stored, nil
		}
		// Another registrar was faster; its entry is the start of the next try.
		if !s.pause(ctx, time.Millisecond) {
			return Tool{}, s.explain(ctx, context.Cause(ctx))
		}
	}
}

func (s *Store) registerOnce(ctx context.Context, t Tool) (Tool, error) {
	old, err := s.Tool(ctx, t.Name)
	switch {
	case err == nil:
		t.Shard, t.Revision, t.AckWait = old.Shard, old.Revision, old.AckWait
	case errors.Is(err, &fault.Error{Code: fault.NotFound}):
		if t.Shard, err = s.freeShard(ctx); err != nil {
			return t, err
		}
	default:
		return t, err
	}
	if err := s.keepDefinition(ctx, t); err != nil {
		return t, err
	}
	// The consumer comes before the entry: who reads the entry may pull at once.
	if err := s.ensureConsumer(ctx, t); err != nil {
		return t, err
	}
	if old.Revision > 0 && old.Digest == t.Digest {
		return old, nil
	}
	return s.writeTool(ctx, t)
}

func (s *Store) writeTool(ctx context.Context, t Tool) (Tool, error) {
	expect := t.Revision
	t.Revision = 0 // it is the message's own sequence
	body, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	msg := &nats.Msg{Subject: toolSubject(t.Name), Data: body}
	ack, err := s.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(expect))
	if err != nil {
		return t, err
	}
	t.Revision = ack.Sequence
	return t, nil
}

func toolSubject(name string) string { return "$KV." + subjects.ToolsBucket + "." + subjects.ToolKey(name) }

func definitionSubject(digest string) string {
	return "$KV." + subjects.ToolsBucket + "." + subjects.DefinitionKey(digest)
}

// keepDefinition stores the definition under its digest, for runs that froze it.
func (s *Store) keepDefinition(ctx context.Context, t Tool) error {
	body, err := json.Marshal(t.Definition)
	if err != nil {
		return err
	}
	_, _, err = s.Create(ctx, definitionSubject(t.Digest), nil, body, nil)
	return err
}

// freeShard gives the first step stream that has room for another tool, and makes sure of it.
func (s *Store) freeShard(ctx context.Context) (int, error) {
	all, err := s.Tools(ctx)
	if err != nil {
		return 0, err
	}
	used := map[int]int{}
	for _, t := range all {
		used[t.Shard]++
	}
	shard := 0
	for used[shard] >= toolsPerShard {
		shard++
	}
	return shard, s.ensureSteps(ctx, shard)
}

func (s *Store) ensureConsumer(ctx context.Context, t Tool) error {
	stream, name, want := subjects.StepsStream(t.Shard), subjects.Durable(t.Name), consumerConfig(t)
	c, err := s.js.Consumer(ctx, stream, name)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		_, err = s.js.CreateOrUpdateConsumer(ctx, stream, want)
		return err
	case err != nil:
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

// requestPause is how long a registration waits before it asks again, where no orchestrator answered.
const requestPause = 250 * time.Millisecond

// RequestRegister asks an orchestrator to register a tool, until one answers or ctx ends. Errors: InvalidTool with the
// reason; NotReady where none answered before ctx ended.
func (s *Store) RequestRegister(ctx context.Context, raw []byte) (Tool, error) {
	def, err := tool.ParseDefinition(raw)
	if err != nil {
		return Tool{}, err
	}
	subject := subjects.Register(def.Name)
	warned := false
	for {
		answer, err := s.requestMsg(ctx, subject, raw)
		if err == nil {
			return readTool(answer)
		}
		if !transient(err) {
			return Tool{}, s.explain(ctx, err)
		}
		if !warned && errors.Is(err, nats.ErrNoResponders) {
			warned = true
			s.cfg.Logger.Warn("no orchestrator answers yet; waiting for one", "tool", def.Name)
		}
		if !s.pause(ctx, requestPause) {
			return Tool{}, fault.New(fault.NotReady, "no orchestrator answered on %s", subject).WithHint("start one against the same NATS server and account")
		}
	}
}

func (s *Store) requestMsg(ctx context.Context, subject string, body []byte) (answer *nats.Msg, err error) {
	err = s.guarded(ctx, subject, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		answer, err = s.nc.RequestWithContext(ctx, subject, body)
		return err
	})
	return answer, err
}

func readTool(answer *nats.Msg) (Tool, error) {
	var t Tool
	if first(answer.Header, subjects.HeaderStatus) == subjects.StatusError {
		var f fault.Error
		if err := json.Unmarshal(answer.Data, &f); err != nil {
			return t, fault.Wrap(fault.Internal, err, "reading an orchestrator's refusal")
		}
		return t, &f
	}
	if err := json.Unmarshal(answer.Data, &t); err != nil {
		return t, fault.Wrap(fault.Internal, err, "reading an orchestrator's answer")
	}
	return t, nil
}

// Tool gives one tool, from the registry's leader. Errors: NotFound, and those of Read.
func (s *Store) Tool(ctx context.Context, name string) (Tool, error) {
	e, err := s.Read(ctx, toolSubject(name))
	if err != nil {
		return Tool{}, err
	}
	return parseTool(e.Data, e.Seq, first(e.Header, jetstream.MarkerReasonHeader)+first(e.Header, "KV-Operation"))
}

func parseTool(raw []byte, seq uint64, operation string) (Tool, error) {
	var t Tool
	if operation != "" {
		return t, fault.New(fault.NotFound, "the tool was removed")
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fault.Wrap(fault.Internal, err, "reading a registry entry")
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
