package worker

import (
	"encoding/json"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// A run keeps to the definition of a tool that it started with. While a changed tool is rolled out, its steps come to
// workers of that definition and of others. One of another runs a step whose arguments fit its own input schema, and
// sees that the result keeps what the run's definition promises. What doesn't fit fails at once: left to its lease it
// would hold a slot for as long as that lasts, and might come to a worker of the same kind again.

// maxPromises bounds the definitions of other workers whose promises are remembered.
const maxPromises = 256

// promises are what results have to keep of other definitions of the worker's tools, by digest.
type promises struct {
	mu sync.Mutex
	by map[string]*promise
}

// promise is what a definition says of results. A nil schema promises nothing.
type promise struct {
	schema *tool.Schema
	batch  string // the argument that steps bring an array of items in; empty for a tool that takes no batches
}

func (p *promises) get(digest string) *promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.by[digest]
}

func (p *promises) keep(digest string, made *promise) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) >= maxPromises {
		p.by = map[string]*promise{}
	}
	p.by[digest] = made
}

// otherwise reports whether the run started with another definition of the tool than this worker's.
func (x *execution) otherwise() bool {
	return x.step.Definition != "" && x.step.Definition != x.feed.tool.digest
}

// learn finds out what the run's definition promises of results. It reports false if the execution ended before.
func (x *execution) learn() bool {
	if x.promise = x.e.promises.get(x.step.Definition); x.promise != nil {
		return true
	}
	var def *tool.Definition
	err := x.again("reading the definition that the run started with", definitionLost, func() (err error) {
		def, err = x.e.store.Registry.Definition(x.base, x.step.Definition)
		return err
	})
	switch {
	case err == nil:
		x.promise = promiseOf(def)
	case definitionLost(err):
		x.log().Warn("the definition that the run started with can't be read, so the result is not held against it",
			"definition", x.step.Definition, "error", err)
		x.promise = &promise{}
	default:
		return false
	}
	if !isNotFound(err) { // a replica that lags behind may yet get it
		x.e.promises.keep(x.step.Definition, x.promise)
	}
	return true
}

func promiseOf(def *tool.Definition) *promise {
	p := &promise{}
	p.schema, _ = def.Promise() // one that can't be used promises nothing
	if o := def.Orchestration; o != nil && o.Batch != nil {
		p.batch = o.Batch.Argument
	}
	return p
}

// definitionLost reports whether a definition can't be had by waiting.
func definitionLost(err error) bool {
	switch fault.CodeOf(err) {
	case fault.NotFound, fault.InvalidTool, fault.NewerVersion, fault.Permission, fault.Internal:
		return true
	}
	return false
}

// unfitArguments checks arguments against this worker's input schema.
func (x *execution) unfitArguments() *fault.Error {
	f := checkArguments(x.feed.tool.schema, x.args)
	if f == nil && x.promise != nil && x.rearranged() {
		f = fault.New(fault.InvalidArguments, "the two definitions differ in which argument holds the items of a batch")
	}
	if f == nil || !x.otherwise() {
		return f
	}
	f.Message += "; " + x.twoDefinitions()
	return f.WithHint("the tool's schema was changed while the run went on: once all workers have one definition, stepjet retry RUN takes over what succeeded and judges the rest by that one; " +
		"where it refuses these arguments too, the plan has to be changed")
}

// rearranged reports whether a step brings an array where this worker knows of none, or the other way round.
func (x *execution) rearranged() bool {
	mine := ""
	if b := x.feed.tool.batch; b != nil {
		mine = b.Argument
	}
	return mine != x.promise.batch && (hasMember(x.args, mine) || hasMember(x.args, x.promise.batch))
}

// brokenPromise checks a result, as the JSON value that it stands for, against what the run's definition promises.
func (x *execution) brokenPromise(value []byte) *fault.Error {
	p := x.promise
	if p == nil || p.schema == nil || p.batch != "" && !hasMember(x.args, p.batch) {
		return nil // what one item of a batch comes to is not what the schema describes
	}
	bad := p.schema.Check(value, nil)
	if len(bad) == 0 {
		return nil
	}
	return fault.New(fault.ToolTerminal, "the result doesn't fit the output schema that the run started with: %s; %s",
		violations(bad), x.twoDefinitions()).
		WithHint("the tool ran, but what refers to its result may rely on that schema: submit the plan anew, or give a changed result a new tool name")
}

func (x *execution) twoDefinitions() string {
	return "the run started with definition " + x.step.Definition + " of the tool, this worker has definition " +
		x.feed.tool.digest
}

// hasMember reports whether arguments have a key at their top.
func hasMember(args []byte, name string) bool {
	if name == "" {
		return false
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(args, &members) // arguments that can't be read have none
	_, there := members[name]
	return there
}
