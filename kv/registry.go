package kv

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Registry is what is known of tools, in one bucket (subjects.ToolsBucket): an entry for each tool, definitions under
// their digests for runs that froze them, what operators and tenants override, and the key that secrets are sealed
// to. An entry is replaced only by who names the revision that it replaces, so that of several registrars one stands;
// its consumer in the Queue is there before it is. What an operator allowed is never exceeded: an override that can't
// be read is an error.
type Registry struct {
	*account
	needs needs
	queue *Queue
}

// toolsPerShard bounds the consumers of a step stream: an acknowledgement in a work queue visits each of them.
const toolsPerShard = 100

// Register validates a definition and stores it, with what an operator's override makes of its contract, keeps it
// under its digest, and creates the tool's durable consumer or sets its limit anew. Registering what is there already
// writes nothing, but a consumer that was deleted is made again. Several may register at once; then one definition
// stands, and the consumer has its limit. The tool that it returns has the definition's warnings. Errors: InvalidTool
// with the reason; NotReady where it needs what a live orchestrator does not know; and those of Create.
func (s *Registry) Register(ctx context.Context, raw []byte) (tool.Registered, error) {
	return s.RegisterAs(ctx, "", raw)
}

// RegisterAs is Register for somebody who may register one tool and no other. The definition of another is
// InvalidTool, and nothing is written. An empty name is any tool's. So is that of a template (ApplyTemplate): what a plan
// calls is not for a worker to say.
func (s *Registry) RegisterAs(ctx context.Context, name string, raw []byte) (tool.Registered, error) {
	def, err := tool.ParseDefinition(raw)
	if err != nil {
		return tool.Registered{}, err
	}
	if name != "" && def.Name != name {
		return tool.Registered{}, fault.New(fault.InvalidTool, "this is the definition of %q, and the request is for %q", def.Name, name).
			WithHint("send it on %s, as far as the permissions allow", subjects.Register(def.Name))
	}
	if !def.Hosted() {
		what := "a plan"
		if def.Agent != nil {
			what = "an agent"
		}
		return tool.Registered{}, fault.New(fault.InvalidTool, "%q is %s, which no worker hosts", def.Name, what).
			WithHint("an operator applies it: stepjet templates apply FILE, or a request on %s", subjects.ApplyTemplate(def.Name))
	}
	t, err := s.settleTool(ctx, def.Name, func(tool.Registered) *tool.Definition { return def })
	t.Warnings = def.Warnings()
	return t, err
}

// ApplyTemplate is Register for the definition of a template or of an agent, which has no consumer. Whether its plan, or
// the agent, is one, and calls tools that there are, is the caller's to find out before. Errors: InvalidTool, also where workers host a tool of that
// name, and those of Register.
func (s *Registry) ApplyTemplate(ctx context.Context, def *tool.Definition) (tool.Registered, error) {
	return s.settleTool(ctx, def.Name, func(tool.Registered) *tool.Definition { return def })
}

// RestoreTool makes what is missing of a tool as the registry has it, such as its consumer, and changes nothing else.
// Errors: NotFound where the registry doesn't have it, and those of Create.
func (s *Registry) RestoreTool(ctx context.Context, name string) (tool.Registered, error) {
	t, err := s.settleTool(ctx, name, func(now tool.Registered) *tool.Definition { return now.Definition })
	if err == nil && t.Definition == nil {
		err = fault.New(fault.NotFound, "there is no tool %q in the registry", name)
	}
	return t, err
}

