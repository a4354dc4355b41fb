package tool

import (
	"encoding/json"
	"slices"
	"time"
)

// Bounds and defaults of contracts (plan language, "Contracts" and "retry").
const (
	// DefaultLimit is the fan-out limit of a tool that names none.
	DefaultLimit = 64
	// ParallelLimit is the fan-out limit of a parallel-safe tool that names none.
	ParallelLimit = 4096
	// MaxLimit is the highest fan-out limit that a contract may name.
	MaxLimit = 65536
	// MaxAttempts is the most attempts of one step.
	MaxAttempts = 20
	// DefaultAttempts is the number of attempts of a tool hinted read-only or idempotent that names none; others get 1.
	DefaultAttempts = 3
	// DefaultTimeout is the longest execution of a tool that names none.
	DefaultTimeout = 5 * time.Minute

	maxBatch = 10_000
)

// Contract is how Stepjet may call a tool, with every default filled in. It survives a round trip through JSON
// (durations in milliseconds), since a run keeps the contracts that it started with.
type Contract struct {
	Mode Mode
	// Limit is the most unexpired leases of the tool at a time, from 1.
	Limit int
	// MaxAttempts is how often a step is attempted, from 1, where its plan says nothing else.
	MaxAttempts int
	// Backoff is the delay between attempts.
	Backoff Backoff
	// Timeout is the longest that one execution may take.
	Timeout time.Duration
	// WaitTimeout is the longest that an attempt may wait for a slot before it begins; 0 for as long as its step may
	// take.
	WaitTimeout time.Duration
	// AtMostOnce forbids a second execution, by whatever cause.
	AtMostOnce bool
	// ErrorPropagation is what a failed item of a batch does to the others.
	ErrorPropagation Propagation
	// Batch is nil for a tool that takes no batches.
	Batch *Batch
	// DependsOn are the tools whose output this tool's input needs.
	DependsOn []Dependency
	// Context says which keys of a run's out-of-band context the tool's workers get. Only an operator sets it.
	Context ContextFilter
	// Approval says which calls wait for a person's approval, whatever their plan says; empty for none.
	Approval Approval
	// WholeRequest says that the tool, as an agent's planner, is sent its requests whole.
	WholeRequest bool
	// PartContent says that the tool, as an agent's planner, takes a small last part in the request.
	PartContent bool
	// Note says that the tool's workers rely on what they noted of an attempt.
	Note bool
	// Asks says that the tool's workers may ask a person in the middle of a call.
	Asks bool
}

// Policy returns how often a step of this tool is attempted and how long to wait in between, where its plan says r (nil
// for nothing). An at_most_once tool has one attempt whatever the plan says.
func (c Contract) Policy(r *Retry) (attempts int, b Backoff) {
	attempts, b = max(c.MaxAttempts, 1), c.Backoff
	if r != nil && r.MaxAttempts > 0 {
		attempts = min(r.MaxAttempts, MaxAttempts)
	}
	if r != nil && r.Backoff != nil {
		b = *r.Backoff
	}
	if c.AtMostOnce {
		attempts = 1
	}
	return attempts, b.filled()
}

// Contract returns the tool's contract with every default filled in. A contract that contradicts itself, the
// annotations or the input schema is an invalid_tool that says how.
func (d *Definition) Contract() (Contract, error) {
	o := Orchestration{}
	if d.Orchestration != nil {
		o = *d.Orchestration
	}
	if err := o.check(d); err != nil {
		return Contract{}, d.contradiction(err)
	}
	c := o.contract(d)
	if err := c.check(); err != nil {
		return Contract{}, d.contradiction(err)
	}
	return c, nil
}

func (d *Definition) contradiction(err error) error {
	return together(d.Name, fieldFaults(d.Name, "/x-orchestration", err))
}

// contract fills the defaults in.
func (o Orchestration) contract(d *Definition) Contract {
	c := Contract{
		Mode:             o.mode(d.Annotations),
		MaxAttempts:      1,
		Timeout:          DefaultTimeout,
		AtMostOnce:       o.Delivery == AtMostOnce,
		ErrorPropagation: o.ErrorPropagation,
		Batch:            o.Batch,
		DependsOn:        slices.Clone(o.DependsOn),
		Approval:         o.Approval,
		WholeRequest:     o.Request == WholeRequest,
		PartContent:      o.PartContent,
		Note:             o.Note,
		Asks:             o.Asks,
	}
	c.Limit = o.limit(c.Mode)
	c.WaitTimeout = time.Duration(o.WaitTimeoutMS) * time.Millisecond
	if o.TimeoutMS > 0 {
		c.Timeout = time.Duration(o.TimeoutMS) * time.Millisecond
	}
	if a := d.Annotations; a.readOnly() || a.idempotent() {
		c.MaxAttempts = DefaultAttempts
	}
	if c.ErrorPropagation == "" {
		// Seed 003: partial-success for those that only read, fail-fast for those that write.
		c.ErrorPropagation = FailFast
		if d.Annotations.readOnly() {
			c.ErrorPropagation = PartialSuccess
		}
	}
	var b *Backoff
	c.MaxAttempts, b = o.retry(c.MaxAttempts)
	if c.AtMostOnce {
		c.MaxAttempts = 1
	}
	if b != nil {
		c.Backoff = *b
	}
	c.Backoff = c.Backoff.filled()
	if !d.Hosted() { // its steps are tried again, and the first item that fails counts
		c.MaxAttempts, c.ErrorPropagation, c.Asks = 1, FailFast, false
	}
	return c
}

