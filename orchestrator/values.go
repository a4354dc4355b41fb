package orchestrator

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// maxOutcome bounds, in bytes, the results that one outcome may hold.
const maxOutcome = 56 << 20

// blobCache keeps large values that several steps may refer to. Blobs never change under their name.
type blobCache struct {
	mu    sync.Mutex
	bytes int
	order list.List // of *cachedBlob, newest in front
	byKey map[string]*list.Element
}

type cachedBlob struct {
	name string
	data []byte
}

const blobCacheBytes = 64 << 20

// values reads the results of steps, wherever they lie, and puts large ones into blobs. It is used by jobs, and by the
// loop where nothing lies in a blob.
type values struct {
	*env
	cache *blobCache // of the process
}

func (c *blobCache) get(name string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[name]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cachedBlob).data, true
}

func (c *blobCache) put(name string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byKey[name]; ok || len(data) > blobCacheBytes/4 {
		return
	}
	if c.byKey == nil {
		c.byKey = map[string]*list.Element{}
	}
	c.byKey[name] = c.order.PushFront(&cachedBlob{name, data})
	for c.bytes += len(data); c.bytes > blobCacheBytes; {
		last := c.order.Remove(c.order.Back()).(*cachedBlob)
		delete(c.byKey, last.name)
		c.bytes -= len(last.data)
	}
}

// blob reads a blob, trying for as long as its store doesn't answer. The error says what is wrong with the blob itself,
// or is ctx's.
func (v *values) blob(ctx context.Context, h *outcome.Handle) ([]byte, error) {
	key := h.Bucket + " " + h.Name + " " + h.NUID + " " + h.SHA256 // a name alone says nothing of its bytes
	if data, ok := v.cache.get(key); ok {
		return data, nil
	}
	for {
		data, err := v.store.Blob(ctx, h)
		switch {
		case err == nil:
			v.cache.put(key, data)
			return data, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, &fault.Error{Code: fault.NotFound}), errors.Is(err, &fault.Error{Code: fault.TooLarge}), errors.Is(err, &fault.Error{Code: fault.Internal}),
			errors.Is(err, &fault.Error{Code: fault.NewerVersion}): // whoever hosts a tool may say so of a blob
			return nil, err
		}
		v.log.Warn("a blob can't be read: trying again", "blob", h.Name, "error", err)
		v.clock.Pause(ctx, time.Second)
	}
}

// put stores a blob under a fresh name, in the bucket of its run, trying until it is stored or ctx ends.
func (v *values) put(ctx context.Context, bucket string, name func(unique string) string, data []byte) (*outcome.Handle, error) {
	for {
		h, err := v.store.PutBlob(ctx, bucket, name(v.clock.Unique()), data)
		if err == nil || ctx.Err() != nil {
			return h, err
		}
		v.log.Warn("a blob can't be stored: trying again", "bytes", len(data), "bucket", bucket, "error", err)
		v.clock.Pause(ctx, time.Second)
	}
}

// keep stores a blob under the name that everybody would give it, unless it is there, trying until it is stored or ctx
// ends. fresh says that it will not be there, most likely. same is false where something else lies there.
func (v *values) keep(ctx context.Context, bucket, name string, data []byte, fresh bool) (same bool, err error) {
	for {
		same, err = v.store.PutNamed(ctx, bucket, name, data, fresh)
		if err == nil || ctx.Err() != nil || fault.CodeOf(err) == fault.TooLarge {
			return same, err
		}
		v.log.Warn("a blob can't be stored: trying again", "blob", name, "bytes", len(data), "error", err)
		v.clock.Pause(ctx, time.Second)
	}
}

// value reads a successful result that lies in a blob, as the JSON it stands for. One that was said to be checked may
// turn out to be none only now.
func (v *values) value(ctx context.Context, h *outcome.Handle, text bool) ([]byte, *fault.Error) {
	body, err := v.blob(ctx, h)
	if err != nil {
		return nil, fault.New(fault.UnresolvedRef, "a referenced result can't be read: %v", err)
	}
	value, bad := plan.Output(body, text)
	if bad != nil {
		return nil, fault.New(fault.UnresolvedRef, "a referenced result is no value, though its worker says that it has checked it: %s", bad.Message).
			WithHint("the worker of that step must not set checked in its handle without checking")
	}
	return value, nil
}

