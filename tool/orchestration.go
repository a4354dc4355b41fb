package tool

import (
	"encoding/json"
	"maps"
)

// Mode is how a tool may be called beside itself (seed 003, "Core orchestration modes").
type Mode string

// The modes.
const (
	ParallelSafe   Mode = "parallel-safe"   // any number of calls at a time
	SequentialOnly Mode = "sequential-only" // one call at a time
	FanOutBounded  Mode = "fan-out-bounded" // up to max_concurrency calls at a time
	Dependent      Mode = "dependent"       // its input needs the output of other tools
)

// Delivery is how often one attempt of a step may be executed.
type Delivery string

// The deliveries.
const (
	AtLeastOnce Delivery = "at_least_once" // the default: again, if its worker is lost
	AtMostOnce  Delivery = "at_most_once"  // never again; a lost worker leaves outcome_unknown
)

// RequestForm is how a planner is sent what an agent asks it.
type RequestForm string

// WholeRequest is a request with the bytes of all rounds in it. Without it a request names the last part of them.
const WholeRequest RequestForm = "whole"

// Propagation is what one failed item does to the rest of its batch (seed 003, "Error propagation contracts").
type Propagation string

// The propagations.
const (
	FailFast       Propagation = "fail-fast"
	PartialSuccess Propagation = "partial-success"
)

// Orchestration is the x-orchestration object as a tool's author writes it. A zero field was not given; Contract fills
// the defaults in.
type Orchestration struct {
	Mode Mode `json:"mode,omitempty"`
	// MaxConcurrency is the most leases of the tool at a time: 1 to MaxLimit.
	MaxConcurrency int          `json:"max_concurrency,omitempty"`
	DependsOn      []Dependency `json:"depends_on,omitempty"`
	Backoff        *Backoff     `json:"backoff,omitempty"`
	Retry          *Retry       `json:"retry,omitempty"`
	// TimeoutMS is the longest that one execution may take, in milliseconds: 1 to 604,800,000 (168 h).
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// WaitTimeoutMS is the longest that an attempt may wait for a slot before it begins, in milliseconds: 1 to
	// 604,800,000.
	WaitTimeoutMS    int64       `json:"wait_timeout_ms,omitempty"`
	ErrorPropagation Propagation `json:"error_propagation,omitempty"`
	Batch            *Batch      `json:"batch,omitempty"`
	Delivery         Delivery    `json:"delivery,omitempty"`
	// Approval says which calls wait for a person's approval: AlwaysApprove, or a condition on the arguments.
	Approval Approval `json:"approval,omitempty"`
	// Request says how the tool takes requests where it is an agent's planner: WholeRequest, or empty for in parts.
	Request RequestForm `json:"request,omitempty"`
	// PartContent says that the tool, as an agent's planner, takes the last part of a request's rounds in the request itself,
	// where it is small: it need not be stored before the request is sent.
	PartContent bool `json:"part_content,omitempty"`
	// Note says that the tool's workers rely on what they noted of an attempt: who goes on with its runs has to know of
	// notes.
	Note bool `json:"note,omitempty"`
	// Asks says that the tool's workers may ask a person in the middle of a call, which then waits for the answer without a
	// worker: who goes on with its runs has to know of that.
	Asks bool `json:"asks,omitempty"`
	// Extra are fields that this version doesn't know; they are kept as they came.
	Extra map[string]json.RawMessage `json:"-"`
}

// Dependency names a tool whose output this tool's input needs.
type Dependency struct {
	Tool           string   `json:"tool"`
	RequiredFields []string `json:"required_fields,omitempty"`
}

// Batch says that the tool takes many items in one call.
type Batch struct {
	Argument string `json:"argument"`  // the property of the input that takes the array
	MaxItems int    `json:"max_items"` // at most, 1 to 10,000
	// MaxWaitMS is the longest that a call waits for the batch to fill, in milliseconds: 0 (DefaultBatchWait) to
	// 60,000.
	MaxWaitMS int64 `json:"max_wait_ms,omitempty"`
}

// Retry is how often a step is attempted and how long to wait in between. In a plan it goes before the tool's contract.
type Retry struct {
	MaxAttempts int      `json:"max_attempts,omitempty"` // 1 to MaxAttempts; 0 leaves it to the contract
	Backoff     *Backoff `json:"backoff,omitempty"`      // nil leaves it to the contract
}

