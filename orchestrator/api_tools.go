package orchestrator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// The requests of operators about tools. Any orchestrator answers them: what they do is done in the registry, and the
// others learn of it from there.

// override sets or clears an operator's override of a tool.
func (s *api) override(m *nats.Msg) {
	s.administer(m, subjects.OverrideFilter, func(ctx context.Context, tool string) (any, error) {
		o, err := s.tools.Override(ctx, tool, m.Data)
		if err == nil && o.Tool != nil {
			s.reg.changed(*o.Tool)
		}
		return o, err
	})
}

// remove takes a tool out of the registry.
func (s *api) remove(m *nats.Msg) {
	s.administer(m, subjects.RemoveFilter, func(ctx context.Context, tool string) (any, error) {
		var req kv.RemoveRequest
		if len(m.Data) > 0 {
			if err := json.Unmarshal(m.Data, &req); err != nil {
				return nil, fault.New(fault.InvalidValue, "the request is no JSON object: %v", err).WithHint(`{"force": true}, or nothing`)
			}
		}
		return s.tools.RemoveTool(ctx, tool, req.Force) // the registry's watch takes it out of memory, in the right order
	})
}

// administer does a request beside the loop and answers it. The tool's name is the last token of the subject.
func (s *api) administer(m *nats.Msg, filter string, do func(ctx context.Context, tool string) (any, error)) {
	tool, ok := subjects.Decode(strings.TrimPrefix(m.Subject, strings.TrimSuffix(filter, "*")))
	if !ok {
		s.refuse(m, fault.New(fault.InvalidID, "%s names no tool", m.Subject))
		return
	}
	s.beside(m, func(ctx context.Context) (any, error) { return do(ctx, tool) })
}

// overrideForTenant sets or clears what a tenant overrides of a tool for its own runs. The permissions of the server
// say who may ask for which tenant.
func (s *api) overrideForTenant(m *nats.Msg) {
	tenant, tool, ok := subjects.ParseTenantOverride(m.Subject)
	if !ok {
		s.refuse(m, fault.New(fault.InvalidID, "%s names no tenant and tool", m.Subject))
		return
	}
	s.beside(m, func(ctx context.Context) (any, error) {
		o, err := s.tools.TenantOverride(ctx, tenant, tool, m.Data)
		if err != nil {
			return nil, err
		}
		s.reg.narrow(tenant, tool, o.Override, o.Revision)
		return o, nil
	})
}

