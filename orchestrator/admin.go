package orchestrator

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// The requests of operators about tools. Any orchestrator answers them: what they do is done in the registry, and the
// others learn of it from there.

// override sets or clears an operator's override of a tool.
func (s *service) override(m *nats.Msg) {
	s.administer(m, subjects.OverrideFilter, func(ctx context.Context, tool string) (any, error) {
		o, err := s.store.Override(ctx, tool, m.Data)
		if err == nil && o.Tool != nil {
			s.reg.changed(*o.Tool, false)
		}
		return o, err
	})
}

// remove takes a tool out of the registry.
func (s *service) remove(m *nats.Msg) {
	s.administer(m, subjects.RemoveFilter, func(ctx context.Context, tool string) (any, error) {
		var req kv.RemoveRequest
		if len(m.Data) > 0 {
			if err := json.Unmarshal(m.Data, &req); err != nil {
				return nil, fault.New(fault.InvalidValue, "the request is no JSON object: %v", err).WithHint(`{"force": true}, or nothing`)
			}
		}
		return s.store.RemoveTool(ctx, tool, req.Force) // the registry's watch takes it out of memory, in the right order
	})
}

// administer does a request beside the loop and answers it. The tool's name is the last token of the subject.
func (s *service) administer(m *nats.Msg, filter string, do func(ctx context.Context, tool string) (any, error)) {
	tool, ok := subjects.Decode(strings.TrimPrefix(m.Subject, strings.TrimSuffix(filter, "*")))
	if !ok {
		s.refuse(m, fault.New(fault.InvalidID, "%s names no tool", m.Subject))
		return
	}
	s.beside(m, func(ctx context.Context) (any, error) { return do(ctx, tool) })
}

// overrideForTenant sets or clears what a tenant overrides of a tool for its own runs. The permissions of the server say
// who may ask for which tenant.
func (s *service) overrideForTenant(m *nats.Msg) {
	tenant, tool, ok := subjects.ParseTenantOverride(m.Subject)
	if !ok {
		s.refuse(m, fault.New(fault.InvalidID, "%s names no tenant and tool", m.Subject))
		return
	}
	s.beside(m, func(ctx context.Context) (any, error) {
		o, err := s.store.TenantOverride(ctx, tenant, tool, m.Data)
		if err != nil {
			return nil, err
		}
		s.reg.narrow(tenant, tool, o.Override, o.Revision)
		return o, nil
	})
}

// beside does a request beside the loop and answers it.
func (s *service) beside(m *nats.Msg, do func(ctx context.Context) (any, error)) {
	s.l.job(func(ctx context.Context) {
		answer, err := do(ctx)
		if err != nil {
			s.refuse(m, err)
			return
		}
		b, err := json.Marshal(answer)
		if err != nil {
			s.refuse(m, err)
			return
		}
		s.reply(m, b)
	})
}
