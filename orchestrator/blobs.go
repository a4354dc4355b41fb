package orchestrator

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
)

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

// values reads the results of steps, wherever they lie, and puts large ones into blobs. It is used by jobs, and by the loop
// where nothing lies in a blob.
type values struct {
	*env
	cache blobCache
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

// blob reads a blob, trying for as long as its store doesn't answer. The error says what is wrong with the blob itself, or is
// ctx's.
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

// fetch reads the blob of a result that nobody has checked before the machine sees its record, since what lies in it
// decides whether it counts as a success. Later records of the run wait.
func (dr *driver) fetch(r *run, e entry, rec machine.Record) {
	r.busy = true
	dr.job(func(ctx context.Context) {
		body, err := dr.values.blob(ctx, rec.Result.Handle)
		dr.post(func() {
			r.busy = false
			if r.phase != running || ctx.Err() != nil {
				return
			}
			if err != nil {
				rec.Result.Error = unreadable(err)
			}
			rec.Result.Body = body
			now := dr.times.of(r)
			dr.effects.Reset()
			dr.record(r, rec, now)
			dr.unpark(r, now)
			dr.perform(r, now)
		})
	})
}
