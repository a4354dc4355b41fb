package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

type sized struct {
	Size int    `json:"size"`
	Pad  string `json:"pad,omitempty"`
}

// growing hosts a tool that returns a string of the size asked for.
func growing(worker *Worker) {
	Handle(worker, "grow", func(_ context.Context, in sized) (string, error) {
		return strings.Repeat("x", in.Size), nil
	})
}

func TestLargeResult(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	w.worker(Config{}, growing)
	a := w.attempt("grow", "r", "s1")
	w.dispatch(a, `{"size":2097152}`)
	r := w.result(a)
	require.Nil(t, r.Error)
	require.Empty(t, r.Body)
	require.NotNil(t, r.Handle)
	require.True(t, strings.HasPrefix(r.Handle.Name, a.BlobName("")), r.Handle.Name)
	data, err := w.store.Archive.Blob(w.ctx(), r.Handle)
	require.NoError(t, err)
	require.Equal(t, `"`+strings.Repeat("x", 2<<20)+`"`, string(data))
	w.settled("grow")

	b := w.attempt("grow", "r", "s2")
	w.dispatch(b, `{"size":262142}`)
	r = w.result(b)
	require.Nil(t, r.Handle, "256 KiB travel in the record")
	require.Len(t, r.Body, wire.InlineLimit)
	c := w.attempt("grow", "r", "s3")
	w.dispatch(c, `{"size":262143}`)
	require.NotNil(t, w.result(c).Handle, "one byte more does not")
}

func TestResultThatIsTooLarge(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	body := bytes.Repeat([]byte("x"), maxBlob+1)
	w.worker(Config{}, func(worker *Worker) {
		require.NoError(t, worker.HandleRaw(&tool.Definition{Name: "huge"}, func(context.Context, json.RawMessage) (Output, error) {
			return Output{Body: body, Text: true}, nil
		}))
	})
	r := w.run("huge", `{}`)
	require.Equal(t, fault.TooLarge, r.Error.Code)
	require.NotEmpty(t, r.Error.Hint)
	require.False(t, r.Error.Retryable)
}

func TestLargeArguments(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "measure", func(_ context.Context, in sized) (int, error) { return len(in.Pad), nil })
	})
	a := w.attempt("measure", "r", "s1")
	args := `{"size":1,"pad":"` + strings.Repeat("y", 3<<20) + `"}`
	handle, err := w.store.Archive.PutBlob(w.ctx(), "", a.BlobName("args"), []byte(args))
	require.NoError(t, err)
	w.dispatch(a, "", func(s *wire.Step) { s.Handle = handle })
	r := w.result(a)
	require.Nil(t, r.Error)
	require.Equal(t, "3145728", string(r.Body))

	b := w.attempt("measure", "r", "s2")
	w.dispatch(b, "", func(s *wire.Step) {
		s.Handle = &outcome.Handle{Name: b.BlobName("gone"), Size: 10, SHA256: handle.SHA256}
	})
	r = w.result(b)
	require.Equal(t, fault.ToolTerminal, r.Error.Code)
	require.Contains(t, r.Error.Message, "arguments")
	c := w.attempt("measure", "r", "s3")
	w.dispatch(c, "", func(s *wire.Step) {
		s.Handle = &outcome.Handle{Name: handle.Name, Size: handle.Size, SHA256: strings.Repeat("0", 64)}
	})
	require.Equal(t, fault.ToolTerminal, w.result(c).Error.Code, "not what the handle says")
	w.settled("measure")
}

// Many large arguments at once wait for one another instead of filling the memory.
func TestArgumentMemoryIsBounded(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	g := newGate()
	w.worker(Config{}, func(worker *Worker) {
		worker.config.ArgumentMemory = 1 << 20 // less than Config takes: the test would need gigabytes
		Handle(worker, "hold", func(ctx context.Context, in json.RawMessage) (int, error) {
			info, _ := InfoFrom(ctx)
			g.begun <- info
			<-g.open
			return len(in), nil
		})
	})
	args := []byte(`{"pad":"` + strings.Repeat("y", 600<<10) + `"}`)
	var all []subjects.Attempt
	for _, step := range []string{"s1", "s2"} {
		a := w.attempt("hold", "r", step)
		handle, err := w.store.Archive.PutBlob(w.ctx(), "", a.BlobName("args"), args)
		require.NoError(t, err)
		w.dispatch(a, "", func(s *wire.Step) { s.Handle = handle })
		all = append(all, a)
	}
	await(w, g.begun, "the first")
	select {
	case <-g.begun:
		require.Fail(t, "the second is held as well")
	case <-time.After(300 * time.Millisecond):
	}
	close(g.open)
	for _, a := range all {
		require.Nil(t, w.result(a).Error)
	}
}

// A ledger without room: the result is kept, the lease as well, until there is room.
func TestFullLedger(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{AckWait: 3 * time.Second, LedgerMaxBytes: 1 << 20})
	w.registrar()
	var calls atomic.Int32
	w.worker(Config{}, func(worker *Worker) {
		Handle(worker, "grow", func(_ context.Context, in sized) (string, error) {
			calls.Add(1)
			return strings.Repeat("x", in.Size), nil
		})
	})
	a := w.attempt("grow", "r", "s1")
	junk := w.attempt("junk", "other", "s1")
	full := false
	for n := 1; !full; n++ {
		junk.Number = n
		_, err := w.js.PublishMsg(&nats.Msg{Subject: subjects.StepRecord(junk, 1), Data: make([]byte, 100<<10)})
		full = err != nil
		require.Less(t, n, 100)
	}
	w.dispatch(a, `{"size":204800}`)
	w.eventually(func() bool { return calls.Load() == 1 }, "not executed")
	require.Never(t, func() bool { return w.consumer("grow").NumAckPending != 1 }, 5*time.Second, 50*time.Millisecond, "the lease is kept")
	require.False(t, w.recorded(a))
	for n := range junk.Number {
		junk.Number = n + 1
		require.NoError(t, w.store.Ledger.PurgeSubject(w.ctx(), subjects.StepRecord(junk, 1)))
	}
	require.Len(t, w.result(a).Body, 204802, "nothing is dropped")
	w.settled("grow")
	require.EqualValues(t, 1, calls.Load())
}

// A server with a small max_payload: results go through the object store earlier, errors are cut.
func TestSmallMaxPayload(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{}, func(o *embedded.Options) { o.MaxPayload = 64 << 10 })
	w.registrar()
	w.worker(Config{}, func(worker *Worker) {
		growing(worker)
		Handle(worker, "fail", func(context.Context, empty) (empty, error) {
			return empty{}, &fault.Error{Code: fault.ToolFailed, Message: "see the details", Details: json.RawMessage(`"` + strings.Repeat("z", 100<<10) + `"`)}
		})
		Handle(worker, "fail_twice", func(context.Context, empty) (empty, error) {
			return empty{}, errors.New(strings.Repeat("\x01", 1<<20)) // escaped, each byte is six
		})
	})
	a := w.attempt("grow", "r", "s1")
	w.dispatch(a, `{"size":60000}`)
	r := w.result(a)
	require.NotNil(t, r.Handle)
	require.EqualValues(t, 60002, r.Handle.Size)
	r = w.run("fail", `{}`)
	require.Equal(t, "see the details", r.Error.Message)
	require.Empty(t, r.Error.Details)
	require.Equal(t, fault.ToolFailed, w.run("fail_twice", `{}`).Error.Code)
	w.settled("fail")
}
