package kv

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// An override that a tenant sets counts for its own runs alone. It lies under a key of its own and changes neither the
// registry's entry nor the consumer, which all tenants share; orchestrators apply it to a run when it starts.

// TenantOverride sets what a tenant overrides of a tool for its own runs, or clears it where raw is empty. Plans submitted
// from now on are started with it; the tool need not exist yet. Errors: InvalidTool with the reason, InvalidID, and those of
// Create.
func (s *Store) TenantOverride(ctx context.Context, tenant, name string, raw []byte) (Overridden, error) {
	if !tool.ValidName(name) || !subjects.ValidTenant(tenant) {
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

// TenantOverrides gives what a tenant overrides, by the names of the tools. Errors: NewerVersion, and those of Read.
func (s *Store) TenantOverrides(ctx context.Context, tenant string) (map[string]*tool.Override, error) {
	stream := subjects.BucketStream(subjects.ToolsBucket)
	entries, err := s.entries(ctx, stream, toolPrefix+subjects.TenantOverrideKey(tenant, "")+"*")
	if err != nil {
		return nil, err
	}
	all := map[string]*tool.Override{}
	for _, e := range entries {
		_, name, ok := subjects.ParseTenantOverrideKey(strings.TrimPrefix(e.Subject, toolPrefix))
		o, err := parseTenantOverride(e)
		if err != nil {
			return nil, err
		}
		if ok && o != nil {
			all[name] = o
		}
	}
	return all, nil
}

func parseTenantOverride(e Entry) (*tool.Override, error) {
	if operation(e.Header) != "" {
		return nil, nil
	}
	if !wire.Known(e.Header) {
		return nil, wire.Newer("a tenant's override")
	}
	return tool.ReadOverride(e.Data)
}

// RequestTenantOverride asks an orchestrator for TenantOverride, until one answers or ctx ends. Errors: those of
// TenantOverride; NotReady where none answered before ctx ended.
func (s *Store) RequestTenantOverride(ctx context.Context, tenant, name string, raw []byte) (Overridden, error) {
	var o Overridden
	return o, s.requestOf(ctx, subjects.TenantOverride(tenant, name), raw, &o)
}

// WatchTenantOverrides reports every override of a tenant, nil for one that was cleared, then calls ready, then reports
// every change, until ctx ends. One that can't be read is reported as one that lets no context pass, since it may say so.
// After a lost connection all are reported again. Errors: ctx's, and those of Read.
func (s *Store) WatchTenantOverrides(ctx context.Context, each func(tenant, name string, o *tool.Override, revision uint64), ready func()) error {
	report := func(e Entry) {
		tenant, name, ok := subjects.ParseTenantOverrideKey(strings.TrimPrefix(e.Subject, toolPrefix))
		if !ok {
			return
		}
		o, err := parseTenantOverride(e)
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
