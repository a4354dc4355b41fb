package kv

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Overridden is what setting or clearing an override came to.
type Overridden struct {
	Name string `json:"name"`
	// Tenant is the one for whose runs alone it counts; empty: for all.
	Tenant string `json:"tenant,omitempty"`
	// Revision is the registry's sequence of a tenant's override.
	Revision uint64 `json:"revision,omitempty"`
	// Override is what stands now; nil for none.
	Override *tool.Override `json:"override,omitempty"`
	// Tool is the registry's entry under it; nil while no such tool is registered.
	Tool *tool.Registered `json:"tool,omitempty"`
}

// Override sets an operator's override of a tool, or clears it where raw is empty. It counts at once: the tool's
// entry is computed anew and its consumer's limit changed; runs that started before keep the contract they started
// with. The tool need not exist yet. Setting twice is harmless. Errors: InvalidTool with the reason, where the
// combination with the definition contradicts itself, and nothing is changed then; InvalidID for what is no tool
// name; NotReady for an approval of which a live orchestrator does not know; those of Create.
func (s *Registry) Override(ctx context.Context, name string, raw []byte) (Overridden, error) {
	if !subjects.ValidTool(name) {
		return Overridden{}, fault.New(fault.InvalidID, "%q is no tool name", name)
	}
	var o *tool.Override
	if len(raw) > 0 {
		var err error
		if o, err = tool.ParseOverride(raw); err != nil {
			return Overridden{}, err
		}
	}
	old, err := s.entry(ctx, name)
	if err != nil {
		return Overridden{}, s.explain(ctx, err)
	}
	if old.Definition != nil { // refused before anything is written
		merged, _, err := o.Apply(old.Definition)
		if err == nil {
			err = merged.Validate()
		}
		if err != nil {
			return Overridden{}, err
		}
	}
	if needs := needsOf(o); len(needs) > 0 {
		if err := s.needs.introduce(ctx, name, needs); err != nil {
			return Overridden{}, s.explain(ctx, err)
		}
	}
	written, err := s.writeOverride(ctx, name, o)
	if err != nil {
		return Overridden{}, err
	}
	t, err := s.settleTool(ctx, name, func(old tool.Registered) *tool.Definition { return old.Definition })
	if fault.CodeOf(err) == fault.InvalidTool {
		s.takeBack(ctx, name, written) // another definition was registered meanwhile, and contradicts it
	}
	if err != nil {
		return Overridden{}, err
	}
	result := Overridden{Name: name, Override: o}
	if t.Definition != nil {
		result.Tool = &t
	}
	return result, nil
}

// OverrideOf returns the override of a tool, from the registry's leader; nil for none. Errors: those of Read.
func (s *Registry) OverrideOf(ctx context.Context, name string) (*tool.Override, error) {
	o, _, err := s.override(ctx, name)
	return o, err
}

