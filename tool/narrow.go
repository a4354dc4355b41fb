package tool

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// narrowing are the fields of x-orchestration that a tenant may override for itself, and the fields within them. All
// others are shared: the consumer's limit, the form of calls, what a batch of several tenants' steps does.
var narrowing = map[string][]string{"retry": {"max_attempts"}, "timeout_ms": nil, "wait_timeout_ms": nil}

// ParseNarrowing reads an override that one tenant sets for its own runs. It can only take away from what counts for
// all: attempts, time and keys of the context. Errors are *fault.Error of code invalid_tool.
func ParseNarrowing(raw []byte) (*Override, error) {
	o, err := ParseOverride(raw)
	if err != nil {
		return nil, err
	}
	const hint = "a tenant overrides retry.max_attempts, timeout_ms, wait_timeout_ms and context; all else counts for every tenant: ask an operator of the cluster"
	refuse := func(field string) error {
		return fault.New(fault.InvalidTool, "the override is not valid: %s is shared by all tenants", field).WithHint(hint)
	}
	if o.Tenants != nil {
		return nil, refuse("tenants")
	}
	var x map[string]json.RawMessage
	if o.Orchestration != nil && json.Unmarshal(o.Orchestration, &x) != nil {
		return nil, refuse("x-orchestration")
	}
	for _, name := range slices.Sorted(maps.Keys(x)) {
		within, ok := narrowing[name]
		if !ok {
			return nil, refuse("x-orchestration." + name)
		}
		var inner map[string]json.RawMessage
		if within != nil && (json.Unmarshal(x[name], &inner) != nil || inner == nil) || string(x[name]) == "null" {
			return nil, fault.New(fault.InvalidTool, "the override is not valid: x-orchestration.%s takes nothing away", name).
				WithHint(hint)
		}
		for _, field := range slices.Sorted(maps.Keys(inner)) {
			if !slices.Contains(within, field) {
				return nil, refuse("x-orchestration." + name + "." + field)
			}
		}
	}
	return o, nil
}

// Narrow returns the contract as it counts for the runs of a tenant that has set o for itself: never more attempts,
// time or keys of the context than c has. A nil override changes nothing.
func (o *Override) Narrow(c Contract) Contract {
	if o == nil {
		return c
	}
	var x Orchestration
	if o.Orchestration != nil && x.UnmarshalJSON(o.Orchestration) == nil {
		if x.Retry != nil && x.Retry.MaxAttempts > 0 {
			c.MaxAttempts = min(c.MaxAttempts, x.Retry.MaxAttempts)
		}
		c.Timeout = shorter(c.Timeout, x.TimeoutMS)
		c.WaitTimeout = shorter(c.WaitTimeout, x.WaitTimeoutMS)
	}
	if o.Context != nil {
		c.Context = c.Context.And(*o.Context)
	}
	return c
}

// shorter returns the shorter of two times, of which none is the longest.
func shorter(d time.Duration, ms int64) time.Duration {
	if own := time.Duration(ms) * time.Millisecond; own > 0 && (d == 0 || own < d) {
		return own
	}
	return d
}

// And returns the filter that lets pass what both do.
func (f ContextFilter) And(g ContextFilter) ContextFilter {
	open := func(f ContextFilter) bool { return f.Filter == "" || f.Filter == PassThrough }
	switch {
	case open(f):
		return g
	case open(g):
		return f
	case f.Filter == DenyKeys && g.Filter == DenyKeys:
		keys := slices.Clone(f.Keys)
		for _, k := range g.Keys {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		return ContextFilter{Filter: DenyKeys, Keys: keys}
	case f.Filter == DenyKeys:
		f, g = g, f
	}
	if f.Filter != AllowKeys {
		return ContextFilter{Filter: PassNone}
	}
	var keys []string
	for _, k := range f.Keys {
		if g.Passes(k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return ContextFilter{Filter: PassNone}
	}
	return ContextFilter{Filter: AllowKeys, Keys: keys}
}
