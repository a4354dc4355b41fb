package ui

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// overriding sets what counts in place of what tools declare.
type overriding struct {
	cfg  *Config
	read *kv.Store // what stands is read with it

	mu  sync.Mutex
	as  *kv.Store // what is set is set with it; nil until something is
	end func()
}

// store returns what overrides are set with.
func (o *overriding) store(ctx context.Context) (*kv.Store, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.cfg.Operator == nil:
		return o.read, nil
	case o.as != nil:
		return o.as, nil
	}
	nc, end, err := o.cfg.Operator(ctx)
	if err != nil {
		return nil, err
	}
	store, err := kv.Open(ctx, nc)
	if err != nil {
		end()
		return nil, err
	}
	o.as, o.end = store, func() {
		store.Close()
		end()
	}
	return store, nil
}

func (o *overriding) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != nil {
		o.end()
	}
}

// overrideWithin bounds how long an orchestrator is waited for.
const overrideWithin = 10 * time.Second

// overridden is what an override comes to, or would.
type overridden struct {
	// Before and After are the contract as it counts for who asked; both are absent while the tool is not registered.
	Before *tool.Contract `json:"before,omitempty"`
	After  *tool.Contract `json:"after,omitempty"`
	// Was is the override that stood, Set whether the new one stands now.
	Was *tool.Override `json:"was,omitempty"`
	Set bool           `json:"set"`
}

// override sets an override of a tool, for all tenants or for the one that the body names, or says what it would come to.
func (o *overriding) override(w http.ResponseWriter, r *http.Request) (any, error) {
	var in struct {
		Override string `json:"override"` // JSON as text; empty clears it
		Tenant   string `json:"tenant"`   // for whose runs alone it counts; empty: for all
		Set      bool   `json:"set"`      // otherwise it is only looked at
	}
	if err := readJSON(w, r, &in); err != nil {
		return nil, err
	}
	name, who := r.PathValue("tool"), principal(r)
	switch {
	case !subjects.ValidTool(name):
		return nil, fault.New(fault.InvalidID, "%q is no tool name", name)
	case in.Tenant == "" && who.Tenants != nil:
		return nil, fault.New(fault.Permission, "%s sees some tenants, and this counts for all", who.Name).
			WithHint("an override for one tenant's runs alone takes away: attempts, time, keys of the context")
	case in.Tenant != "" && !subjects.ValidTenant(in.Tenant):
		return nil, fault.New(fault.InvalidValue, "%q is no tenant", in.Tenant)
	case in.Tenant != "" && !who.sees(in.Tenant):
		return nil, fault.New(fault.NotFound, "there is no tenant %s", in.Tenant)
	}
	raw, wanted, err := readOverride(in.Override, in.Tenant, who.Name)
	if err != nil {
		return nil, err
	}
	out, err := o.compare(r.Context(), name, in.Tenant, wanted)
	if err != nil || !in.Set {
		return out, err
	}
	store, err := o.store(r.Context())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), overrideWithin)
	defer cancel()
	if in.Tenant == "" {
		_, err = store.Requests.RequestOverride(ctx, name, raw)
	} else {
		_, err = store.Requests.RequestTenantOverride(ctx, in.Tenant, name, raw)
	}
	out.Set = err == nil
	return out, err
}

// readOverride reads what a caller writes, and says in it who set it. Both are nil for one that is to be cleared.
func readOverride(text, tenant, by string) ([]byte, *tool.Override, error) {
	if text == "" {
		return nil, nil, nil
	}
	parse := tool.ParseOverride
	if tenant != "" {
		parse = tool.ParseNarrowing
	}
	o, err := parse([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	o.By = by
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "writing an override")
	}
	return raw, o, nil
}

// compare returns the contract of a tool as it is, and as it would be.
func (o *overriding) compare(ctx context.Context, name, tenant string, wanted *tool.Override) (*overridden, error) {
	out := &overridden{}
	t, err := o.read.Registry.Tool(ctx, name)
	if fault.CodeOf(err) == fault.NotFound {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if tenant == "" {
		merged, after, err := wanted.Apply(t.Definition)
		if err == nil {
			err = merged.Validate()
		}
		out.Before, out.After, out.Was = &t.Contract, &after, t.Override
		return out, err
	}
	own, err := o.read.Registry.TenantOverrides(ctx, tenant)
	if err != nil {
		return nil, err
	}
	before, after := own[name].Narrow(t.Contract), wanted.Narrow(t.Contract)
	out.Before, out.After, out.Was = &before, &after, own[name]
	return out, nil
}
