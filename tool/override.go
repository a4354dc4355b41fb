package tool

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// Override is what an operator sets in place of what a tool's author declared. It beats the definition field by field;
// what it doesn't name stays as it was declared. Its JSON form is
//
//	{"x-orchestration": {…partial…}, "context": {"filter": "allow-keys", "keys": ["tenantId"]}, "tenants": ["a"], "by": "ann"}
type Override struct {
	// Orchestration is merged into the declared x-orchestration as a JSON merge patch (RFC 7396): objects such as
	// "retry" are merged in turn, and null takes a declared field away, so that its default counts.
	Orchestration json.RawMessage `json:"x-orchestration,omitempty"`
	// Context says which keys of a run's out-of-band context the tool's workers get; nil for all.
	Context *ContextFilter `json:"context,omitempty"`
	// Tenants replaces the declared tenants: nil leaves them, an empty list opens the tool to all.
	Tenants []string `json:"tenants,omitzero"`
	// By is who set it, for people to read.
	By string `json:"by,omitempty"`
	// Extra are fields that this version doesn't know, of an override that was set by a newer one; they are kept as
	// they came.
	Extra map[string]json.RawMessage `json:"-"`
}

// MaxOverride is the largest override, in bytes.
const MaxOverride = 64 << 10

var overrideFields = []string{"x-orchestration", "context", "tenants", "by"}

// ParseOverride reads an override and checks what can be checked without the tool: names, types and ranges. Unlike in a
// definition, a field that nobody knows is an error, for an operator means what is written. Errors are *fault.Error of
// code invalid_tool.
func ParseOverride(raw []byte) (*Override, error) {
	if len(raw) > MaxOverride {
		return nil, fault.New(fault.InvalidTool, "the override has %d bytes, at most %d are allowed", len(raw), MaxOverride)
	}
	if _, err := decodeExact(raw); err != nil {
		return nil, fault.New(fault.InvalidTool, "the override is not valid: %s", err.Error())
	}
	o, err := ReadOverride(raw)
	if err != nil {
		return nil, err
	}
	if err := o.known(); err != nil {
		return nil, notValid(err)
	}
	return o, nil
}

// ReadOverride reads an override that stands in the registry. What a newer version has put into it beside the fields of
// this one is kept, and counts for nothing. Errors as those of ParseOverride.
func ReadOverride(raw []byte) (*Override, error) {
	o := &Override{}
	if err := o.read(raw); err != nil {
		return nil, notValid(err)
	}
	return o, nil
}

func notValid(err error) error {
	return fault.New(fault.InvalidTool, "the override is not valid: %s", err.Error()).WithHint("%s", hintOf(err))
}

// Forget leaves out a field that this version doesn't know.
func (o *Override) Forget(field string) {
	delete(o.Extra, field)
	if len(o.Extra) == 0 {
		o.Extra = nil
	}
}

// Guards reports whether it has calls of the tool wait for a person's approval.
func (o *Override) Guards() bool {
	var x Orchestration
	return o != nil && o.Orchestration != nil && x.UnmarshalJSON(o.Orchestration) == nil && x.Approval != ""
}

// known reports a field that nobody knows.
func (o *Override) known() error {
	for _, name := range slices.Sorted(maps.Keys(o.Extra)) {
		return badField(name, "no such field").withHint("an override has x-orchestration, context, tenants and by")
	}
	if o.Orchestration == nil {
		return nil
	}
	var x Orchestration
	if err := x.UnmarshalJSON(o.Orchestration); err != nil {
		return within("x-orchestration", err)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Extra)) {
		return badField("x-orchestration."+name, "no such field").withHint("the fields are %s", listed(orchestrationFields))
	}
	return nil
}

func (o *Override) read(raw []byte) error {
	f, err := readFields(raw, overrideFields...)
	if err != nil {
		return err
	}
	o.Orchestration = f.raw["x-orchestration"]
	o.By = f.text("by")
	f.decode("context", &o.Context, "an object")
	f.decode("tenants", &o.Tenants, "an array of strings")
	if err := f.err(); err != nil {
		return err
	}
	for _, name := range overrideFields {
		delete(f.raw, name)
	}
	if len(f.raw) > 0 {
		o.Extra = f.raw
	}
	return o.check()
}