var (
	orchestrationFields = []string{
		"mode", "max_concurrency", "depends_on", "backoff", "retry", "timeout_ms", "wait_timeout_ms", "error_propagation",
		"batch", "delivery", "approval", "request", "part_content", "note", "asks",
	}
	retryFields      = []string{"max_attempts", "backoff"}
	batchFields      = []string{"argument", "max_items", "max_wait_ms"}
	dependencyFields = []string{"tool", "required_fields"}
)

// UnmarshalJSON reads the object. A wrong type or value and a near miss of a field name are errors; an unknown field is
// kept in Extra, since a definition travels through many hands.
func (o *Orchestration) UnmarshalJSON(raw []byte) error {
	f, err := readFields(raw, orchestrationFields...)
	if err != nil {
		return err
	}
	*o = Orchestration{
		Mode: Mode(f.oneOf("mode",
			string(ParallelSafe), string(SequentialOnly), string(FanOutBounded), string(Dependent))),
		MaxConcurrency:   int(f.integer("max_concurrency", 1, MaxLimit)),
		TimeoutMS:        f.integer("timeout_ms", 1, MaxDuration.Milliseconds()),
		WaitTimeoutMS:    f.integer("wait_timeout_ms", 1, MaxDuration.Milliseconds()),
		ErrorPropagation: Propagation(f.oneOf("error_propagation", string(FailFast), string(PartialSuccess))),
		Delivery:         Delivery(f.oneOf("delivery", string(AtLeastOnce), string(AtMostOnce))),
		Approval:         Approval(f.str("approval")),
		Request:          RequestForm(f.oneOf("request", string(WholeRequest))),
	}
	f.decode("part_content", &o.PartContent, "true or false")
	f.decode("note", &o.Note, "true or false")
	f.decode("asks", &o.Asks, "true or false")
	f.decode("backoff", &o.Backoff, "an object")
	f.decode("retry", &o.Retry, "an object")
	f.decode("batch", &o.Batch, "an object")
	f.decode("depends_on", &o.DependsOn, `an array of {"tool": …}`)
	maps.DeleteFunc(f.raw, func(name string, _ json.RawMessage) bool { return contains(orchestrationFields, name) })
	if len(f.raw) > 0 {
		o.Extra = f.raw
	}
	return f.err()
}

// MarshalJSON writes the object, with the fields of Extra among its own.
func (o Orchestration) MarshalJSON() ([]byte, error) {
	type plain Orchestration // without this method
	return withExtra(plain(o), o.Extra)
}

// UnmarshalJSON reads {"max_attempts","backoff"}.
func (r *Retry) UnmarshalJSON(raw []byte) error {
	f, err := readFields(raw, retryFields...)
	if err != nil {
		return err
	}
	*r = Retry{MaxAttempts: int(f.integer("max_attempts", 1, MaxAttempts))}
	f.decode("backoff", &r.Backoff, "an object")
	return f.err()
}

// UnmarshalJSON reads {"argument","max_items"}; both are needed.
func (b *Batch) UnmarshalJSON(raw []byte) error {
	f, err := readFields(raw, batchFields...)
	if err != nil {
		return err
	}
	*b = Batch{Argument: f.str("argument"), MaxItems: int(f.integer("max_items", 1, maxBatch)),
		MaxWaitMS: f.integer("max_wait_ms", 0, maxBatchWait.Milliseconds())}
	return f.err()
}

// UnmarshalJSON reads {"tool","required_fields"}; a plain string stands for the tool alone.
func (d *Dependency) UnmarshalJSON(raw []byte) error {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		*d = Dependency{Tool: name}
		return nil
	}
	f, err := readFields(raw, dependencyFields...)
	if err != nil {
		return err
	}
	*d = Dependency{Tool: f.str("tool")}
	f.decode("required_fields", &d.RequiredFields, "an array of strings")
	return f.err()
}

// withExtra marshals v, an object, and adds the members of extra that it doesn't have itself.
func withExtra(v any, extra map[string]json.RawMessage) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || len(extra) == 0 {
		return b, err
	}
	all := maps.Clone(extra)
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
