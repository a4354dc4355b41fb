package tool

import (
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/unknown"
	"github.com/stepjet/stepjet/subjects"
)

// Registered is a tool as the registry has it: its definition, and what follows from it.
type Registered struct {
	Name       string      `json:"name"`
	Definition *Definition `json:"definition"`
	// Contract is the effective one: the definition's, with all defaults filled in, under the operator's override.
	// Contract.Limit is the consumer's MaxAckPending.
	Contract Contract `json:"contract"`
	// Digest is that of the definition, which is also kept under it for runs that froze it.
	Digest string `json:"digest"`
	// Shard is the tool's step stream. It is assigned once and never changes.
	Shard int `json:"shard"`
	// Tenants that may use the tool, under the operator's override; empty: all.
	Tenants []string `json:"tenants,omitempty"`
	// Override is what an operator set in place of what the definition says; nil where there is nothing.
	Override *Override `json:"override,omitempty"`
	// AckWait is the lease of its steps.
	AckWait time.Duration `json:"-"`
	// Needs are what has to be known to call the tool by its contract: who does not know them leaves the entry alone.
	Needs []string `json:"needs,omitempty"`
	// Revision is the registry's sequence of this entry.
	Revision uint64 `json:"revision,omitempty"`
	// Warnings say what of the definition is of no use. They are of the answer to a registration and in no entry.
	Warnings []fault.Problem `json:"warnings,omitempty"`

	unknown unknown.Fields // of the entry, from a newer version
}

// Effective returns the definition as it counts: with the contract and the tenants that the operator's override makes
// of what was declared.
func (t Registered) Effective() *Definition {
	d, _, err := t.Override.Apply(t.Definition)
	if err != nil { // the registry stores no such thing
		return t.Definition
	}
	return d
}

// Template reports whether the tool is a plan, so that no worker hosts it.
func (t *Registered) Template() bool { return t.Definition != nil && t.Definition.Plan != nil }

// Agent reports whether the tool is an agent, so that no worker hosts it.
func (t *Registered) Agent() bool { return t.Definition != nil && t.Definition.Agent != nil }

// Hosted reports whether the tool is one that workers host; true where nobody knows.
func (t *Registered) Hosted() bool { return t.Definition == nil || t.Definition.Hosted() }

// Guard gives the contract the approval that the definition and the override ask for. What an orchestrator has written
// that does not know of approvals is without one.
func (t *Registered) Guard() {
	declared := t.Definition.Orchestration != nil && t.Definition.Orchestration.Approval != ""
	if t.Contract.Approval != "" || !declared && !t.Override.Guards() {
		return
	}
	if o := t.Effective().Orchestration; o != nil {
		t.Contract.Approval = o.Approval
	}
}

// Inherit takes over what a newer version has written into the entry that this one replaces.
func (t *Registered) Inherit(old Registered) { t.unknown = old.unknown }

type registeredFields Registered

// registeredJSON adds what a worker needs in order to take steps, so that it has to build no name itself. No worker takes
// those of a template or an agent.
type registeredJSON struct {
	*registeredFields
	AckWaitMS int64  `json:"ack_wait_ms"`
	Stream    string `json:"stream,omitempty"`   // that the steps lie in
	Consumer  string `json:"consumer,omitempty"` // to pull them from
	Cancel    string `json:"cancel,omitempty"`   // to subscribe to
}

// MarshalJSON writes the entry's form in the registry and in the answer to a registration. Fields of a newer version
// that were read are written again.
func (t Registered) MarshalJSON() ([]byte, error) {
	out := registeredJSON{registeredFields: (*registeredFields)(&t), AckWaitMS: t.AckWait.Milliseconds()}
	if t.Hosted() {
		out.Stream, out.Consumer, out.Cancel = subjects.StepsStream(t.Shard), subjects.Durable(t.Name), subjects.CancelFilter(t.Name)
	}
	b, err := json.Marshal(out)
	return t.unknown.Into(b), err
}

var registeredNames = unknown.NamesOf(registeredJSON{})

// UnmarshalJSON reads it.
func (t *Registered) UnmarshalJSON(b []byte) error {
	in := registeredJSON{registeredFields: (*registeredFields)(t)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	t.AckWait = time.Duration(in.AckWaitMS) * time.Millisecond
	t.unknown = unknown.Of(b, registeredNames)
	return nil
}
