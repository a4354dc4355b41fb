package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// check finds what in a contract is out of range or contradicts itself. It checks values too, because a contract may be
// built in Go and so never have been parsed.
func (o Orchestration) check(d *Definition) error {
	var all fieldErrors
	for _, c := range []func(*Definition) error{
		o.checkWords, o.checkMode, o.checkDependencies, o.checkRetry, o.checkBatch, o.checkTemplate,
	} {
		all = append(all, fieldsOf(c(d))...)
	}
	return all.error()
}

// checkWords checks ranges and enumerations.
func (o Orchestration) checkWords(*Definition) error {
	switch o.Mode {
	case "", ParallelSafe, SequentialOnly, FanOutBounded, Dependent:
	default:
		return badField("mode", "%q is none of parallel-safe, sequential-only, fan-out-bounded and dependent",
			clip(string(o.Mode)))
	}
	switch o.ErrorPropagation {
	case "", FailFast, PartialSuccess:
	default:
		return badField("error_propagation", "%q is neither fail-fast nor partial-success", clip(string(o.ErrorPropagation)))
	}
	switch o.Delivery {
	case "", AtLeastOnce, AtMostOnce:
	default:
		return badField("delivery", "%q is neither at_least_once nor at_most_once", clip(string(o.Delivery)))
	}
	if o.Request != "" && o.Request != WholeRequest {
		return badField("request", "%q is not whole", clip(string(o.Request)))
	}
	if err := o.Approval.check(); err != nil {
		return err
	}
	if o.MaxConcurrency < 0 || o.MaxConcurrency > MaxLimit {
		return badField("max_concurrency", "must be 1 to %d", MaxLimit)
	}
	if o.TimeoutMS < 0 || o.TimeoutMS > MaxDuration.Milliseconds() {
		return badField("timeout_ms", "must be 1 to %d (168 h)", MaxDuration.Milliseconds())
	}
	if o.WaitTimeoutMS < 0 || o.WaitTimeoutMS > MaxDuration.Milliseconds() {
		return badField("wait_timeout_ms", "must be 1 to %d (168 h)", MaxDuration.Milliseconds())
	}
	return nil
}

// check finds what only shows once the defaults are filled in.
func (c Contract) check() error {
	if c.Batch == nil {
		return nil
	}
	if c.Batch.MaxItems > c.Limit {
		e := badField("batch.max_items",
			"a batch takes a lease for each of its calls, so max_items %d needs max_concurrency of at least %[1]d; it is %d",
			c.Batch.MaxItems, c.Limit)
		if c.Mode == SequentialOnly {
			return e.withHint("the mode is sequential-only, one call at a time; declare fan-out-bounded, or leave batch out")
		}
		return e.withHint("raise max_concurrency, or lower batch.max_items")
	}
	if w := c.Batch.Wait(); c.WaitTimeout > 0 && c.WaitTimeout < w {
		return badField("wait_timeout_ms", "%d is less than the %d ms that a call may wait for its batch to fill",
			c.WaitTimeout.Milliseconds(), w.Milliseconds()).
			withHint("raise wait_timeout_ms, or lower batch.max_wait_ms")
	}
	return nil
}

// Wait returns the longest that a call waits for its batch to fill.
func (b Batch) Wait() time.Duration {
	if b.MaxWaitMS > 0 {
		return time.Duration(b.MaxWaitMS) * time.Millisecond
	}
	return DefaultBatchWait
}

func (o Orchestration) checkMode(d *Definition) error {
	if o.Mode == SequentialOnly && o.MaxConcurrency > 1 {
		return badField("max_concurrency", "%d contradicts mode sequential-only, which is one call at a time",
			o.MaxConcurrency).
			withHint("declare fan-out-bounded, or leave max_concurrency out")
	}
	if o.Mode == Dependent && len(o.DependsOn) == 0 {
		return badField("mode", "dependent needs depends_on: which tools' output does the input need?").
			withHint(`"depends_on": [{"tool": "search_documents", "required_fields": ["document_id"]}]`)
	}
	if o.Mode == ParallelSafe && d.Annotations.Destructive() {
		return badField("mode", "parallel-safe contradicts destructiveHint: true; declare fan-out-bounded or sequential-only").
			withHint("if calls beside each other do no harm, say destructiveHint: false")
	}
	return nil
}

func (o Orchestration) checkDependencies(d *Definition) error {
	seen := map[string]bool{}
	for _, dep := range o.DependsOn {
		switch {
		case !subjects.ValidTool(dep.Tool):
			return badField("depends_on", "%q is no tool name", clip(dep.Tool))
		case dep.Tool == d.Name:
			return badField("depends_on", "the tool can't depend on itself")
		case seen[dep.Tool]:
			return badField("depends_on", "names %q twice", dep.Tool)
		}
		seen[dep.Tool] = true
		for i, f := range dep.RequiredFields {
			if f == "" {
				return badField("depends_on", "an empty name in required_fields of %q", dep.Tool)
			}
			if slices.Contains(dep.RequiredFields[:i], f) {
				return badField("depends_on", "required_fields of %q names %q twice", dep.Tool, clip(f)).
					withHint("name each field once")
			}
		}
	}
	return nil
}