// check looks at an override alone.
func (o *Override) check() error {
	if o.Orchestration != nil {
		var x Orchestration
		if err := x.UnmarshalJSON(o.Orchestration); err != nil {
			return within("x-orchestration", err)
		}
		if x.Batch != nil && x.Batch.Argument != "" {
			return badField("x-orchestration.batch.argument", "is the worker's own and can't be overridden").
				withHint("override max_items and max_wait_ms only")
		}
	}
	if len(o.Tenants) > maxTenants {
		return badField("tenants", "more than %d", maxTenants)
	}
	for _, t := range o.Tenants {
		if !subjects.ValidTenant(t) {
			return badField("tenants", "%q is no tenant", clip(t)).withHint("a tenant is 1 to 64 of A-Z a-z 0-9 _ -")
		}
	}
	return nil
}

// Apply returns the definition that d comes to under the override, and its contract; d itself is not changed. A nil
// override changes nothing. A combination that contradicts itself is an invalid_tool that says how.
func (o *Override) Apply(d *Definition) (*Definition, Contract, error) {
	if o == nil {
		c, err := d.Contract()
		return d, c, err
	}
	e := *d
	if o.Tenants != nil {
		e.Tenants = o.Tenants
	}
	if o.Orchestration != nil {
		merged, err := mergeOrchestration(d.Orchestration, o.Orchestration)
		if err != nil {
			return nil, Contract{}, d.overridden(fault.New(fault.InvalidTool, "tool %q: x-orchestration.%s", clip(d.Name),
				err.Error()).WithHint("%s", hintOf(err)))
		}
		e.Orchestration = merged
	}
	c, err := e.Contract()
	if err != nil {
		return nil, Contract{}, d.overridden(fault.As(err))
	}
	if o.Context != nil && !d.Hosted() {
		return nil, Contract{}, d.overridden(ofTool(d.Name, "/context", "nobody is handed it: this tool is "+d.kind(),
			"override the context of the tools that its steps call"))
	}
	if o.Context != nil {
		c.Context = *o.Context
	}
	return &e, c, nil
}

// overridden says that a refusal comes of the operator's override beside the definition.
func (d *Definition) overridden(f *fault.Error) *fault.Error {
	return &fault.Error{Code: f.Code, Message: f.Message + " (with the operator's override)", Hint: f.Hint, Cause: f}
}

// mergeOrchestration merges a patch into a declared contract.
func mergeOrchestration(declared *Orchestration, patch json.RawMessage) (*Orchestration, error) {
	base := []byte("{}")
	if declared != nil {
		var err error
		if base, err = json.Marshal(declared); err != nil {
			return nil, err
		}
	}
	merged, err := mergePatch(base, patch)
	if err != nil {
		return nil, err
	}
	o := &Orchestration{}
	if err := o.UnmarshalJSON(merged); err != nil {
		return nil, err
	}
	had := declared != nil && declared.Batch != nil
	if had && o.Batch == nil { // its input schema takes both forms of a call, and its workers count on that
		return nil, badField("batch", "can't be taken away from a tool that declares it").
			withHint("max_items 1 makes each call a batch of its own")
	}
	if !had && o.Batch != nil {
		return nil, badField("batch", "the tool declares none, so there is no argument that takes the items").
			withHint("only the worker can declare a batch; take batch out of the override")
	}
	return o, nil
}

// mergePatch applies a JSON merge patch (RFC 7396) to an object.
func mergePatch(base, patch []byte) ([]byte, error) {
	var b, p map[string]json.RawMessage
	if json.Unmarshal(patch, &p) != nil || p == nil { // anything but an object takes the place of what was there
		return patch, nil
	}
	if json.Unmarshal(base, &b) != nil || b == nil {
		b = map[string]json.RawMessage{}
	}
	for name, v := range p {
		if string(v) == "null" {
			delete(b, name)
			continue
		}
		merged, err := mergePatch(b[name], v)
		if err != nil {
			return nil, err
		}
		b[name] = merged
	}
	return json.Marshal(b)
}

// MarshalJSON writes the object, with the fields of Extra among its own.
func (o Override) MarshalJSON() ([]byte, error) {
	type plain Override // without this method
	return withExtra(plain(o), o.Extra)
}

// UnmarshalJSON reads what ReadOverride reads, with the same errors but for their code.
func (o *Override) UnmarshalJSON(raw []byte) error {
	*o = Override{}
	return o.read(raw)
}