// beside does a request beside the loop and answers it.
func (s *api) beside(m *nats.Msg, do func(ctx context.Context) (any, error)) {
	s.job(func(ctx context.Context) {
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

func (s *api) register(m *nats.Msg) {
	s.job(func(ctx context.Context) {
		t, err := s.registered(ctx, m)
		if err != nil {
			s.refuse(m, err)
			return
		}
		s.reg.changed(t)
		t.Warnings = append(t.Warnings, s.introduced(m, t.Name)...)
		b, err := json.Marshal(t)
		if err != nil {
			s.refuse(m, err)
			return
		}
		s.reply(m, b)
	})
}

// registered registers the definition of a request; one without a body restores the tool as it stands. The tool is that
// of the subject, which is what the server has judged the sender's permissions by.
func (s *api) registered(ctx context.Context, m *nats.Msg) (tool.Registered, error) {
	name, ok := subjects.ParseRegister(m.Subject)
	switch {
	case !ok:
		return tool.Registered{}, fault.New(fault.InvalidID, "%s names no tool", m.Subject)
	case len(m.Data) == 0:
		return s.tools.RestoreTool(ctx, name)
	}
	return s.tools.RegisterAs(ctx, name, m.Data)
}

// applyTemplate registers a tool that is a plan or an agent, where that could run now.
func (s *api) applyTemplate(m *nats.Msg) {
	s.administer(m, subjects.ApplyTemplateFilter, func(ctx context.Context, name string) (any, error) {
		def, err := tool.ParseDefinition(m.Data)
		switch {
		case err != nil:
			return nil, err
		case def.Name != name:
			return nil, fault.New(fault.InvalidTool, "this is the definition of %q, and the request is for %q", def.Name, name)
		case def.Hosted():
			return nil, fault.New(fault.InvalidTool, "%q has neither a plan nor an agent", name).
				WithHint(`add "plan": {"steps": […]} or "agent": {"planner": …}; a tool that workers host is registered by them, or by stepjet tools apply`)
		}
		report, err := s.reg.check(ctx, def)
		if err != nil {
			return nil, err
		}
		if len(report.Problems) > 0 {
			return nil, tool.PlanRefusal(name, report.Problems)
		}
		t, err := s.tools.ApplyTemplate(ctx, def)
		if err != nil {
			return nil, err
		}
		s.reg.changed(t)
		t.Warnings = append(def.Warnings(), report.Warnings...)
		return t, nil
	})
}

// applyGroup sets or takes out what a provider has for the role of a group of tools.
func (s *api) applyGroup(m *nats.Msg) {
	role, provider, ok := subjects.ParseApplyGroup(m.Subject)
	if !ok {
		s.refuse(m, fault.New(fault.InvalidID, "%s names no group", m.Subject))
		return
	}
	s.beside(m, func(ctx context.Context) (any, error) {
		if len(m.Data) == 0 {
			return struct{}{}, s.groups.Remove(ctx, role, provider)
		}
		return s.groups.Apply(ctx, role, provider, m.Data)
	})
}

// publishKey lets submitters know the newest key that this orchestrator holds, so that they seal secrets to it. It
// tries until that stands or ctx ends; the first try is over when it returns.
func (p *self) publishKey(ctx context.Context, tools *kv.Registry, later func(func())) {
	keys := p.cfg.SecretsKey.Keys()
	if len(keys) == 0 {
		return
	}
	newest := keys[len(keys)-1]
	try := func() bool {
		there, err := tools.PublishSealingKey(ctx, wire.SealingKey{ID: newest.Public.ID(), Public: newest.Public.String(), Created: newest.Created})
		switch {
		case err != nil && ctx.Err() == nil:
			p.cfg.Logger.Error("the key that secrets are sealed to could not be published; it is tried again", "key", newest.Public.ID(), "error", err)
		case err == nil && !p.cfg.SecretsKey.Has(there.ID):
			p.cfg.Logger.Warn("secrets are sealed to a newer key than this orchestrator holds; it can't take them out of errors", "key", there.ID)
		}
		return err == nil
	}
	if try() {
		return
	}
	later(func() {
		for !try() {
			select {
			case <-ctx.Done():
				return
			case <-time.After(publishAgain):
			}
		}
	})
}

// keyless are the workers that were heard of lately, by their registrations, and can't open what submitters seal.
type keyless struct {
	mu    sync.Mutex
	heard map[string]kv.Keyless // by worker
}

const (
	maxKeyless  = 100
	keylessTime = time.Hour // a worker that is idle registers again every half minute
)

// introduced notes whether a worker that registers a tool holds the key that this orchestrator has secrets sealed to,
// and returns what it is to be told.
func (s *api) introduced(m *nats.Msg, tool string) []fault.Problem {
	newest := s.cfg.SecretsKey.Newest()
	who, said := wire.ParseRegistration(m.Header)
	if newest == nil || !said {
		return nil
	}
	worker := text.Clip(who.Worker, maxWorkerName)
	if !s.keyless.note(kv.Keyless{Worker: worker, Tool: tool, Heard: time.Now().UTC()}, slices.Contains(who.Keys, newest.ID())) {
		return nil
	}
	return []fault.Problem{{
		Code: fault.Sealed, Message: "secrets are sealed to the key " + newest.ID() + ", which this worker does not hold: steps that bring some fail here",
		Hint: "start the workers of this tool with --secrets-key FILE, or worker.Config.SecretsKey",
	}}
}

// maxWorkerName bounds what is kept of a worker's name.
const maxWorkerName = 256

// note keeps a worker, or forgets it where it holds the key; it reports whether it lacks it.
func (k *keyless) note(w kv.Keyless, holds bool) (lacks bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if holds {
		delete(k.heard, w.Worker)
		return false
	}
	if k.heard == nil {
		k.heard = map[string]kv.Keyless{}
	}
	if _, known := k.heard[w.Worker]; known || len(k.heard) < maxKeyless {
		k.heard[w.Worker] = w
	}
	return true
}

// list returns those that were heard of lately, by their names, and forgets the others.
func (k *keyless) list(now time.Time) []kv.Keyless {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.heard, func(_ string, w kv.Keyless) bool { return now.Sub(w.Heard) > keylessTime })
	return slices.SortedFunc(maps.Values(k.heard), func(a, b kv.Keyless) int { return strings.Compare(a.Worker, b.Worker) })
}

const publishAgain = 10 * time.Second
