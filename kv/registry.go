package kv

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// toolsPerShard bounds the consumers of a step stream: an acknowledgement in a work queue visits each of them.
const toolsPerShard = 100

// Register validates a definition and stores it, keeps it under its digest, and creates the tool's durable consumer or
// sets its limit anew. Registering what is there already writes nothing, but a consumer that was deleted is made again.
// Several may register at once; then one definition stands, and the consumer has its limit. Errors: InvalidTool with the
// reason, and those of Create.
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
	var stored Tool
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		stored, err = s.registerOnce(ctx, t)
		for wait := (backoff{time.Millisecond, time.Second}); apiCode(err) == codeWrongLastSequence; {
			// Another registrar was faster, or an answer was lost; the entry that is there is the start of the next try.
			if !s.pause(ctx, wait.next()) {
				return context.Cause(ctx)
			}
			stored, err = s.registerOnce(ctx, t)
		}
		return err
	})
	if err != nil {
		return Tool{}, err
	}
	return stored, nil
}

func (s *Store) registerOnce(ctx context.Context, t Tool) (Tool, error) {
	old, err := s.entry(ctx, t.Name)
	if err != nil {
		return t, err
	}
	if old.Definition != nil {
		t.Shard, t.AckWait = old.Shard, old.AckWait
	} else if t.Shard, err = s.freeShard(ctx); err != nil {
		return t, err
	}
	if err := s.keepDefinition(ctx, t); err != nil {
		return t, err
	}
	if old.Definition == nil || old.Digest != t.Digest {
		// The consumer comes before the entry, for who reads the entry may pull at once.
		if err := s.ensureConsumer(ctx, t); err != nil {
			return t, err
		}
		if old, err = s.writeTool(ctx, t, old.Revision); err != nil {
			return t, err
		}
	}
	return s.ensureTool(ctx, old)
}

// ensureTool makes the consumer what the entry says, and looks again, since another registrar may have changed both in
// another order.
func (s *Store) ensureTool(ctx context.Context, t Tool) (Tool, error) {
	for {
		if err := s.ensureConsumer(ctx, t); err != nil {
			return t, err
		}
		now, err := s.Tool(ctx, t.Name)
		if err != nil || now.Revision == t.Revision {
			return t, err
		}
		t = now
	}
}

// entry gives what the registry has of a tool. One that is not there, was removed, or can't be read has no Definition;
// its Revision is what the next write has to expect.
func (s *Store) entry(ctx context.Context, name string) (Tool, error) {
	e, err := s.Read(ctx, toolSubject(name))
	if fault.CodeOf(err) == fault.NotFound {
		return Tool{}, nil
	}
	if err != nil {
		return Tool{}, err
	}
	t, err := parseTool(*e, name)
	if err != nil { // removed, or not written by Stepjet
		return Tool{Revision: e.Seq}, nil
	}
	return t, nil
}

// writeTool writes an entry in the place of the one with the revision expected; 10071 if that is not the last.
func (s *Store) writeTool(ctx context.Context, t Tool, expected uint64) (Tool, error) {
	t.Revision = 0 // it is the message's own sequence
	body, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	msg := &nats.Msg{Subject: toolSubject(t.Name), Data: body}
	ack, err := s.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequencePerSubject(expected))
	if err != nil {
		return t, err
	}
	t.Revision = ack.Sequence
	return t, nil
}

func toolSubject(name string) string {
	return subjects.BucketSubject(subjects.ToolsBucket, subjects.ToolKey(name))
}

func definitionSubject(digest string) string {
	return subjects.BucketSubject(subjects.ToolsBucket, subjects.DefinitionKey(digest))
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

// ensureConsumer makes sure of a tool's durable consumer and its limit, also where somebody deleted it or its stream.
func (s *Store) ensureConsumer(ctx context.Context, t Tool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout) // of several at once some may get no answer; they try again
	defer cancel()
	stream, name, want := subjects.StepsStream(t.Shard), subjects.Durable(t.Name), consumerConfig(t)
	c, err := patiently(ctx, func(ctx context.Context) (jetstream.Consumer, error) { return s.js.Consumer(ctx, stream, name) })
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if err = s.ensureSteps(ctx, t.Shard); err == nil {
			_, err = s.js.CreateOrUpdateConsumer(ctx, stream, want)
		}
		return err
	}
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = s.js.CreateOrUpdateConsumer(ctx, stream, want)
		return err
	}
	if err != nil {
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