// override returns a tool's override and its sequence; nil and the sequence of its mark, or 0, where there is none. One
// that can't be read is an error: nobody may be given more than an operator allowed.
func (s *Registry) override(ctx context.Context, name string) (*tool.Override, uint64, error) {
	e, err := s.read(ctx, overrideSubject(name))
	if fault.CodeOf(err) == fault.NotFound {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if operation(e.Header) != "" {
		return nil, e.Seq, nil
	}
	if !s.cfg.Knows.KnownEntry(e.Header, e.Data) {
		return nil, 0, wire.Newer("the operator's override of " + name)
	}
	o, err := readOverride(e.Data)
	if err != nil {
		f := fault.As(err)
		return nil, 0, fault.New(f.Code, "the operator's override of %s can't be read: %s", name, f.Message).
			WithHint("stepjet tools override %s --clear", name)
	}
	return o, e.Seq, nil
}

// writeOverride stores an override, or the mark of a cleared one, over whatever is there, and returns its sequence. The
// last one written counts.
func (s *Registry) writeOverride(ctx context.Context, name string, o *tool.Override) (uint64, error) {
	msg := &nats.Msg{Subject: overrideSubject(name), Header: wire.Versioned()}
	if o == nil {
		msg.Header[headerOperation] = []string{operationDelete}
	} else {
		body, err := json.Marshal(o)
		if err != nil {
			return 0, err
		}
		msg.Header, msg.Data = wire.NeedingEntry(body, needsOf(o))
	}
	var seq uint64
	err := s.retry(ctx, func(ctx context.Context) error {
		ack, err := s.put(ctx, msg)
		if err == nil {
			seq = ack.Sequence
		}
		return err
	})
	return seq, err
}

// needsOf returns what has to be known to follow an override. It says so itself: the tool may not be registered yet, and
// who does not know of approvals would register it without.
func needsOf(o *tool.Override) []string {
	if o.Guards() {
		return []string{wire.LanguageTwo}
	}
	return nil
}

// readOverride reads one that stands; what it needs is known.
func readOverride(body []byte) (*tool.Override, error) {
	o, err := tool.ReadOverride(body)
	if err == nil {
		o.Forget("needs")
	}
	return o, err
}

// takeBack clears the override of a sequence, if it is still the one that stands.
func (s *Registry) takeBack(ctx context.Context, name string, written uint64) {
	msg := &nats.Msg{Subject: overrideSubject(name), Header: deletion()}
	if _, err := s.put(ctx, msg, jetstream.WithExpectLastSequencePerSubject(written)); err != nil {
		s.cfg.Logger.Warn("an override that contradicts its tool could not be taken back", "tool", name, "error", err)
	}
}

// headerOperation marks, in a KV bucket, a message that stands for a removed key.
const (
	headerOperation = "KV-Operation"
	operationDelete = "DEL"
)

// deletion returns the headers of the mark of a removed key.
func deletion() nats.Header {
	h := wire.Versioned()
	h[headerOperation] = []string{operationDelete}
	return h
}

func overrideSubject(name string) string {
	return subjects.BucketSubject(subjects.ToolsBucket, subjects.OverrideKey(name))
}

// An override that a tenant sets counts for its own runs alone. It lies under a key of its own and changes neither the
// registry's entry nor the consumer, which all tenants share; orchestrators apply it to a run when it starts.

// TenantOverride sets what a tenant overrides of a tool for its own runs, or clears it where raw is empty. Plans
// submitted from now on are started with it; the tool need not exist yet. Errors: InvalidTool with the reason,
// InvalidID, and those of Create.
func (s *Registry) TenantOverride(ctx context.Context, tenant, name string, raw []byte) (Overridden, error) {
	if !subjects.ValidTool(name) || !subjects.ValidTenant(tenant) {
		return Overridden{}, fault.New(fault.InvalidID, "%q is no tool name, or %q no tenant", name, tenant)
	}
	msg := &nats.Msg{Subject: tenantOverrideSubject(tenant, name), Header: deletion()}
	var o *tool.Override
	if len(raw) > 0 {
		var err error
		if o, err = tool.ParseNarrowing(raw); err != nil {
			return Overridden{}, err
		}
		msg.Header = wire.Versioned()
		if msg.Data, err = json.Marshal(o); err != nil {
			return Overridden{}, fault.Wrap(fault.Internal, err, "writing an override")
		}
	}
	result := Overridden{Name: name, Tenant: tenant, Override: o}
	err := s.retry(ctx, func(ctx context.Context) error {
		ack, err := s.put(ctx, msg)
		if err == nil {
			result.Revision = ack.Sequence
		}
		return err
	})
	if err != nil {
		return Overridden{}, err
	}
	if t, err := s.Tool(ctx, name); err == nil {
		t.Contract = o.Narrow(t.Contract)
		result.Tool = &t
	}
	return result, nil
}

// TenantOverrides returns what a tenant overrides, by the names of the tools. Errors: NewerVersion, and those of Read.
func (s *Registry) TenantOverrides(ctx context.Context, tenant string) (map[string]*tool.Override, error) {
	stream := subjects.BucketStream(subjects.ToolsBucket)
	entries, err := s.entries(ctx, stream, toolPrefix+subjects.TenantOverrideKey(tenant, "")+"*")
	if err != nil {
		return nil, err
	}
	all := map[string]*tool.Override{}
	for _, e := range entries {
		_, name, ok := subjects.ParseTenantOverrideKey(strings.TrimPrefix(e.Subject, toolPrefix))
		o, err := parseTenantOverride(s.cfg.Knows, e)
		if err != nil {
			return nil, err
		}
		if ok && o != nil {
			all[name] = o
		}
	}
	return all, nil
}

func parseTenantOverride(knows wire.Knowledge, e Entry) (*tool.Override, error) {
	if operation(e.Header) != "" {
		return nil, nil
	}
	if !knows.KnownEntry(e.Header, e.Data) {
		return nil, wire.Newer("a tenant's override")
	}
	return tool.ReadOverride(e.Data)
}

// WatchTenantOverrides reports every override of a tenant, nil for one that was cleared, then calls ready, then
// reports every change, until ctx ends. One that can't be read is reported as one that lets no context pass, since it
// may say so. After a lost connection all are reported again. Errors: ctx's, and those of Read.
func (s *Registry) WatchTenantOverrides(ctx context.Context, each func(tenant, name string, o *tool.Override, revision uint64), ready func()) error {
	report := func(e Entry) {
		tenant, name, ok := subjects.ParseTenantOverrideKey(strings.TrimPrefix(e.Subject, toolPrefix))
		if !ok {
			return
		}
		o, err := parseTenantOverride(s.cfg.Knows, e)
		if err != nil {
			s.cfg.Logger.Error("a tenant's override can't be read; its runs pass no context to the tool", "tenant", tenant, "tool", name, "error", err)
			o = &tool.Override{Context: &tool.ContextFilter{Filter: tool.PassNone}}
		}
		each(tenant, name, o, e.Seq)
	}
	for {
		lost := make(chan struct{})
		watching, cancel := context.WithCancel(ctx)
		_, err := s.newCursor(watching, subjects.BucketStream(subjects.ToolsBucket), []string{toolPrefix + subjects.TenantOverrideKeys}, report,
			func(uint64) { ready() }, func(error) { close(lost) })
		if err == nil {
			select {
			case <-lost:
			case <-ctx.Done():
			case <-s.ctx.Done():
			}
		}
		cancel()
		switch {
		case s.ctx.Err() != nil:
			return errClosed()
		case ctx.Err() != nil:
			return s.explain(ctx, context.Cause(ctx))
		case err != nil:
			return err
		}
		if !s.pause(ctx, unknownPause) {
			return s.explain(ctx, context.Cause(ctx))
		}
	}
}

func tenantOverrideSubject(tenant, name string) string {
	return subjects.BucketSubject(subjects.ToolsBucket, subjects.TenantOverrideKey(tenant, name))
}