// again reads a result that was let go of, trying for as long as the ledger doesn't answer. The error says that its record
// is gone, or is ctx's.
func (v *values) again(ctx context.Context, of *recorded) ([]byte, *fault.Error) {
	subject := subjects.StepRecord(of.attempt, v.store.Shards())
	if data, ok := v.cache.get(subject); ok { // a record is written once
		return data, nil
	}
	for {
		e, err := v.store.Read(ctx, subject)
		switch {
		case err == nil:
			w := wire.ParseResult(e.Header, e.Data)
			value, bad := plan.Output(w.Body, w.Text)
			if bad != nil || w.Error != nil || w.Handle != nil {
				return nil, fault.New(fault.UnresolvedRef, "the record of a referenced result is another than it was")
			}
			v.cache.put(subject, value)
			return value, nil
		case ctx.Err() != nil:
			return nil, fault.As(context.Cause(ctx))
		case errors.Is(err, &fault.Error{Code: fault.NotFound}):
			return nil, fault.New(fault.UnresolvedRef, "the record of a referenced result is gone")
		}
		v.log.Warn("a record can't be read: trying again", "subject", subject, "error", err)
		v.clock.Pause(ctx, time.Second)
	}
}

// derive derives a value again.
func (v *values) derive(ctx context.Context, of *derivedAgain) (value []byte, err *fault.Error) {
	if data, ok := v.cache.get(of.name); ok {
		return data, nil
	}
	x := reader{values: v, ctx: ctx, in: &of.in}
	switch of.what {
	case aValue:
		effort := plan.FullEffort
		value, err = x.resolver().Derive(of.in.step, of.size, &effort, x.result)
	case anOutput:
		value, err = x.resolver().Limit(maxOutcome).Output(of.lenient, x.result)
	case aList:
		value, err = x.list()
	}
	if x.err != nil {
		return nil, x.err
	}
	if err == nil {
		v.cache.put(of.name, value)
	}
	return value, err
}

// list returns the results of all iterations of a loop.
func (x *reader) list() ([]byte, *fault.Error) {
	all := []byte("[")
	for n := range x.in.values {
		value, _ := x.result(n)
		if len(all)+len(value) > maxOutcome {
			return nil, fault.New(fault.TooLarge, "the results of the iterations have more than %d bytes together", maxOutcome).
				WithHint("return less in each, or leave out \"collect\": then only the last is kept")
		}
		if n > 0 {
			all = append(all, ',')
		}
		all = append(all, value...)
	}
	return append(all, ']'), nil
}

// unreadable is what a step fails with whose result lies in a blob that can't be read.
func unreadable(err error) *fault.Error {
	switch fault.CodeOf(err) {
	case fault.TooLarge:
		return fault.New(fault.TooLarge, "the result is too large: %v", err).WithHint("return a part of it, or a place to fetch it from")
	case fault.NewerVersion:
		return fault.New(fault.InvalidRecord, "the result's blob can't be read: %s", fault.As(err).Message).
			WithHint("a worker writes blobs in the version of the step that it was given")
	}
	return fault.New(fault.ToolTerminal, "the result's blob can't be read: %v", err)
}

// read returns the JSON value of a source; nil for a missing one.
func (v *values) read(ctx context.Context, s *source) ([]byte, *fault.Error) {
	switch {
	case s.missing() || s.value != nil:
		return s.value, nil
	case s.away != nil:
		return v.again(ctx, s.away)
	case s.again != nil:
		return v.derive(ctx, s.again)
	case !s.list:
		return v.value(ctx, s.blob, s.text)
	}
	if size := s.size(); size > plan.MaxOutput && s.inBlobs() { // what was here once was put together here
		return nil, fault.New(fault.TooLarge, "the results of all items would have about %d bytes together, at most %d are allowed", size, plan.MaxOutput).
			WithHint("let the tool return less for each item, or hand large data on by a name or an address")
	}
	whole := source{items: slices.Clone(s.items), ids: s.ids}
	for i := range whole.items {
		x := &whole.items[i]
		if !x.list && !x.apart() {
			continue
		}
		value, err := v.read(ctx, x)
		if err != nil {
			return nil, err
		}
		x.value = value
	}
	return whole.entries()
}

