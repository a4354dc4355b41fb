package tool

import "encoding/json"

// check finds what in a contract is out of range or contradicts itself. It checks values too, because a contract may be
// built in Go and so never have been parsed.
func (o Orchestration) check(d *Definition) error {
	for _, c := range []func(*Definition) error{
		o.checkWords, o.checkMode, o.checkDependencies, o.checkRetry, o.checkBatch,
	} {
		if err := c(d); err != nil {
			return err
		}
	}
	return nil
}

// checkWords checks ranges and enumerations.
func (o Orchestration) checkWords(*Definition) error {
	switch o.Mode {
	case "", ParallelSafe, SequentialOnly, FanOutBounded, Dependent:
	default:
		return badField("mode", "%q is none of parallel-safe, sequential-only, fan-out-bounded and dependent", clip(string(o.Mode)))
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
	if o.MaxConcurrency < 0 || o.MaxConcurrency > MaxLimit {
		return badField("max_concurrency", "must be 1 to %d", MaxLimit)
	}
	if o.TimeoutMS < 0 || o.TimeoutMS > MaxDuration.Milliseconds() {
		return badField("timeout_ms", "must be 1 to %d (168 h)", MaxDuration.Milliseconds())
	}
	return nil
}

func (o Orchestration) checkMode(d *Definition) error {
	if o.Mode == SequentialOnly && o.MaxConcurrency > 1 {
		return badField("max_concurrency", "%d contradicts mode sequential-only, which is one call at a time", o.MaxConcurrency)
	}
	if o.Mode == Dependent && len(o.DependsOn) == 0 {
		return badField("mode", "dependent needs depends_on: which tools' output does the input need?")
	}
	if o.Mode == ParallelSafe && d.Annotations.destructive() {
		return badField("mode", "parallel-safe contradicts destructiveHint: true; declare fan-out-bounded or sequential-only")
	}
	return nil
}

func (o Orchestration) checkDependencies(d *Definition) error {
	seen := map[string]bool{}
	for _, dep := range o.DependsOn {
		switch {
		case !ValidName(dep.Tool):
			return badField("depends_on", "%q is no tool name", clip(dep.Tool))
		case dep.Tool == d.Name:
			return badField("depends_on", "the tool can't depend on itself")
		case seen[dep.Tool]:
			return badField("depends_on", "names %q twice", dep.Tool)
		}
		seen[dep.Tool] = true
		for _, f := range dep.RequiredFields {
			if f == "" {
				return badField("depends_on", "an empty name in required_fields of %q", dep.Tool)
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
		return badField("retry.max_attempts", "%d contradicts delivery at_most_once, which allows one attempt only", o.Retry.MaxAttempts)
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

// checkBatch checks that the batch argument is an array of the input, as far as the schema says so plainly.
func (o Orchestration) checkBatch(d *Definition) error {
	if o.Batch == nil {
		return nil
	}
	if o.Batch.Argument == "" {
		return badField("batch.argument", "is missing: which property of the input takes the items?")
	}
	if o.Batch.MaxItems < 1 || o.Batch.MaxItems > maxBatch {
		return badField("batch.max_items", "must be 1 to %d", maxBatch)
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(d.InputSchema, &schema) != nil || schema.Properties == nil {
		return nil
	}
	raw, ok := schema.Properties[o.Batch.Argument]
	if !ok {
		return badField("batch.argument", "%q is no property of the input schema", clip(o.Batch.Argument))
	}
	var property struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &property) == nil && property.Type != "" && property.Type != "array" {
		return badField("batch.argument", "%q is of type %s in the input schema, not an array", clip(o.Batch.Argument), clip(property.Type))
	}
	return nil
}