// mode returns the declared mode, or the one that the rest of the contract or the hints imply.
func (o Orchestration) mode(a *Annotations) Mode {
	switch {
	case o.Mode != "":
		return o.Mode
	case len(o.DependsOn) > 0:
		return Dependent
	case a.readOnly():
		return ParallelSafe
	case o.MaxConcurrency > 1: // a bound was declared, so calls beside each other are allowed
		return FanOutBounded
	case a.Destructive():
		return SequentialOnly
	}
	return FanOutBounded
}

func (o Orchestration) limit(m Mode) int {
	switch {
	case m == SequentialOnly:
		return 1
	case o.MaxConcurrency > 0:
		return o.MaxConcurrency
	case m == ParallelSafe:
		return ParallelLimit
	}
	return DefaultLimit
}

// retry returns the declared attempts, or def, and the declared backoff.
func (o Orchestration) retry(def int) (int, *Backoff) {
	b := o.Backoff
	if o.Retry == nil {
		return def, b
	}
	if o.Retry.MaxAttempts > 0 {
		def = o.Retry.MaxAttempts
	}
	if o.Retry.Backoff != nil {
		b = o.Retry.Backoff
	}
	return def, b
}

func (a *Annotations) readOnly() bool { return a != nil && a.ReadOnlyHint != nil && *a.ReadOnlyHint }
func (a *Annotations) idempotent() bool {
	return a != nil && a.IdempotentHint != nil && *a.IdempotentHint
}

// Destructive reports whether the tool is hinted to destroy or overwrite. As in MCP, the hint means something only for a
// tool that isn't read-only. nil hints nothing.
func (a *Annotations) Destructive() bool {
	return a != nil && a.DestructiveHint != nil && *a.DestructiveHint && !a.readOnly()
}

type contractJSON struct {
	Mode             Mode          `json:"mode"`
	Limit            int           `json:"limit"`
	MaxAttempts      int           `json:"max_attempts"`
	Backoff          Backoff       `json:"backoff"`
	TimeoutMS        int64         `json:"timeout_ms"`
	AtMostOnce       bool          `json:"at_most_once,omitempty"`
	ErrorPropagation Propagation   `json:"error_propagation,omitempty"`
	Batch            *Batch        `json:"batch,omitempty"`
	DependsOn        []Dependency  `json:"depends_on,omitempty"`
	WaitTimeoutMS    int64         `json:"wait_timeout_ms,omitempty"`
	Context          ContextFilter `json:"context,omitzero"`
	Approval         Approval      `json:"approval,omitempty"`
	Request          RequestForm   `json:"request,omitempty"`
	PartContent      bool          `json:"part_content,omitempty"`
	Note             bool          `json:"note,omitempty"`
	Asks             bool          `json:"asks,omitempty"`
}

// MarshalJSON writes the contract; durations are milliseconds.
func (c Contract) MarshalJSON() ([]byte, error) {
	request := RequestForm("")
	if c.WholeRequest {
		request = WholeRequest
	}
	return json.Marshal(contractJSON{c.Mode, c.Limit, c.MaxAttempts, c.Backoff, c.Timeout.Milliseconds(), c.AtMostOnce,
		c.ErrorPropagation, c.Batch, c.DependsOn, c.WaitTimeout.Milliseconds(), c.Context, c.Approval, request, c.PartContent, c.Note, c.Asks})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *Contract) UnmarshalJSON(raw []byte) error {
	var in contractJSON
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	*c = Contract{
		Mode: in.Mode, Limit: in.Limit, MaxAttempts: in.MaxAttempts, Backoff: in.Backoff,
		Timeout:     time.Duration(in.TimeoutMS) * time.Millisecond,
		WaitTimeout: time.Duration(in.WaitTimeoutMS) * time.Millisecond,
		AtMostOnce:  in.AtMostOnce, ErrorPropagation: in.ErrorPropagation, Batch: in.Batch, DependsOn: in.DependsOn,
		Context: in.Context, Approval: in.Approval, WholeRequest: in.Request == WholeRequest, PartContent: in.PartContent, Note: in.Note, Asks: in.Asks,
	}
	return nil
}