// arguments resolves a call's arguments and checks them against the frozen schema. An error that isn't ctx's decides
// the attempt.
func (v *values) arguments(ctx context.Context, in *inputs) ([]byte, *fault.Error) {
	if in.edited != nil {
		return v.editedArguments(in)
	}
	if in.list != nil {
		list, err := v.list(ctx, in.list)
		if err != nil {
			return nil, err
		}
		own := *in // others may share it
		own.item, own.list = list[in.at], nil
		in = &own
	}
	x := reader{values: v, ctx: ctx, in: in}
	result, resolver := x.result, x.resolver()
	var args []byte
	var err *fault.Error
	if in.item != nil {
		args, err = resolver.ItemArguments(in.step, in.item, result)
	} else {
		args, err = resolver.Arguments(in.step, result)
	}
	if x.err != nil {
		return nil, x.err
	}
	if err != nil {
		return nil, err
	}
	if in.hasRefs && in.schema != nil {
		if bad := in.schema.Check(args, nil); len(bad) > 0 {
			return nil, in.explained(tool.Refusal(in.does.Tool, bad), bad, resolver, result)
		}
	}
	return args, nil
}

// editedArguments returns the arguments that a person gave. They were checked before they were recorded; but that they
// were is not known of a record that somebody else wrote.
func (v *values) editedArguments(in *inputs) ([]byte, *fault.Error) {
	args, err := plan.Output(in.edited, false)
	if err != nil {
		return nil, err
	}
	if in.schema == nil {
		return args, nil
	}
	if bad := in.schema.Check(args, nil); len(bad) > 0 {
		return nil, tool.Refusal(in.does.Tool, bad)
	}
	return args, nil
}

// reader returns the values of the dependencies when they are asked for. Of those that lie in blobs it holds one at a
// time.
type reader struct {
	values *values
	ctx    context.Context
	in     *inputs
	held   int // which value is held, plus one
	data   []byte
	input  []byte       // of the scope, once it was made
	last   []byte       // the result of the iteration before, once it was read
	err    *fault.Error // why one could not be read
}

// resolver returns what resolves the references: the loop's own where that may be used, else a new one.
func (x *reader) resolver() *plan.Resolver {
	if x.in.resolver != nil {
		return x.in.resolver.In(x)
	}
	return x.in.plan.NewResolver().Fates(x.in.fate).Input(x.theInput).In(x)
}

// Last is of plan.Turn: the result of the iteration before, null where there is none.
func (x *reader) Last() ([]byte, bool) {
	s := &x.in.last
	switch {
	case x.err != nil:
		return nil, false
	case s.missing():
		return []byte("null"), true
	case s.value != nil:
		return s.value, true
	case x.last == nil:
		x.last, x.err = x.values.read(x.ctx, s)
	}
	return x.last, x.last != nil
}

// Index is of plan.Turn.
func (x *reader) Index() int { return x.in.iteration }

// theInput returns the input of the scope that the step stands in.
func (x *reader) theInput() ([]byte, bool) {
	switch {
	case x.err != nil:
		return nil, false
	case x.in.outer == nil:
		return x.in.input.value, x.in.input.value != nil
	case x.input == nil:
		x.input, x.err = x.values.arguments(x.ctx, x.in.outer)
	}
	return x.input, x.input != nil
}

func (x *reader) result(dep int) ([]byte, bool) {
	i, found := slices.BinarySearch(x.in.deps, dep)
	if !found || i >= len(x.in.values) || x.err != nil {
		return nil, false
	}
	s := &x.in.values[i]
	switch {
	case s.value != nil || s.missing():
		return s.value, s.value != nil
	case x.held != i+1:
		x.held, x.data = 0, nil
		if x.data, x.err = x.values.read(x.ctx, s); x.err != nil {
			return nil, false
		}
		x.held = i + 1
	}
	return x.data, x.data != nil
}

func (v *values) list(ctx context.Context, in *inputs) ([][]byte, *fault.Error) {
	x := reader{values: v, ctx: ctx, in: in}
	list, err := x.resolver().Items(in.step, x.result)
	if x.err != nil {
		return nil, x.err
	}
	return list, err
}

// listed returns the list of a for_each step that is over, which may have been let go of.
func (v *values) listed(ctx context.Context, r *run, step int) [][]byte {
	list, here := r.lists[step]
	if !here {
		in := listOf(r, step)
		list, _ = v.list(ctx, &in)
	}
	return list
}