// settleTool makes the registry's entry of a tool, and its consumer, what a definition and the override of now come to.
// choose picks the definition, given the entry that is there; with nil there is nothing to do.
//
// Whoever sets an override writes it first and then comes here; whoever writes an entry looks at the override once more
// afterwards. So of two that do so at once at least one sees what the other wrote.
func (s *Registry) settleTool(ctx context.Context, name string, choose func(tool.Registered) *tool.Definition) (stored tool.Registered, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		for wait := backoff.Between(time.Millisecond, time.Second); ; {
			var settled bool
			stored, settled, err = s.settleOnce(ctx, name, choose)
			if settled || err != nil && apiCode(err) != codeWrongLastSequence {
				return err
			}
			// Another was faster, or an answer was lost; what is there now is the start of the next try.
			if !s.pause(ctx, wait.Next()) {
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return tool.Registered{}, err
	}
	return stored, nil
}

func (s *Registry) settleOnce(ctx context.Context, name string, choose func(tool.Registered) *tool.Definition) (tool.Registered, bool, error) {
	there, err := s.entry(ctx, name)
	old := there.Registered
	if err != nil {
		return old, false, err
	}
	def := choose(old)
	if def == nil {
		return old, true, nil
	}
	override, revision, err := s.override(ctx, name)
	if err != nil {
		return old, false, err
	}
	t, err := s.compose(def, override, there)
	if err != nil {
		return t, false, err
	}
	if !same(t, old) {
		if old, err = s.replaceTool(ctx, t, there); err != nil {
			return t, false, err
		}
		if _, now, err := s.override(ctx, name); err != nil || now != revision {
			return t, false, err
		}
	}
	t, err = s.ensureTool(ctx, old)
	return t, err == nil, err
}

// compose returns the entry that a definition and an override come to, in the place that the tool has already.
func (s *Registry) compose(def *tool.Definition, o *tool.Override, old standing) (tool.Registered, error) {
	if old.Definition != nil && kindOf(old.Definition) != kindOf(def) {
		return tool.Registered{}, taken(def, old.Definition)
	}
	effective, contract, err := o.Apply(def)
	if err != nil {
		return tool.Registered{}, err
	}
	t := tool.Registered{
		Name: def.Name, Definition: def, Contract: contract, Digest: def.Digest(), Tenants: effective.Tenants, Override: o,
		Shard: old.Shard, AckWait: s.cfg.AckWait,
	}
	// What the entry needs for fields that are only passed on stays; what it needs for its contract follows from that.
	t.Needs = slices.DeleteFunc(slices.Clone(old.Needs), func(need string) bool {
		return need == wire.LanguageTwo || wire.OfAgents(need)
	})
	if contract.Approval != "" || !def.Hosted() {
		t.Needs = append(t.Needs, wire.LanguageTwo)
	}
	t.Needs = append(append(t.Needs, wire.NeedsOfAgent(def.Agent)...), wire.NeedsOfTemplate(def.Plan)...)
	t.Inherit(old.Registered)
	if old.Definition != nil {
		t.AckWait = old.AckWait
	}
	return t, nil
}

// taken says that a name is that of a tool of the other kind. Runs that go on may need it, and who may register the name
// for a worker may not say what a plan calls.
func taken(def, there *tool.Definition) *fault.Error {
	return fault.New(fault.InvalidTool, "%q is %s already", def.Name, kindOf(there)).
		WithHint("give this one another name, or take that one out first: stepjet tools remove %s", def.Name)
}

// kindOf says what a tool is.
func kindOf(d *tool.Definition) string {
	switch {
	case d.Plan != nil:
		return "a template"
	case d.Agent != nil:
		return "an agent"
	}
	return "a tool that workers host"
}

// same reports whether an entry is already what it should be.
func same(t, old tool.Registered) bool {
	if old.Definition == nil || old.Digest != t.Digest {
		return false
	}
	t.Definition, t.Revision = old.Definition, old.Revision // of one digest, so they mean the same
	a, err := json.Marshal(t)
	b, err2 := json.Marshal(old)
	return err == nil && err2 == nil && bytes.Equal(a, b)
}

// replaceTool writes an entry in the place of old. The consumer comes first, for who reads the entry may pull at once.
func (s *Registry) replaceTool(ctx context.Context, t tool.Registered, old standing) (tool.Registered, error) {
	if old.Definition == nil && !old.removed && t.Hosted() {
		shard, err := s.queue.place(ctx, t.Name)
		if err != nil {
			return t, err
		}
		t.Shard = shard
	}
	if lacking := slices.DeleteFunc(slices.Clone(t.Needs), func(n string) bool { return slices.Contains(old.Needs, n) }); len(lacking) > 0 {
		if err := s.needs.introduce(ctx, t.Name, lacking); err != nil {
			return t, err
		}
	}
	if err := s.keepDefinition(ctx, t); err != nil {
		return t, err
	}
	if err := s.queue.makeConsumer(ctx, t, old.Registered); err != nil {
		return t, err
	}
	return s.writeTool(ctx, t, old.Revision)
}

// ensureTool makes the consumer what the entry says, and looks again, since another registrar may have changed both in
// another order.
func (s *Registry) ensureTool(ctx context.Context, t tool.Registered) (tool.Registered, error) {
	for {
		if err := s.queue.ensureConsumer(ctx, t); err != nil {
			return t, err
		}
		now, err := s.Tool(ctx, t.Name)
		if err != nil || now.Revision == t.Revision {
			return t, err
		}
		t = now
	}
}

// standing is what the registry has of a tool: its entry; or, without a Definition, the mark of one that was removed,
// with its shard, or nothing that can be read. Its Revision is what the next write has to expect.
type standing struct {
	tool.Registered
	removed bool
}

// entry returns what the registry has of a tool. Errors: NewerVersion for one that is not to be written over.
func (s *Registry) entry(ctx context.Context, name string) (standing, error) {
	e, err := s.read(ctx, toolSubject(name))
	if fault.CodeOf(err) == fault.NotFound {
		return standing{}, nil
	}
	if err != nil {
		return standing{}, err
	}
	t, err := parseTool(s.cfg.Knows, *e, name)
	switch fault.CodeOf(err) {
	case "":
		return standing{Registered: t}, nil
	case fault.NewerVersion:
		return standing{}, err
	}
	return tombstone(*e), nil // removed, or not written by Stepjet
}

// writeTool writes an entry in the place of the one with the revision expected; 10071 if that is not the last.
func (s *Registry) writeTool(ctx context.Context, t tool.Registered, expected uint64) (tool.Registered, error) {
	t.Revision = 0 // it is the message's own sequence
	body, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	msg := &nats.Msg{Subject: toolSubject(t.Name), Header: wire.EntryHeader(body), Data: body}
	ack, err := s.put(ctx, msg, jetstream.WithExpectLastSequencePerSubject(expected))
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
func (s *Registry) keepDefinition(ctx context.Context, t tool.Registered) error {
	body, err := json.Marshal(t.Definition)
	if err != nil {
		return err
	}
	subject := definitionSubject(t.Digest)
	decision, _, err := s.createOnce(ctx, subject, wire.EntryHeader(body), body, nil)
	if err != nil || decision == Written {
		return err
	}
	e, err := s.read(ctx, subject)
	if err != nil || operation(e.Header) == "" {
		return err
	}
	// Somebody deleted it; its mark is what lies there.
	_, err = s.put(ctx, &nats.Msg{Subject: subject, Header: wire.EntryHeader(body), Data: body}, jetstream.WithExpectLastSequencePerSubject(e.Seq))
	return err
}

// Keyless is a worker that registered a tool, and said that it does not hold the key that secrets are sealed to.
type Keyless struct {
	Worker string    `json:"worker"`
	Tool   string    `json:"tool"`
	Heard  time.Time `json:"heard"`
}

var sealingSubject = subjects.BucketSubject(subjects.ToolsBucket, subjects.SealingKey)

// SealingKey returns the key that is published; NotFound where there is none. Other errors: NewerVersion, and
// those of Read.
func (s *Registry) SealingKey(ctx context.Context) (wire.SealingKey, error) {
	k, _, err := s.sealingKey(ctx)
	return k, err
}

// sealingKey also returns what the next write has to expect.
func (s *Registry) sealingKey(ctx context.Context) (k wire.SealingKey, revision uint64, err error) {
	e, err := s.read(ctx, sealingSubject)
	if err != nil {
		return k, 0, err
	}
	if operation(e.Header) != "" {
		return k, e.Seq, fault.New(fault.NotFound, "the key that secrets are sealed to was removed")
	}
	if !wire.KindSealingKey.Known(e.Header) {
		return k, e.Seq, wire.Newer("the registry's key for secrets")
	}
	k, ok := wire.ParseSealingKey(e.Data)
	if !ok {
		return k, e.Seq, fault.New(fault.Internal, "the registry's key for secrets can't be read").
			WithHint("an orchestrator that is started with --secrets-key writes it anew")
	}
	return k, e.Seq, nil
}

// PublishSealingKey publishes a key, unless that which is there was made later: of orchestrators that are given files
// of different ages the newest counts, whoever comes first. It returns what is published then. Only orchestrators have
// the right.
func (s *Registry) PublishSealingKey(ctx context.Context, k wire.SealingKey) (wire.SealingKey, error) {
	for {
		there, revision, err := s.sealingKey(ctx)
		switch code := fault.CodeOf(err); {
		case code == "" && (there.ID == k.ID || there.Created.After(k.Created)):
			return there, nil
		case code != "" && code != fault.NotFound && code != fault.Internal:
			return k, err
		}
		h, body := k.Message()
		_, err = s.put(ctx, &nats.Msg{Subject: sealingSubject, Header: h, Data: body}, jetstream.WithExpectLastSequencePerSubject(revision))
		if err == nil {
			return k, nil
		}
		if apiCode(err) != codeWrongLastSequence { // somebody else wrote meanwhile
			return k, s.explain(ctx, err)
		}
	}
}