func (o Orchestration) checkRetry(*Definition) error {
	if o.Backoff != nil {
		if err := o.Backoff.Validate(); err != nil {
			return within("backoff", err)
		}
	}
	if o.Retry == nil {
		return nil
	}
	if o.Retry.MaxAttempts < 0 || o.Retry.MaxAttempts > MaxAttempts {
		return badField("retry.max_attempts", "must be 1 to %d", MaxAttempts)
	}
	if o.Delivery == AtMostOnce && o.Retry.MaxAttempts > 1 {
		return badField("retry.max_attempts", "%d contradicts delivery at_most_once, which allows one attempt only",
			o.Retry.MaxAttempts).
			withHint("leave retry.max_attempts out, or declare delivery at_least_once")
	}
	if b := o.Retry.Backoff; b != nil {
		if err := b.Validate(); err != nil {
			return within("retry.backoff", err)
		}
		if o.Backoff != nil && *o.Backoff != *b {
			return badField("retry.backoff", "differs from backoff beside it; give one of the two")
		}
	}
	return nil
}

// checkBatch checks that the batch argument is an array of the input, as far as the schema says so plainly. A schema
// without such a property describes the single call.
func (o Orchestration) checkBatch(d *Definition) error {
	b := o.Batch
	if b == nil {
		return nil
	}
	if o.Note {
		return badField("note", "a call in a batch has no note of its own").withHint("leave note out, or batch")
	}
	if o.Asks {
		return badField("asks", "a call in a batch can't wait for a person").withHint("leave asks out, or batch")
	}
	switch {
	case b.Argument == "":
		return badField("batch.argument", "is missing: which property of the input takes the items?")
	case b.MaxItems < 1 || b.MaxItems > maxBatch:
		return badField("batch.max_items", "must be 1 to %d", maxBatch)
	case b.MaxWaitMS < 0 || b.MaxWaitMS > maxBatchWait.Milliseconds():
		return badField("batch.max_wait_ms", "must be 0 to %d", maxBatchWait.Milliseconds())
	}
	types := propertyTypes(d.InputSchema)
	t, there := types[b.Argument]
	switch {
	case there && t != "" && t != "array":
		return badField("batch.argument", "%q is of type %s in the input schema, not an array", clip(b.Argument), clip(t)).
			withHint("name the property that takes the items")
	case !there:
		if near := nearArray(b.Argument, types); near != "" {
			return badField("batch.argument", "%q is no property of the input schema; did you mean %q?", clip(b.Argument), near).
				withHint("a schema of the single call has no array of that name at all")
		}
	}
	return nil
}

// strayBatch warns of a batch argument that no property has, where the schema is plainly that of the array and not of
// one item: all that it has is an array of another name. Steps are calls for one item then, whatever array they bring.
func (d *Definition) strayBatch() []fault.Problem {
	if d.Orchestration == nil || d.Orchestration.Batch == nil {
		return nil
	}
	argument, types := d.Orchestration.Batch.Argument, propertyTypes(d.InputSchema)
	for name, t := range types {
		if len(types) == 1 && t == "array" && name != argument {
			return []fault.Problem{{
				Code: fault.InvalidTool, Path: "/x-orchestration/batch/argument",
				Message: fmt.Sprintf("%q is no property of the input schema, which so describes one item: a step with %q is a call for one item", clip(argument), clip(name)),
				Hint:    fmt.Sprintf("did you mean %q?", clip(name)),
			}}
		}
	}
	return nil
}

// propertyTypes returns the properties of a schema with their types; "" for one that has no single one.
func propertyTypes(schema json.RawMessage) map[string]string {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	types := make(map[string]string, len(s.Properties))
	for name, raw := range s.Properties {
		var p struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(raw, &p) // true, false and several types have none
		types[name] = p.Type
	}
	return types
}

// nearArray returns the array that a batch argument was probably meant to be.
func nearArray(argument string, types map[string]string) string {
	var arrays []string
	for name, t := range types {
		if t == "array" {
			arrays = append(arrays, name)
		}
	}
	slices.Sort(arrays)
	return text.NearMiss(argument, arrays...)
}

// ofTemplates are the fields of x-orchestration that mean something of a tool which no worker hosts.
var ofTemplates = []string{"approval", "depends_on", "mode"}

// checkTemplate says what of the contract of a template, or of an agent, has no meaning: it takes no leases, and is not
// tried again as a whole.
func (o Orchestration) checkTemplate(d *Definition) error {
	if d.Hosted() {
		return nil
	}
	written, err := json.Marshal(o)
	var said map[string]json.RawMessage
	if err != nil || json.Unmarshal(written, &said) != nil {
		return nil // others say why
	}
	var all fieldErrors
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if contains(orchestrationFields, name) && !contains(ofTemplates, name) {
			all = append(all, badField(name, "is of tools that workers host, and this one is %s", d.kind()).
				withHint("remove it: the tools that its steps call have contracts of their own"))
		}
	}
	if o.Mode != "" && o.Mode != Dependent {
		all = append(all, badField("mode", "%q is of tools that workers host, and this one is %s", clip(string(o.Mode)), d.kind()).
			withHint(`remove it; "concurrency" in it bounds how many of its calls run at a time`))
	}
	return all.error()
}
